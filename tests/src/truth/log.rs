//! Reads the log of a random tree: one line per fact, see `workloads/treegen/log.c`.

use std::{collections::BTreeMap, str::FromStr};

use anyhow::{Context, bail, ensure};

use crate::lone_surrogates::Text;

/// Length of a name in the kernel, without its NUL.
const COMM: usize = 15;

/// All that a tree said.
#[derive(Debug, Default)]
pub struct Truth {
    /// Processes by name; `r` is the root.
    pub nodes: BTreeMap<String, Node>,
    /// Whether orphans are given to the root.
    pub subreaper: bool,
    /// All others had ended by then, ns since boot.
    pub quiet_ns: u64,
}

/// One process.
#[derive(Debug, Default)]
pub struct Node {
    /// Process id.
    pub pid: u32,
    /// How it came to be; `None` for the root.
    pub created: Option<Created>,
    /// Programs that it became, in order.
    pub execs: Vec<ExecTruth>,
    /// How it ended.
    pub end: Option<End>,
    /// A signal from the parent: sent then (ns since boot), and which.
    pub killed: Option<(u64, u32)>,
    /// Last name of the leader, as the kernel told it to the process itself.
    pub last_name: Option<Text>,
    /// Threads besides the first.
    pub threads_made: u32,
    /// Most threads alive at once.
    pub threads_max: u32,
    /// `waitpid` was called, returned; ns since boot.
    pub waited: Option<(u64, u64)>,
}

/// How a process came to be.
#[derive(Debug)]
pub struct Created {
    /// Name of the creating process.
    pub parent: String,
    /// `fork`, `vfork`, `clone_vm` or `posix_spawn`.
    pub how: String,
    /// Left behind: the creator ended first.
    pub orphan: bool,
    /// Just before and after the call, ns since boot.
    pub between: (u64, u64),
    /// Creating thread.
    pub tid: u32,
    /// Live threads of the creator.
    pub threads: u32,
    /// Name of the creating thread, and so of the new process.
    pub name: Text,
}

/// One exec that worked.
#[derive(Debug)]
pub struct ExecTruth {
    /// Just before the call, ns since boot.
    pub before_ns: u64,
    /// Path given.
    pub filename: Text,
    /// Arguments given.
    pub argv: Vec<Text>,
    /// When the new image first ran (ns since boot) and its name, if it is one that logs.
    pub image: Option<(u64, Text)>,
}

impl ExecTruth {
    /// Name after the exec: the file's, cut by the kernel.
    pub fn name(&self) -> Text {
        let path = &self.filename.0;
        let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        Text(base[..base.len().min(COMM)].to_vec())
    }
}

/// How a process ended.
#[derive(Debug)]
pub struct End {
    /// Not before, ns since boot.
    pub after_ns: u64,
    /// Exit code.
    pub code: Option<u32>,
    /// Signal.
    pub signal: Option<u32>,
}

impl Node {
    /// Last name of the leader.
    pub fn comm(&self) -> Option<Text> {
        let of_exec = self.execs.last().map(ExecTruth::name);
        let inherited = self.created.as_ref().map(|created| created.name.clone());
        self.last_name.clone().or(of_exec).or(inherited)
    }
}

/// Reads a log. The root's own exec isn't in it.
///
/// # Errors
/// A line isn't understood, or a generator's process broke down.
pub fn parse(log: &str) -> anyhow::Result<Truth> {
    let mut truth = Truth::default();
    for line in log.lines() {
        ensure!(!line.starts_with("broken"), "the generator failed: {line}");
        let mut words = Words(line.split(' '));
        add(&mut truth, &mut words)
            .with_context(|| format!("line of the log: {}", &line[..line.len().min(200)]))?;
    }
    for line in log.lines().filter(|line| line.starts_with("wait ")) {
        add_wait(&mut truth, line)?;
    }
    for (name, node) in &truth.nodes {
        ensure!(
            node.pid != 0 && node.end.is_some(),
            "the log doesn't say how {name} began and ended"
        );
    }
    Ok(truth)
}

struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn word(&mut self) -> anyhow::Result<&'a str> {
        self.0.next().context("line is cut short")
    }

    fn number<T: FromStr>(&mut self) -> anyhow::Result<T> {
        let word = self.word()?;
        word.parse()
            .ok()
            .with_context(|| format!("not a number: {word}"))
    }

    fn bytes(&mut self) -> anyhow::Result<Text> {
        hex(self.word()?)
    }
}

/// Bytes written as `x` and two digits each.
fn hex(text: &str) -> anyhow::Result<Text> {
    let digits = text.strip_prefix('x').context("bytes without x")?;
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair)?;
        Ok(u8::from_str_radix(pair, 16)?)
    });
    Ok(Text(pairs.collect::<anyhow::Result<_>>()?))
}

fn add(truth: &mut Truth, words: &mut Words<'_>) -> anyhow::Result<()> {
    match words.word()? {
        "root" => {
            truth.nodes.entry("r".to_owned()).or_default().pid = words.number()?;
            words.word()?;
            truth.subreaper = words.word()? == "subreaper";
        }
        "create" => add_create(truth, words)?,
        "exec" => {
            let node = truth.nodes.entry(words.word()?.to_owned()).or_default();
            let before_ns = words.number()?;
            let filename = words.bytes()?;
            let argv = words
                .word()?
                .split(',')
                .map(hex)
                .collect::<anyhow::Result<_>>()?;
            node.execs.push(ExecTruth {
                before_ns,
                filename,
                argv,
                image: None,
            });
        }
        "image" => {
            let node = truth.nodes.entry(words.word()?.to_owned()).or_default();
            let exec = node.execs.last_mut().context("image without exec")?;
            exec.image = Some((words.number()?, words.bytes()?));
        }
        "end" => {
            let node = truth.nodes.entry(words.word()?.to_owned()).or_default();
            node.end = Some(end(words)?);
            node.threads_made = words.number()?;
            node.threads_max = words.number()?;
            node.last_name = Some(words.bytes()?);
        }
        "left" => {
            let node = truth.nodes.entry(words.word()?.to_owned()).or_default();
            node.end = Some(end(words)?);
            node.threads_max = 1;
        }
        "kill" => {
            let node = truth.nodes.entry(words.word()?.to_owned()).or_default();
            node.killed = Some((words.number()?, words.number()?));
        }
        "quiet" => truth.quiet_ns = words.number()?,
        "thread" | "wait" => {}
        other => bail!("unknown kind of line {other}"),
    }
    Ok(())
}

fn add_create(truth: &mut Truth, words: &mut Words<'_>) -> anyhow::Result<()> {
    let parent = words.word()?.to_owned();
    let node = truth.nodes.entry(words.word()?.to_owned()).or_default();
    node.pid = words.number()?;
    node.created = Some(Created {
        parent,
        how: words.word()?.to_owned(),
        orphan: words.word()? == "orphan",
        between: (words.number()?, words.number()?),
        tid: words.number()?,
        threads: words.number()?,
        name: words.bytes()?,
    });
    Ok(())
}

fn end(words: &mut Words<'_>) -> anyhow::Result<End> {
    let after_ns = words.number()?;
    let how = words.word()?;
    let value = words.number()?;
    let value_if = |kind: &str| (how == kind).then_some(value);
    Ok(End {
        after_ns,
        code: value_if("code"),
        signal: value_if("signal"),
    })
}

fn add_wait(truth: &mut Truth, line: &str) -> anyhow::Result<()> {
    let mut words = Words(line.split(' '));
    words.word()?;
    let parent = words.word()?;
    let pid: u32 = words.number()?;
    let is_it =
        |node: &Node| node.pid == pid && node.created.as_ref().is_some_and(|c| c.parent == parent);
    let child = truth.nodes.values_mut().find(|node| is_it(node));
    let child =
        child.with_context(|| format!("{parent} waited for {pid}, which it didn't create"))?;
    child.waited = Some((words.number()?, words.number()?));
    Ok(())
}
