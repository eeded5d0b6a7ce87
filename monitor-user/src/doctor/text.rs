//! The judgement for people.

use super::{Judgement, Status};

/// A line for each check, with what to do below it.
pub fn text(judgement: &Judgement) -> String {
    let mut out = String::new();
    for check in &judgement.checks {
        let word = match check.status {
            Status::Ok => "ok",
            Status::Warn => "less",
            Status::Fail => "NO",
            Status::Unknown => "-",
        };
        out += &format_line(word, check.id, &check.text);
        if let Some(fix) = &check.fix {
            out += &format_line("", "", &format!("-> {fix}"));
        }
    }
    out += if judgement.can_record {
        "rtrace can record here.\n"
    } else {
        "rtrace can't record here.\n"
    };
    out
}

/// Columns of a terminal that nobody has widened.
const WIDTH: usize = 80;
/// Columns before the text.
const INDENT: usize = 20;

fn format_line(word: &str, id: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = format!("{:<INDENT$}", format!("{word:<6}{id}"));
    for word in text.split(' ') {
        if line.len() > INDENT && line.len() + word.len() > WIDTH {
            out += line.trim_end();
            out.push('\n');
            line = " ".repeat(INDENT);
        }
        line += word;
        line.push(' ');
    }
    out + line.trim_end() + "\n"
}

/// What to send to an administrator. `program`: rtrace's file; `capabilities`: what it needs on this kernel.
pub fn for_admin(program: &str, capabilities: &str) -> String {
    format!(
        "I would like to record which processes my jobs create and how much memory they use, with rtrace.\n\
         Please run one of these on the hosts that I use:\n\
         \n\
         \x20   sudo setcap {capabilities} {program}\n\
         \x20   echo 'USER ALL=(root) {program} record *' | sudo tee /etc/sudoers.d/rtrace     (put my name for USER)\n\
         \n\
         Why that is safe:\n\
         * It attaches programs to the kernel's tracepoints for fork, exec, exit and memory counters. The kernel\n\
         \x20 checks them before it runs them; they read, never change anything, and go when rtrace ends or is killed.\n\
         * Only the command that I start and its descendants are recorded. The command runs with my rights.\n\
         * rtrace gives up all but the right to pass on signals once it records, and has no network code.\n\
         * The trace is a file of mine that nobody else can read. Secrets in arguments are hidden in it.\n\
         Reading a trace needs no rights.\n\
         \n\
         To undo it:\n\
         \n\
         \x20   sudo setcap -r {program}\n\
         \x20   sudo rm /etc/sudoers.d/rtrace\n"
    )
}
