//! The command line that puts the recorder where a client has its work done.
//!
//! It is made only where every option of the client is known, so that it is certain where its own command begins.

/// How a client's command line is built.
struct Syntax {
    /// Name of its file.
    name: &'static str,
    /// Letters of options that take a value.
    valued: &'static str,
    /// Letters of options that take none.
    flags: &'static str,
    /// Long options whose value may be the next word.
    long_valued: &'static [&'static str],
    /// Long options without a value.
    long_flags: &'static [&'static str],
    /// Words before the command: a host.
    before: usize,
    /// What is put in front of the command.
    recorder: &'static str,
}

const SYNTAXES: &[Syntax] = &[
    // ssh(1) of OpenSSH 9.
    Syntax {
        name: "ssh",
        valued: "BbcDEeFIiJLlmOopQRSWw",
        flags: "46AaCfGgKkMNnqsTtVvXxYy",
        long_valued: &[],
        long_flags: &[],
        before: 1,
        recorder: "sudo rtrace record -o trace.parquet --",
    },
    // srun(1) of Slurm 23.
    Syntax {
        name: "srun",
        valued: "AbBcCdDeFGiJLmMnNopqrStTwWx",
        flags: "EHkKlOQsuvXZ",
        long_valued: &[
            "account",
            "cpus-per-task",
            "error",
            "gres",
            "job-name",
            "mem",
            "mpi",
            "nodes",
            "ntasks",
            "ntasks-per-node",
            "output",
            "partition",
            "time",
        ],
        long_flags: &[
            "exact",
            "exclusive",
            "label",
            "overlap",
            "oversubscribe",
            "pty",
            "quiet",
            "unbuffered",
        ],
        before: 0,
        // srun starts it once for each task, and expands nothing in arguments.
        recorder: "sh -c 'exec rtrace record -o trace.$SLURM_PROCID.parquet -- \"$@\"' rtrace",
    },
    // systemd-run(1) of systemd 252.
    Syntax {
        name: "systemd-run",
        valued: "HMupE",
        flags: "tPqGrd",
        long_valued: &[
            "description",
            "gid",
            "nice",
            "property",
            "service-type",
            "setenv",
            "slice",
            "uid",
            "unit",
            "working-directory",
        ],
        long_flags: &[
            "collect",
            "no-block",
            "pipe",
            "pty",
            "quiet",
            "remain-after-exit",
            "same-dir",
            "wait",
        ],
        before: 0,
        recorder: "rtrace record -o /tmp/trace.parquet --",
    },
];

/// The client's call with the recorder in it; `words` are its arguments. `None` if it isn't certain where that belongs.
pub(super) fn line(client: &str, words: &[Vec<u8>]) -> Option<String> {
    let words: Vec<&str> = words
        .iter()
        .map(|word| std::str::from_utf8(word).ok())
        .collect::<Option<_>>()?;
    if client == "kubectl" {
        let at = words.iter().position(|word| *word == "--")? + 1;
        let recorder = "rtrace record -o /tmp/trace.parquet --";
        return joined(client, &words[..at], recorder, words.get(at..)?);
    }
    let syntax = SYNTAXES.iter().find(|syntax| syntax.name == client)?;
    let at = command(syntax, &words)?;
    let (before, own) = words.split_at(at);
    if client == "ssh" {
        return of_ssh(syntax, before, own);
    }
    joined(client, before, syntax.recorder, own)
}

/// The other host's shell reads the words once more: what is more than words to it has to be read by a shell that is
/// recorded.
fn of_ssh(syntax: &Syntax, before: &[&str], own: &[&str]) -> Option<String> {
    if own.iter().all(|word| is_plain(word)) {
        return joined(syntax.name, before, syntax.recorder, own);
    }
    let script = quoted(&own.join(" "))?;
    let remote = quoted(&format!("{} sh -c {script}", syntax.recorder))?;
    joined(syntax.name, before, &remote, &[])
}

