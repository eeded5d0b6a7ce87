//! `rtrace record`.

use std::{
    io::{ErrorKind, Write},
    os::unix::ffi::OsStrExt,
    path::Path,
    process::ExitCode,
};

use super::{args::RecordArguments, complain, doctor::rights, output, status::StatusLine};
use crate::{
    doctor::{self, Check},
    event::{Event, Exit, Kept, RecordedGroup, Recording},
    host::{facts, rights::Rights, user::Invoker},
    model::Summary,
    record::{Attach, HOOKS, LaunchError, LoadError, Options, RecordError, Sink, Until, record},
    report,
    trace::{Owner, TraceWriter, WriterOptions, set_aside},
};
use anyhow::{Context, anyhow};

const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(super) fn run(arguments: &RecordArguments) -> anyhow::Result<ExitCode> {
    check_hooks(&arguments.without)?;
    let invoker = if arguments.as_root {
        None
    } else {
        Invoker::find()
            .context("cannot tell who called sudo (with --as-root the command runs as root)")?
    };
    let check = || output::check(&arguments.output);
    invoker
        .as_ref()
        .map_or_else(check, |invoker| invoker.with_rights(check))?;
    let rights = rights();
    if let Some(check) = doctor::hindrance(&rights, doctor::judge_rights(&rights)) {
        return Err(not_here(&check));
    }
    let options = Options {
        buffer_bytes: arguments.buffer,
        resolution: arguments.resolution.unwrap_or_default(),
        without: arguments.without.clone(),
        passes: arguments.passes,
        most_cpus: arguments.most_cpus,
        full_sum_cpus: arguments.full_sum_cpus,
        failed_calls: !arguments.no_failed_calls,
        verify: arguments.verify,
        debug: arguments.debug_bpf,
        keep_arguments: arguments.keep_args,
        kept_variables: Kept {
            more: arguments
                .env
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
        },
        no_new_privileges: arguments.no_new_privs,
        invoker: invoker.clone(),
        charge: arguments.charge.clone(),
        attach: Attach {
            pids: arguments.pid.clone(),
            whole_host: arguments.whole_host,
            group: arguments.group(),
        },
        until: Until {
            duration: arguments.duration,
            after: arguments.wait_all.unwrap_or_default(),
        },
        tell: if arguments.quiet { |_| () } else { tell },
    };
    let output = arguments.output.clone();
    // Only if asked for: the command inherits stderr, so that where it is a terminal the line would
    // run through the command's own output.
    let status_line = StatusLine::new(arguments.progress, arguments.quiet);
    let owner = invoker.map(|invoker| Owner {
        uid: invoker.uid.as_raw(),
        gid: invoker.gid.as_raw(),
    });
    let is_quiet = arguments.quiet;
    let make_sink = move |recording: &Recording| {
        if let Some(line) = report::expected_line(recording).filter(|_| !is_quiet) {
            complain(&line);
        }
        Files::begin(&output, owner, recording, status_line)
    };
    let outcome = match record(&arguments.command, &options, make_sink) {
        Ok(outcome) => outcome,
        Err(RecordError::Launch(error)) => {
            complain(&error.to_string());
            return Ok(ExitCode::from(launch_status(&error)));
        }
        Err(RecordError::Load(error)) => return Err(not_loaded(&error, &rights)),
        Err(error) => return Err(error.into()),
    };
    let (summary, failure) = outcome.sink.finish(&outcome.recording);
    if !arguments.quiet {
        say(&summary, &outcome.recording, &arguments.output);
    }
    if let Some(error) = failure {
        // The command has run: its status is what the caller waits for.
        complain(&format!("the trace is not complete: {error:#}"));
    }
    let own = command_status(outcome.command.wait());
    Ok(ExitCode::from(status(arguments, own)))
}

/// The few lines about what was recorded.
fn say(summary: &Summary, recording: &Recording, output: &Path) {
    let width = super::terminal_width(std::io::stderr());
    let lines = report::closing_lines(summary, recording, &output.to_string_lossy(), width);
    // A stderr that is closed is the caller's wish.
    let _unwritable = writeln!(std::io::stderr(), "{}", lines.join("\n"));
}

/// The status to end with. What the command says of itself is never hidden by what is found about it.
fn status(arguments: &RecordArguments, own: u8) -> u8 {
    let is_checked = arguments.check || !arguments.conditions.is_empty();
    let check = || super::check::recorded(Path::new(&arguments.output), &arguments.conditions);
    let checked = is_checked.then(check).unwrap_or_default();
    if own == 0 { checked } else { own }
}

