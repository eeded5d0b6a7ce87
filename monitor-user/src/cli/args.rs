//! What can be typed.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

use crate::{
    host::memory_group::Choice,
    model::Quantity,
    record::{After, Named, Passes, Resolution},
    report::{
        check::{Denial, Expectation, quantities},
        lanes::By,
    },
};

/// Records every process that a command creates and every change of their memory, from kernel
/// events and without polling, and explains what happened around fork.
#[derive(Debug, Parser)]
#[command(
    name = "rtrace",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Run a command and record it and all its descendants into a trace file; or record processes that run already.
    Record(Box<RecordArguments>),
    /// Mark this moment in the recording that this runs in; without one nothing happens. Needs no rights.
    Mark(MarkArguments),
    /// Say what happened in a recording.
    Report(ReportArguments),
    /// Draw memory over time, as SVG; several recordings below each other on the same axes.
    Plot(PlotArguments),
    /// Write a recording as tables for other programs: CSV or lines of JSON.
    Export(ExportArguments),
    /// Check a recording against conditions: exits with 0 if all hold, 1 if one is violated, 2 if one can't be decided.
    Check(CheckArguments),
    /// Explain a finding: what it means, how it is measured, what to do.
    Explain(ExplainArguments),
    /// Say what this host can record, what not and why, and what to do about it.
    Doctor(DoctorArguments),
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(super) struct RecordArguments {
    /// The trace file. One that exists becomes NAME.old once the command runs.
    #[arg(short, long, value_name = "FILE", default_value = "trace.parquet")]
    pub(super) output: PathBuf,
    /// Print nothing but errors.
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Show a line with the state of the recording while it runs, even on the command's terminal.
    #[arg(long, conflicts_with = "quiet")]
    pub(super) progress: bool,
    /// Room for events on their way from the kernel, for instance 64M; a power of two.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    pub(super) buffer: u32,
    /// Follow memory in steps of this size, for instance 4K; `exact` shows every change. Else a step is
    /// 64 KiB, or 1/256 of what the process has if that is more.
    #[arg(long, value_name = "SIZE|exact", value_parser = resolution)]
    pub(super) resolution: Option<Resolution>,
    /// Run the command as root even under sudo, and leave the trace file to root.
    #[arg(long)]
    pub(super) as_root: bool,
    /// Keep argument lists as they are. Else values of options and variables that sound like secrets
    /// (password, token, api-key and the like), and secrets in URLs, are hidden in the trace.
    #[arg(long)]
    pub(super) keep_args: bool,
    /// Also keep the value of this variable of each program's environment. Always kept are `*_NUM_THREADS`,
    /// `MALLOC_*`, `PYTHONMALLOC`, `CUDA_VISIBLE_DEVICES` and the ranks of MPI processes, and nothing else.
    #[arg(long, value_name = "NAME")]
    pub(super) env: Vec<OsString>,
    /// Let nothing that the command executes gain privileges, as setuid programs do.
    #[arg(long)]
    pub(super) no_new_privs: bool,
    /// Control group whose memory charge is read: `auto` makes one for the command inside of the present one and
    /// removes it at the end, or else reads the present one; `off` reads none; a folder is that of a group for the
    /// command.
    #[arg(long, value_name = "auto|off|PATH", default_value = "auto", value_parser = charge)]
    pub(super) charge: Choice,
    /// Don't watch for calls of exec and fork that fail, nor how long those take that make processes: that costs each
    /// system call of the whole host some 50 ns while it is recorded.
    #[arg(long)]
    pub(super) no_failed_calls: bool,
    /// Compare what is recorded of memory with what /proc says, whenever a process is quiet for a moment, and say
    /// how many values were compared and the largest difference. Takes up to a tenth of a CPU.
    #[arg(long)]
    pub(super) verify: bool,
    /// Record these processes, which run already, and all their descendants, until the last one has ended or Ctrl-C
    /// is pressed. Only root may record others' processes.
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', conflicts_with_all = ["command", "wait_all"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) pid: Vec<u32>,
    /// Record all processes of the host but rtrace itself: while COMMAND runs, or until Ctrl-C is pressed. Only for
    /// root.
    #[arg(short = 'a', long, conflicts_with_all = ["pid", "wait_all"])]
    pub(super) whole_host: bool,
    /// Record the processes in this control group and in those below it, whether they are there already, are created
    /// there or are moved there. It may not be there yet: the recording begins with its first process. It ends when
    /// nobody is left, or with --duration after that time. A folder such as /sys/fs/cgroup/system.slice, or what
    /// /proc/PID/cgroup says. Only for root.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["command", "pid", "whole_host", "wait_all"])]
    pub(super) cgroup: Option<String>,
    /// Record the processes in this container of Docker, Podman or Kubernetes: its name, POD/NAME, NAMESPACE/POD/NAME,
    /// or its id or the beginning of it. It may not be there yet: the recording begins with its first process, and ends
    /// as with --cgroup. Only for root.
    #[arg(long, value_name = "NAME|ID", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["command", "pid", "whole_host", "cgroup", "wait_all"])]
    pub(super) container: Option<String>,
    /// End the recording after this time, for instance 90s or 5m, whatever still runs. The command goes on
    /// unrecorded, and rtrace ends with it and with its status.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) duration: Option<Duration>,
    /// Go on recording until the last descendant of the command has ended, for at most TIMEOUT if one is given
    /// (--wait-all=10m). Ctrl-C stops waiting. Else descendants that live on have 300 ms to leave.
    #[arg(long, value_name = "TIMEOUT", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = wait_all)]
    pub(super) wait_all: Option<After>,
    /// Check the recording at its end, as `rtrace check` does, and print the result to standard error. If the command
    /// itself ends with 0, rtrace ends with 1 if a condition is violated and with 2 if one can't be decided; else with the
    /// command's own status. --deny and --expect mean it too.
    #[arg(long)]
    pub(super) check: bool,
    #[command(flatten)]
    pub(super) conditions: Conditions,
    /// Leave a hook out. For tests of rtrace: what depends on it is missing then.
    #[arg(long, value_name = "HOOK", hide = true)]
    pub(super) without: Vec<String>,
    /// Attach the first, the later, or all programs of each hook. For tests of rtrace.
    #[arg(long, value_name = "WHICH", hide = true, value_parser = passes)]
    pub(super) passes: Option<Passes>,
    /// Read counters without what each CPU keeps to itself where more CPUs than this are possible, as beyond 4096.
    /// For tests of rtrace.
    #[arg(long, value_name = "CPUS", hide = true)]
    pub(super) most_cpus: Option<u32>,
    /// Add up what each CPU keeps to itself of counters at every event only up to so many possible CPUs, instead of 8.
    /// For tests of rtrace.
    #[arg(long, value_name = "CPUS", hide = true)]
    pub(super) full_sum_cpus: Option<u32>,
    /// Print the messages of the BPF programs. For developers of rtrace.
    #[arg(long, hide = true)]
    pub(super) debug_bpf: bool,
    /// The command and its arguments.
    #[arg(required_unless_present_any = ["pid", "whole_host", "cgroup", "container"], trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl RecordArguments {
    /// The control group that is to be recorded.
    pub(super) fn group(&self) -> Option<Named> {
        let path = self.cgroup.clone().map(Named::Path);
        path.or_else(|| self.container.clone().map(Named::Container))
    }
}