/// Where the command begins that the client is to have done.
fn command(syntax: &Syntax, words: &[&str]) -> Option<usize> {
    let mut at = 0;
    let mut before = syntax.before;
    loop {
        let word = *words.get(at)?;
        if word == "--" {
            return (before == 0 && at + 1 < words.len()).then_some(at + 1);
        }
        at += 1;
        if let Some(long) = word.strip_prefix("--") {
            if long.contains('=') || syntax.long_flags.contains(&long) {
                continue;
            }
            at += usize::from(syntax.long_valued.contains(&long).then_some(true)?);
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            at += usize::from(takes_next(syntax, short)?);
        } else if before > 0 {
            before -= 1;
        } else {
            return Some(at - 1);
        }
    }
}

/// Whether the value of the last of some letters is the next word; `None` if one isn't known.
fn takes_next(syntax: &Syntax, letters: &str) -> Option<bool> {
    for (at, letter) in letters.char_indices() {
        if syntax.valued.contains(letter) {
            return Some(at + letter.len_utf8() == letters.len());
        }
        if !syntax.flags.contains(letter) {
            return None;
        }
    }
    Some(false)
}

fn joined(client: &str, before: &[&str], recorder: &str, own: &[&str]) -> Option<String> {
    let mut line = vec![client.to_owned()];
    for word in before {
        line.push(quoted(word)?);
    }
    line.push(recorder.to_owned());
    for word in own {
        line.push(quoted(word)?);
    }
    Some(line.join(" "))
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c))
}

/// A word for a shell; `None` for one that a line can't show.
fn quoted(word: &str) -> Option<String> {
    if is_plain(word) {
        return Some(word.to_owned());
    }
    let is_shown = word.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    is_shown.then(|| format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(call: &[&str]) -> Option<String> {
        let words: Vec<Vec<u8>> = call[1..].iter().map(|w| w.as_bytes().to_vec()).collect();
        line(call[0], &words)
    }

    #[test]
    fn the_recorder_stands_before_the_clients_command() {
        for (call, expected) in [
            (
                &["ssh", "-p", "22", "-tv", "me@host", "make", "-j4"][..],
                "ssh -p 22 -tv me@host sudo rtrace record -o trace.parquet -- make -j4",
            ),
            (
                &["ssh", "host", "cd /x && make"],
                "ssh host 'sudo rtrace record -o trace.parquet -- sh -c '\\''cd /x && make'\\'''",
            ),
            (
                &[
                    "srun", "-n4", "--mpi", "pmix", "--mem=2G", "./solver", "a b",
                ],
                "srun -n4 --mpi pmix --mem=2G sh -c 'exec rtrace record -o trace.$SLURM_PROCID.parquet -- \"$@\"' \
                 rtrace ./solver 'a b'",
            ),
            (
                &[
                    "systemd-run",
                    "--wait",
                    "-p",
                    "CPUQuota=50%",
                    "--",
                    "job",
                    "-x",
                ],
                "systemd-run --wait -p CPUQuota=50% -- rtrace record -o /tmp/trace.parquet -- job -x",
            ),
            (
                &["kubectl", "exec", "-it", "pod", "--", "ls"],
                "kubectl exec -it pod -- rtrace record -o /tmp/trace.parquet -- ls",
            ),
        ] {
            assert_eq!(of(call).as_deref(), Some(expected), "{call:?}");
        }
    }

    #[test]
    fn where_it_is_not_certain_there_is_none() {
        for call in [
            &["ssh", "host"][..],
            &["ssh", "-?", "host", "ls"],
            &["srun", "--new-option", "4", "job"],
            &["srun", "-n"],
            &["systemd-run", "--user", "job"],
            &["kubectl", "exec", "pod", "ls"],
            &["srun", "job", "a\nb"],
            &["docker", "run", "x"],
        ] {
            assert_eq!(of(call), None, "{call:?}");
        }
    }
}