/// Says what is waited for.
fn tell(group: &RecordedGroup) {
    if let Some(line) = report::awaited_line(group) {
        complain(&line);
    }
}

/// In the words of `rtrace doctor`.
fn not_here(check: &Check) -> anyhow::Error {
    anyhow!("cannot record here: {}", check.line())
}

/// The host is looked at only now: its types take time that a recording which works doesn't have.
fn not_loaded(error: &LoadError, rights: &Rights) -> anyhow::Error {
    if let Some(check) = super::doctor::hindrance(rights) {
        return not_here(&check);
    }
    match error {
        LoadError::NotPermitted => not_permitted(),
        LoadError::Confidential => anyhow!("cannot record here: {error}"),
        error => anyhow!("{error:#}; `rtrace doctor` says what this host lacks"),
    }
}

/// What would work, to the letter.
fn not_permitted() -> anyhow::Error {
    let own = std::env::current_exe().unwrap_or_else(|_| "rtrace".into());
    let words = std::env::args_os().skip(1);
    let line: Vec<String> = std::iter::once(own.into_os_string())
        .chain(words)
        .map(|word| report::shell_word(&word.to_string_lossy()))
        .collect();
    anyhow!(
        "recording needs root or three capabilities (see `rtrace doctor`): sudo {}",
        line.join(" ")
    )
}

/// 128 + n for a death by signal n, as shells have it.
fn command_status(status: u32) -> u8 {
    let exit = Exit {
        status,
        ..Exit::default()
    };
    let number = exit
        .signal()
        .map_or(exit.code(), |signal| Some(128 + signal));
    number
        .and_then(|number| u8::try_from(number).ok())
        .unwrap_or(u8::MAX)
}

fn launch_status(error: &LaunchError) -> u8 {
    match error {
        LaunchError::NotFound(_) => NOT_FOUND,
        LaunchError::NotExecutable { source, .. } if source.kind() == ErrorKind::NotFound => {
            NOT_FOUND
        }
        LaunchError::NotExecutable { .. } => NOT_EXECUTABLE,
        LaunchError::Nul => super::RECORD_FAILED,
    }
}

fn check_hooks(without: &[String]) -> anyhow::Result<()> {
    match without
        .iter()
        .find(|name| HOOKS.iter().all(|hook| hook.name != **name))
    {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = HOOKS.iter().map(|hook| hook.name).collect();
            Err(anyhow!(
                "there is no hook '{name}'; there are {}",
                known.join(", ")
            ))
        }
    }
}

/// Everything that takes events: the trace file, the running summary, the status line.
struct Files {
    writer: Option<TraceWriter>,
    failure: Option<anyhow::Error>,
    summary: Summary,
    status_line: StatusLine,
}

impl Files {
    /// Makes the trace file. The command runs already, so an error is kept for the end.
    fn begin(
        path: &Path,
        owner: Option<Owner>,
        recording: &Recording,
        status_line: StatusLine,
    ) -> Self {
        let options = WriterOptions {
            owner,
            ..WriterOptions::default()
        };
        let made = set_aside(path).and_then(|_| TraceWriter::create_with(path, recording, options));
        let mut files = Self {
            writer: None,
            failure: None,
            summary: Summary::new(),
            status_line,
        };
        match made {
            Ok(writer) => files.writer = Some(writer),
            Err(error) => files.fail(error.into()),
        }
        files
    }

    /// The first failure is the one that explains the others. It is told at once, while something
    /// can be done about it, and again at the end.
    fn fail(&mut self, error: anyhow::Error) {
        if self.failure.is_none() {
            complain(&format!(
                "recording goes on without a trace file: {error:#}"
            ));
            self.failure = Some(error);
        }
    }

    fn finish(mut self, recording: &Recording) -> (Summary, Option<anyhow::Error>) {
        self.status_line.clear();
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.finish(recording)
        {
            self.failure.get_or_insert(error.into());
        }
        (self.summary, self.failure)
    }
}

impl Sink for Files {
    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.summary.push(event);
            if let Some(writer) = &mut self.writer
                && let Err(error) = writer.push(event)
            {
                self.fail(error.into());
            }
        }
    }

    fn tick(&mut self, recording: &Recording) {
        let now = facts::boot_ns();
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.tick(recording, now)
        {
            self.fail(error.into());
        }
        self.status_line.show(&self.summary, recording, now);
    }

    fn waiting(&mut self, since_ns: u64) {
        self.status_line
            .show_waiting(&self.summary, since_ns, facts::boot_ns());
    }
}
