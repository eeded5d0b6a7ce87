//! `strace` inside the recording: it follows the command by ptrace and sees arguments byte by byte.
//!
//! The recorded root is strace then; the command is its child, and only what descends from that is compared.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, ensure};

use super::{Seen, SeenExec, Tree};
use crate::lone_surrogates::Text;

/// The start of a command line under which another command is followed, with one log file `log.PID` per thread.
///
/// # Errors
/// strace isn't installed.
pub fn wrapper(log: &Path) -> anyhow::Result<Vec<String>> {
    super::installed("strace", "strace")?;
    let log = log.to_str().context("path isn't UTF-8")?;
    let words = [
        "strace",
        "-ff",
        "-xx",
        "-s",
        "200000",
        "-e",
        "abbrev=none",
        "-e",
        "trace=fork,vfork,clone,clone3,execve,execveat",
        "-o",
        log,
    ];
    Ok(words.map(str::to_owned).to_vec())
}

/// Reads the log files `log.PID`.
///
/// # Errors
/// A file isn't as strace writes it.
pub fn read(log: &Path) -> anyhow::Result<Tree> {
    let folder = log.parent().context("no folder")?;
    let stem = log
        .file_name()
        .and_then(|name| name.to_str())
        .context("no name")?;
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(tid) = name
            .strip_prefix(stem)
            .and_then(|rest| rest.strip_prefix('.'))
        {
            files.insert(tid.parse::<u32>()?, fs::read_to_string(entry.path())?);
        }
    }
    let mut tree = Tree::new();
    let (creators, threads) = creations(&files);
    for (tid, text) in &files {
        let pid = process_of(&threads, *tid);
        if pid != *tid {
            tree.entry(pid).or_default().threads += 1;
        }
        let seen = tree.entry(pid).or_default();
        for line in text.lines() {
            one_line(seen, line, pid == *tid)
                .with_context(|| format!("line of strace for {tid}: {line:.200}"))?;
        }
        if pid == *tid {
            seen.creator = creators
                .get(tid)
                .map(|creator| process_of(&threads, *creator));
        }
    }
    Ok(tree)
}

/// Who created which process, and which thread; by thread id.
fn creations(files: &BTreeMap<u32, String>) -> (BTreeMap<u32, u32>, BTreeMap<u32, u32>) {
    let (mut creators, mut threads) = (BTreeMap::new(), BTreeMap::new());
    for (tid, text) in files {
        for line in text.lines().filter(|line| !line.starts_with("exec")) {
            let made = line
                .rsplit_once(" = ")
                .and_then(|(_, result)| result.trim().parse::<u32>().ok());
            match made {
                Some(made) if line.contains("CLONE_THREAD") => threads.insert(made, *tid),
                Some(made) => creators.insert(made, *tid),
                None => None,
            };
        }
    }
    (creators, threads)
}

fn process_of(threads: &BTreeMap<u32, u32>, tid: u32) -> u32 {
    let mut at = tid;
    while let Some(creator) = threads.get(&at) {
        at = *creator;
    }
    at
}

fn one_line(seen: &mut Seen, line: &str, is_leader: bool) -> anyhow::Result<()> {
    if line.starts_with("execve(") && line.ends_with(" = 0") {
        seen.execs.push(exec(line)?);
    }
    let Some(end) = line.strip_prefix("+++ ").filter(|_| is_leader) else {
        return Ok(());
    };
    if let Some(code) = end.strip_prefix("exited with ") {
        seen.code = Some(code.trim_end_matches(" +++").parse()?);
        seen.ended = true;
    } else if let Some(signal) = end.strip_prefix("killed by ") {
        let name = signal.split(' ').next().unwrap_or(signal);
        seen.signal = Some(name.parse::<nix::sys::signal::Signal>()? as u32);
        seen.ended = true;
    }
    Ok(())
}

/// `execve("\x..", ["\x..", ...], [...]) = 0`, every byte as `\xNN`.
fn exec(line: &str) -> anyhow::Result<SeenExec> {
    let rest = line.strip_prefix("execve(\"").context("no file")?;
    let (filename, rest) = rest.split_once("\", [").context("no arguments")?;
    let (argv, _) = rest.split_once("], [").context("no environment")?;
    ensure!(!argv.contains("..."), "strace cut the arguments");
    let argv = argv.split(", ").filter(|part| !part.is_empty());
    let argv = argv
        .map(|part| bytes(part.trim_matches('"')))
        .collect::<anyhow::Result<_>>()?;
    Ok(SeenExec {
        filename: bytes(filename)?,
        argv: Some(argv),
    })
}

fn bytes(text: &str) -> anyhow::Result<Text> {
    let digits = text.split("\\x").skip(1);
    let bytes = digits
        .map(|pair| u8::from_str_radix(pair, 16))
        .collect::<Result<_, _>>();
    Ok(Text(
        bytes.with_context(|| format!("not hexadecimal: {text}"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_lines_become_bytes() {
        let line = r#"execve("\x2f\x61", ["\x61", "", "\xff\x20"], ["\x50\x3d"]) = 0"#;
        let exec = exec(line).expect("a line of strace");
        assert_eq!(exec.filename, Text::from("/a"));
        assert_eq!(
            exec.argv,
            Some(vec![
                Text::from("a"),
                Text::from(""),
                Text(b"\xff ".to_vec())
            ])
        );
    }

    #[test]
    fn ends_are_codes_or_signals() {
        let mut seen = Seen::default();
        one_line(&mut seen, "+++ killed by SIGTERM +++", true).expect("an end");
        assert_eq!((seen.signal, seen.ended), (Some(15), true));
    }
}