#[derive(Debug, Args)]
pub(super) struct MarkArguments {
    /// What to call it. It is recorded as an argument of this very command.
    #[arg(required = true, trailing_var_arg = true, value_name = "TEXT")]
    pub(super) text: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// The trace file.
    #[arg(value_name = "FILE", default_value = "trace.parquet")]
    pub(super) file: PathBuf,
    /// Print the whole report as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Write the report as a page for a browser: one file, which loads nothing and runs no script.
    #[arg(long, conflicts_with = "json")]
    pub(super) html: bool,
    /// Write to this file rather than to standard output, which `-` means too.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Show each process, also where many siblings run the same program.
    #[arg(long, conflicts_with = "json")]
    pub(super) all: bool,
    /// Width of the text in columns; the terminal's, or 80 in a pipe.
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["json", "html"], value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub(super) width: Option<u16>,
    /// Only these findings: ids such as fork.multithreaded, or areas such as worker. `rtrace explain` lists them.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) select: Vec<String>,
    /// Without these findings.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) ignore: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct PlotArguments {
    /// The trace files.
    #[arg(value_name = "TRACE", default_value = "trace.parquet")]
    pub(super) files: Vec<PathBuf>,
    /// What is told apart by colour.
    #[arg(long, value_enum, default_value = "program")]
    pub(super) by: PlotBy,
    /// What is drawn. Pages that processes share count in each of them.
    #[arg(long, value_enum, default_value = "rss")]
    pub(super) what: PlotWhat,
    /// Above each picture, instead of its command.
    #[arg(long)]
    pub(super) title: Option<String>,
    /// Write to this file rather than to standard output, which `-` means too.
    #[arg(short, long, value_name = "FILE.svg")]
    pub(super) output: Option<PathBuf>,
}

