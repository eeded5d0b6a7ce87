//! The terminal stays the command's own: full-screen programs, job control, resizing, pipes, the background. Typed
//! into a real terminal, by tmux.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use anyhow::{Context, ensure};
use rtrace_tests::harness::{self, eventually};

/// A shell in a terminal of 80 columns and 24 lines; gone when dropped.
struct Terminal {
    folder: tempfile::TempDir,
    socket: String,
}

impl Terminal {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let terminal = Self {
            socket: format!("rtrace-{}-{}", std::process::id(), folder.path().display())
                .replace('/', "_"),
            folder,
        };
        let shell = "env -i PATH=/usr/bin:/bin TERM=screen PS1='$ ' bash --norc --noprofile -i";
        let size = ["-x", "80", "-y", "24"];
        terminal.tmux(&[&["new-session", "-d"][..], &size, &[shell]].concat())?;
        let binary = harness::binary()?;
        let folder = terminal.folder.path().display().to_string();
        terminal.line(&format!(
            "cd {folder}; alias r='{} record -q --'",
            binary.display()
        ))?;
        // An alias counts from the next line on.
        terminal.line("clear; echo begin")?;
        terminal.shows("begin")?;
        Ok(terminal)
    }

    fn tmux(&self, words: &[&str]) -> anyhow::Result<Output> {
        let output = Command::new("tmux")
            .args(["-f", "/dev/null", "-L", &self.socket])
            .args(words)
            .output()
            .context("tmux is needed: apt-get install tmux")?;
        ensure!(
            output.status.success(),
            "tmux {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output)
    }

    fn keys(&self, keys: &[&str]) -> anyhow::Result<()> {
        self.tmux(&[&["send-keys"][..], keys].concat()).map(drop)
    }

    fn line(&self, text: &str) -> anyhow::Result<()> {
        self.tmux(&["send-keys", "-l", text])?;
        self.keys(&["Enter"])
    }

    fn screen(&self) -> anyhow::Result<String> {
        let output = self.tmux(&["capture-pane", "-p"])?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Waits for a line that is this text.
    fn shows(&self, text: &str) -> anyhow::Result<()> {
        let seen = eventually(text, || {
            Ok(self.screen()?.lines().any(|line| line.trim() == text))
        });
        seen.with_context(|| format!("on the screen:\n{}", self.screen().unwrap_or_default()))
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace.parquet")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _gone = self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_full_screen_program_works_as_ever() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let terminal = Terminal::new()?;
    terminal.line("seq 1000 > numbers; r less numbers")?;
    terminal.shows("23")?;
    terminal.keys(&["G"])?;
    terminal.shows("1000")?;
    terminal.keys(&["q"])?;
    terminal.line("echo ended with $?")?;
    terminal.shows("ended with 0")?;
    let report = harness::report(&terminal.trace())?;
    assert!(report.trust.complete);
    Ok(())
}

#[test]
fn the_command_can_be_stopped_and_continued() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let terminal = Terminal::new()?;
    terminal.line("r sh -c 'echo started; read answer; echo got $answer; exit 4'")?;
    terminal.shows("started")?;
    terminal.keys(&["C-z"])?;
    eventually("the shell has its terminal back", || {
        Ok(terminal.screen()?.contains("Stopped"))
    })?;
    terminal.line("echo the shell works")?;
    terminal.shows("the shell works")?;
    terminal.line("fg")?;
    terminal.line("hello")?;
    terminal.shows("got hello")?;
    terminal.line("echo ended with $?")?;
    terminal.shows("ended with 4")?;
    let report = harness::report(&terminal.trace())?;
    assert!(report.trust.complete);
    Ok(())
}

#[test]
fn ctrl_c_ends_the_command_and_rtrace_says_how() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let terminal = Terminal::new()?;
    terminal.line("r sh -c 'echo started; sleep 1000'")?;
    terminal.shows("started")?;
    terminal.keys(&["C-c"])?;
    terminal.line("echo ended with $?")?;
    terminal.shows("ended with 130")?;
    assert!(harness::report(&terminal.trace())?.trust.complete);
    Ok(())
}

#[test]
fn whom_rtrace_waits_for_stands_on_the_terminal() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let terminal = Terminal::new()?;
    let binary = harness::binary()?;
    terminal.line(&format!(
        "{} record --wait-all sh -c 'sleep 1000 & echo $! > pid'",
        binary.display()
    ))?;
    eventually("the line of waiting", || {
        let screen = terminal.screen()?;
        Ok(screen.contains("the command has ended, 1 process is left"))
    })?;
    // A shell's background process takes no notice of it.
    terminal.keys(&["C-c"])?;
    eventually("the last lines", || {
        Ok(terminal.screen()?.contains("next:      rtrace report"))
    })?;
    let pid = std::fs::read_to_string(terminal.folder.path().join("pid"))?;
    let line = format!("alive:     sleep (pid {})", pid.trim());
    terminal.shows(&line)?;
    terminal.line("kill $(cat pid); echo killed with $?")?;
    terminal.shows("killed with 0")
}

#[test]
fn the_command_sees_a_terminal_that_is_resized() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let terminal = Terminal::new()?;
    terminal.line(
        "r bash -c 'trap \"stty size; exit\" WINCH; echo started; while sleep 0.1; do :; done'",
    )?;
    terminal.shows("started")?;
    terminal.tmux(&["resize-window", "-x", "100", "-y", "30"])?;
    terminal.shows("30 100")
}

#[test]
fn pipes_and_the_background_work() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let terminal = Terminal::new()?;
    terminal.line("r printf 'one\\ntwo\\n' | tail -n 1")?;
    terminal.shows("two")?;
    terminal.line("r sh -c 'sleep 0.2; echo from behind' & wait; echo waited")?;
    terminal.shows("from behind")?;
    terminal.shows("waited")?;
    // Who reads the terminal from behind is stopped, as without rtrace.
    terminal.line("r sh -c 'read answer; echo got $answer' &")?;
    eventually("it is stopped", || {
        // The shell says so before its next prompt.
        terminal.line("")?;
        Ok(terminal.screen()?.contains("Stopped"))
    })?;
    terminal.line("fg")?;
    terminal.line("hello")?;
    terminal.shows("got hello")
}
