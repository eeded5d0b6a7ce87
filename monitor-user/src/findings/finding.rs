//! What a rule found: whom it is about, evidence, and the sentence made from it.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::{
    findings::{Rule, Scene},
    units::{Bytes, Nanos, ProcessKey, errno_name, grouped, signal_name},
};

/// Letters of a name in a sentence.
const NAME: usize = 40;
/// Pids that a sentence names; of more it tells how many.
const NAMED: usize = 4;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong by itself.
    Info,
    /// Probably not what was wanted.
    Warning,
    /// Something was lost or broke.
    Error,
}

impl Severity {
    /// Its word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of things: their name if it is one, and if it is not.
    Count(u64, &'static str, &'static str),
    /// A size, bytes.
    Bytes(u64),
    /// A length of time, ns.
    Span(u64),
    /// A moment, ns since boot; told as time since the start of the command.
    At(u64),
    /// A process.
    Process(ProcessKey),
    /// Processes.
    Processes(Vec<ProcessKey>),
    /// A signal.
    Signal(u32),
    /// An error of a system call (`errno`).
    Error(u32),
    /// Bytes that a person chose: a name, a path.
    Text(Vec<u8>),
    /// A word of ours.
    Word(&'static str),
}

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Id of the rule.
    pub id: &'static str,
    /// How bad it is here; a rule may find this case milder or worse than usual.
    pub severity: Severity,
    /// Processes that it is about, the first ones first.
    pub subjects: Vec<ProcessKey>,
    /// When it began, ns since boot; `None` if it is about the recording as a whole.
    pub at_ns: Option<u64>,
    /// What it rests on, by name; names end in `_bytes` or `_ns` where the value has that unit.
    pub evidence: Vec<(&'static str, Value)>,
    /// What happened, in a sentence without its full stop.
    pub text: String,
    /// What to do about it here.
    pub advice: String,
    /// Why it could be wrong here: what was lost. `None` if nothing that it rests on was.
    pub doubt: Option<String>,
    /// Others say the same of its processes, and more.
    pub is_told: bool,
}

impl Finding {
    /// A finding of `rule` about these processes, without evidence yet.
    pub fn new(rule: &Rule, subjects: Vec<ProcessKey>) -> Self {
        Self {
            id: rule.id,
            severity: rule.severity,
            at_ns: subjects.first().map(|key| key.start_ns),
            subjects,
            evidence: Vec::new(),
            text: String::new(),
            advice: rule.advice.to_owned(),
            doubt: None,
            is_told: false,
        }
    }

    /// With another severity than the rule's.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// With the moment at which it began, ns since boot.
    #[must_use]
    pub fn at(mut self, ns: u64) -> Self {
        self.at_ns = Some(ns);
        self
    }

    /// With a piece of evidence.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.evidence.push((name, value));
        self
    }

    /// With a piece of evidence if it is known.
    #[must_use]
    pub fn with_known(self, name: &'static str, value: Option<Value>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With advice made for this case.
    #[must_use]
    pub fn advise(mut self, advice: String) -> Self {
        self.advice = advice;
        self
    }

    /// With the sentence that `template` makes: `{name}` stands for that piece of evidence, `{who}` for the subjects and
    /// `{was}` for the verb that fits their number.
    /// A part in brackets, `[, copying {size_bytes}]`, is left out if evidence that it names isn't known.
    #[must_use]
    pub fn say(mut self, scene: &Scene<'_>, template: &str) -> Self {
        self.text = self.filled(scene, template);
        self
    }

    /// A template with the evidence in it.
    pub fn filled(&self, scene: &Scene<'_>, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('[') {
            out += &self.part(scene, before).unwrap_or_default();
            let (optional, after) = after.split_once(']').unwrap_or((after, ""));
            out += &self.part(scene, optional).unwrap_or_default();
            rest = after;
        }
        out + &self.part(scene, rest).unwrap_or_default()
    }

    /// A part of a template; `None` if it names evidence that isn't there.
    fn part(&self, scene: &Scene<'_>, part: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = part;
        while let Some((before, after)) = rest.split_once('{') {
            out += before;
            let (name, after) = after.split_once('}')?;
            if name == "who" {
                out += &group(scene, &self.subjects);
            } else if name == "was" {
                out += if self.subjects.len() == 1 {
                    "was"
                } else {
                    "were"
                };
            } else {
                let (_, value) = self.evidence.iter().find(|(n, _)| *n == name)?;
                out += &told(scene, value);
            }
            rest = after;
        }
        Some(out + rest)
    }
}

/// A value in words.
fn told(scene: &Scene<'_>, value: &Value) -> String {
    match value {
        Value::Count(n, one, many) => {
            let noun = if *n == 1 { one } else { many };
            format!("{} {noun}", grouped(*n)).trim_end().to_owned()
        }
        Value::Bytes(n) => Bytes(*n).to_string(),
        Value::Span(ns) => Nanos(*ns).to_string(),
        Value::At(ns) if scene.since_start(*ns) == 0 => "the start".to_owned(),
        Value::At(ns) => format!("{} after the start", Nanos(scene.since_start(*ns))),
        Value::Process(key) => one(scene, *key),
        Value::Processes(keys) => group(scene, keys),
        Value::Signal(signal) => signal_name(*signal),
        Value::Error(errno) => errno_name(*errno),
        Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Word(word) => (*word).to_owned(),
    }
}

/// "python3 pool.py (pid 12)"; a name that was lost is left out.
fn one(scene: &Scene<'_>, key: ProcessKey) -> String {
    match scene.name(key).map(shortened) {
        Some(name) => format!("{name} (pid {})", key.pid),
        None => format!("pid {}", key.pid),
    }
}

/// A name that doesn't fill lines; the whole of it is in the list of processes.
fn shortened(name: String) -> String {
    if name.chars().count() <= NAME {
        return name;
    }
    let start: String = name.chars().take(NAME - 1).collect();
    format!("{start}…")
}

/// "4 processes python3 pool.py (pids 12, 13, 14, 15)".
fn group(scene: &Scene<'_>, keys: &[ProcessKey]) -> String {
    let [first, rest @ ..] = keys else {
        return "no process".to_owned();
    };
    if rest.is_empty() {
        return one(scene, *first);
    }
    let name = scene.name(*first);
    let is_one_program = rest.iter().all(|key| scene.name(*key) == name);
    let name = name
        .filter(|_| is_one_program)
        .map(|name| format!(" {}", shortened(name)));
    let pids: Vec<_> = keys.iter().take(NAMED).map(|k| k.pid.to_string()).collect();
    let mut text = format!(
        "{} processes{} (pids ",
        grouped(keys.len() as u64),
        name.unwrap_or_default()
    );
    text += &pids.join(", ");
    if keys.len() > NAMED {
        // Writing to a string can't fail.
        let _infallible = write!(text, " and {} more", grouped((keys.len() - NAMED) as u64));
    }
    text.push(')');
    text
}