/// What has a colour of its own in a picture.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum PlotBy {
    /// Programs; processes with a part in a pool, and copies that go on with their creator's program, apart.
    Program,
    /// Parts in a pool, and the command.
    Role,
    /// Processes.
    Process,
}

impl From<PlotBy> for By {
    fn from(by: PlotBy) -> Self {
        match by {
            PlotBy::Program => Self::Program,
            PlotBy::Role => Self::Role,
            PlotBy::Process => Self::Process,
        }
    }
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum PlotWhat {
    /// Resident memory.
    Rss,
    /// Mapped memory.
    Vms,
}

impl From<PlotWhat> for Quantity {
    fn from(what: PlotWhat) -> Self {
        match what {
            PlotWhat::Rss => Self::Rss,
            PlotWhat::Vms => Self::Vms,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// The trace file.
    #[arg(value_name = "TRACE", default_value = "trace.parquet")]
    pub(super) file: PathBuf,
    /// Form of the table.
    #[arg(long, value_enum)]
    pub(super) format: ExportFormat,
    /// What it has rows of.
    #[arg(long, value_enum, default_value = "processes")]
    pub(super) what: ExportTable,
    /// Write to this file rather than to standard output, which `-` means too.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// Forms of a table.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ExportFormat {
    /// Comma-separated values.
    Csv,
    /// A JSON object in each line.
    Jsonl,
}

/// Tables.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ExportTable {
    /// Every process.
    Processes,
    /// Every program that a process was, with its arguments.
    Images,
    /// Sums of memory over the tree, by time.
    Memory,
}

#[derive(Debug, Args)]
#[command(after_help = format!("Quantities for --expect:\n{}", quantities()))]
pub(super) struct CheckArguments {
    /// The trace file.
    #[arg(value_name = "FILE", default_value = "trace.parquet")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) conditions: Conditions,
    /// Form of the result.
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: CheckFormat,
}

/// What a recording is checked against.
#[derive(Debug, Args)]
pub(super) struct Conditions {
    /// What must not be found: an id such as fork.multithreaded, an area such as worker, or a level (error, warning,
    /// info) and what is worse. Without any condition: error.
    #[arg(long, value_name = "ID|LEVEL", value_delimiter = ',', value_parser = Denial::parse)]
    pub(super) deny: Vec<Denial>,
    /// What must hold, for instance 'peak<8GiB', 'survivors==0' or 'pool.kind==Pool'; `rtrace check --help`
    /// has the list.
    #[arg(long, value_name = "CONDITION", value_parser = Expectation::parse)]
    pub(super) expect: Vec<Expectation>,
}

/// Forms of a check's result.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum CheckFormat {
    /// A line for each condition.
    Text,
    /// A test suite in XML.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
    /// A table in Markdown.
    Markdown,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// The finding, for instance fork.multithreaded, or an area such as worker; without it, all are listed.
    #[arg(value_name = "ID")]
    pub(super) id: Option<String>,
}

fn resolution(text: &str) -> Result<Resolution, String> {
    let step_bytes = if text == "exact" {
        0
    } else {
        let bytes = size(text).map_err(|error| format!("{error}, and not exact"))?;
        if bytes == 0 {
            return Err("for every change, say exact".to_owned());
        }
        bytes.into()
    };
    Ok(Resolution {
        step_bytes,
        share_bits: u64::BITS,
    })
}

/// A folder that is called like one of the words needs a slash.
#[expect(clippy::unnecessary_wraps, reason = "as clap wants it")]
fn charge(text: &str) -> Result<Choice, String> {
    Ok(match text {
        "auto" => Choice::Auto,
        "off" => Choice::Off,
        path => Choice::Path(path.into()),
    })
}

fn passes(text: &str) -> Result<Passes, String> {
    match text {
        "first" => Ok(Passes::First),
        "later" => Ok(Passes::Later),
        "all" => Ok(Passes::All),
        _ => Err("first, later or all".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Print the result as JSON.
    #[arg(long, conflicts_with = "for_admin")]
    pub(super) json: bool,
    /// Judge another kernel by a copy of its /sys/kernel/btf/vmlinux; needs no rights.
    #[arg(long, value_name = "FILE", conflicts_with = "for_admin")]
    pub(super) btf: Option<PathBuf>,
    /// Print what to ask an administrator for, why it is safe, and how to undo it.
    #[arg(long)]
    pub(super) for_admin: bool,
}

/// A time: a whole number with ms, s, m, h or d; seconds without.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time such as 500ms, 90s, 5m, 2h or 1d");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ms_each: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_not_a_number| wrong())?;
    let ms = number.checked_mul(ms_each).filter(|ms| *ms > 0);
    ms.map(Duration::from_millis).ok_or_else(wrong)
}

/// A timeout, or nothing for none.
fn wait_all(text: &str) -> Result<After, String> {
    if text.is_empty() {
        return Ok(After::All(None));
    }
    Ok(After::All(Some(time(text)?)))
}

/// Bytes, with K, M or G for powers of 1024.
fn size(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is no size such as 65536, 512K or 64M of at most 1G");
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper
        .strip_suffix("IB")
        .or_else(|| upper.strip_suffix('B'))
        .unwrap_or(&upper);
    let (digits, shift) = match upper.as_bytes().last() {
        Some(b'K') => (&upper[..upper.len() - 1], 10),
        Some(b'M') => (&upper[..upper.len() - 1], 20),
        Some(b'G') => (&upper[..upper.len() - 1], 30),
        _ => (upper, 0),
    };
    let number: u64 = digits.trim().parse().map_err(|_not_a_number| wrong())?;
    let bytes = number
        .checked_mul(1 << shift)
        .filter(|bytes| (1..=1 << 30).contains(bytes))
        .ok_or_else(wrong)?;
    u32::try_from(bytes).map_err(|_too_large| wrong())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_from_the_command_on_is_the_commands() {
        let parse = |words: &[&str]| match Arguments::try_parse_from(words).unwrap().verb {
            Verb::Record(options) => options,
            _ => panic!("not a recording"),
        };
        for words in [
            ["rtrace", "record", "--", "ls", "-o", "--json"].as_slice(),
            &["rtrace", "record", "ls", "-o", "--json"],
        ] {
            let options = parse(words);
            assert_eq!(options.command, ["ls", "-o", "--json"]);
            assert_eq!(options.output, PathBuf::from("trace.parquet"));
        }
        let options = parse(&["rtrace", "record", "-q", "-o", "x", "--", "a", "--", "b"]);
        assert_eq!(options.command, ["a", "--", "b"]);
    }

    #[test]
    fn times_have_units() {
        let ms = |text| time(text).map(|time| time.as_millis());
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("90"), Ok(90_000));
        assert_eq!(ms("90s"), Ok(90_000));
        assert_eq!(ms("5m"), Ok(300_000));
        assert_eq!(ms("2h"), Ok(7_200_000));
        assert_eq!(ms("1d"), Ok(86_400_000));
        for wrong in [
            "",
            "0",
            "-1s",
            "1.5s",
            "s",
            "5x",
            "99999999999999999999",
            "99999999999999999d",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_timeout_of_waiting_needs_its_sign() {
        let wait = |words: &[&str]| match Arguments::try_parse_from(words).unwrap().verb {
            Verb::Record(options) => (options.wait_all, options.command.len()),
            _ => panic!("not a recording"),
        };
        let without = wait(&["rtrace", "record", "--wait-all", "sleep", "5"]);
        assert_eq!(without, (Some(After::All(None)), 2));
        let with = wait(&["rtrace", "record", "--wait-all=5m", "sleep", "5"]);
        assert_eq!(with, (Some(After::All(Some(Duration::from_mins(5)))), 2));
        assert_eq!(wait(&["rtrace", "record", "true"]).0, None);
    }

    #[test]
    fn a_control_group_is_recorded_alone() {
        let is_taken = |words: &[&str]| {
            let words = [&["rtrace", "record", "--cgroup", "/a"][..], words].concat();
            Arguments::try_parse_from(words).is_ok()
        };
        assert!(is_taken(&[]) && is_taken(&["--duration", "1m"]));
        for words in [&["true"][..], &["-p", "1"], &["-a"], &["--wait-all"]] {
            assert!(!is_taken(words), "{words:?}");
        }
    }

    #[test]
    fn a_container_is_recorded_alone_and_has_a_name() {
        let group = |words: &[&str]| {
            let words = [&["rtrace", "record", "--container"][..], words].concat();
            match Arguments::try_parse_from(words).ok()?.verb {
                Verb::Record(options) => options.group(),
                _ => None,
            }
        };
        assert_eq!(group(&["web"]), Some(Named::Container("web".to_owned())));
        assert!(group(&["web", "--duration", "1m"]).is_some());
        for words in [
            &[""][..],
            &["web", "true"],
            &["web", "-p", "1"],
            &["web", "-a"],
            &["web", "--cgroup", "/a"],
        ] {
            assert_eq!(group(words), None, "{words:?}");
        }
    }

    #[test]
    fn a_command_is_needed_unless_something_else_is_recorded() {
        let parse = |words: &[&str]| {
            let words = [&["rtrace", "record"][..], words].concat();
            match Arguments::try_parse_from(words).ok()?.verb {
                Verb::Record(options) => {
                    Some((options.pid, options.whole_host, options.command.len()))
                }
                _ => None,
            }
        };
        assert_eq!(
            parse(&["-p", "1,2", "-p", "3"]),
            Some((vec![1, 2, 3], false, 0))
        );
        assert_eq!(parse(&["-a"]), Some((vec![], true, 0)));
        assert_eq!(parse(&["-a", "--", "ls", "-l"]), Some((vec![], true, 2)));
        for wrong in [
            &[][..],
            &["-p", "0"],
            &["-p", "x"],
            &["-p", "1", "ls"],
            &["-a", "-p", "1"],
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(parse(&["-p", "1", "--wait-all"]), None);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("8192"), Ok(8192));
        assert_eq!(size("512K"), Ok(512 << 10));
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("1g"), Ok(1 << 30));
        for wrong in [
            "",
            "0",
            "-1",
            "2G",
            "1.5M",
            "x",
            "M",
            "99999999999999999999",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
