//! `tree.work_elsewhere`: the command is a client, and its work runs outside of the tree.

use crate::{
    findings::{
        Finding, Rule, Scene, Severity, Value, elsewhere_line, needs::Need, rule::Found,
        scene::keys,
    },
    model::{Image, Process, program},
};

/// A program that has its work done elsewhere.
struct Client {
    /// Name of its file.
    name: &'static str,
    /// Its first words that do so; empty: any.
    verbs: &'static [&'static str],
    /// Words with which it does the work itself.
    not_with: &'static [&'static str],
    /// Where the work runs.
    place: &'static str,
    /// How to record there.
    instead: &'static str,
}

const CONTAINER: &[&str] = &[
    "run", "exec", "start", "create", "build", "buildx", "compose", "up",
];

const CLIENTS: &[Client] = &[
    Client {
        name: "docker",
        verbs: CONTAINER,
        not_with: &[],
        place: "in a container that the Docker daemon starts",
        instead: "while it runs, record its control group from this host: sudo rtrace record --cgroup \"$(sed -n \
            's/^0:://p' /proc/$(docker inspect -f '{{.State.Pid}}' CONTAINER)/cgroup)\"; or record inside of it: docker \
            run --privileged ... IMAGE rtrace record -o /out/trace.parquet -- CMD",
    },
    Client {
        name: "docker-compose",
        verbs: &["up", "run", "exec", "start"],
        not_with: &[],
        place: "in containers that the Docker daemon starts",
        instead: "record inside of the service: set its command to rtrace record -o /out/trace.parquet -- CMD",
    },
    Client {
        name: "nerdctl",
        verbs: CONTAINER,
        not_with: &[],
        place: "in a container that containerd starts",
        instead: "record inside of it: nerdctl run --privileged ... IMAGE rtrace record -o /out/trace.parquet -- CMD",
    },
    Client {
        name: "podman-remote",
        verbs: CONTAINER,
        not_with: &[],
        place: "in a container that a Podman service starts",
        instead: "record the service's host without --remote: rtrace record -- podman run ... IMAGE CMD",
    },
    Client {
        name: "kubectl",
        verbs: &["run", "exec", "apply", "create", "attach", "debug"],
        not_with: &[],
        place: "in a pod on a node of the cluster",
        instead: "record inside of the pod, or on its node: kubectl exec POD -- rtrace record -o trace.parquet -- CMD",
    },
    Client {
        name: "srun",
        verbs: &[],
        not_with: &[],
        place: "on the nodes of the job, started by slurmd",
        instead: "put the recorder behind srun, with a file for each task: srun ... sh -c 'exec rtrace record -o \
            trace.$SLURM_PROCID.parquet -- \"$@\"' rtrace CMD",
    },
    Client {
        name: "sbatch",
        verbs: &[],
        not_with: &[],
        place: "in a batch job",
        instead: "put the recorder into the job's script: rtrace record -o trace.$SLURM_JOB_ID.parquet -- CMD",
    },
    Client {
        name: "salloc",
        verbs: &[],
        not_with: &[],
        place: "partly in an allocation, where srun starts it",
        instead: "inside of the allocation: srun ... rtrace record -o trace.parquet -- CMD",
    },
    Client {
        name: "qsub",
        verbs: &[],
        not_with: &[],
        place: "in a batch job",
        instead: "put the recorder into the job's script: rtrace record -o trace.$JOB_ID.parquet -- CMD",
    },
    Client {
        name: "bsub",
        verbs: &[],
        not_with: &[],
        place: "in a batch job",
        instead: "put the recorder behind bsub: bsub ... rtrace record -o trace.parquet -- CMD",
    },
    Client {
        name: "condor_submit",
        verbs: &[],
        not_with: &[],
        place: "in a batch job",
        instead: "make rtrace the job's executable, with record -o trace.parquet -- CMD as its arguments",
    },
    Client {
        name: "systemd-run",
        verbs: &[],
        not_with: &["--scope"],
        place: "in a unit that systemd starts",
        instead: "let systemd-run start the recorder: systemd-run ... rtrace record -o /tmp/trace.parquet -- CMD, or \
            add --scope, which runs CMD itself",
    },
    Client {
        name: "at",
        verbs: &[],
        not_with: &[],
        place: "in a job of atd",
        instead: "put the recorder into the job: rtrace record -o trace.parquet -- CMD",
    },
    Client {
        name: "ssh",
        verbs: &[],
        not_with: &[],
        place: "on another host",
        instead: "record there: ssh HOST sudo rtrace record -o trace.parquet -- CMD",
    },
];

/// A client that uses less of the command's time than this many hundredths isn't what the command is about.
const MAIN_PERCENT: u64 = 50;

pub(super) const RULE: Rule = Rule {
    id: "tree.work_elsewhere",
    severity: Severity::Info,
    title: "a program of the tree is a client whose work runs outside of it",
    meaning: "docker, kubectl, srun, sbatch, systemd-run, ssh and the like ask a daemon or another host to do the \
        work. The processes that do it aren't descendants of the command, so nothing of their memory is in this \
        recording. If such a client is what the command is about, that is a warning.",
    measured: "File name and first words of executed programs. The client lived for at least half of the command's time, or \
        is the command: a warning; else information.",
    advice: "start the recorder where the work runs",
    wrong: "A program of the same name that does the work itself is taken for the client; a client that was asked \
        for its version or for help is too if its first word is one that usually starts work.",
    needs: &[Need::Execs],
    told_by: &[],
    detect,
};

fn detect(scene: &Scene<'_>, found: &mut Found) {
    for client in CLIENTS {
        let is_hit = |p: &&Process| p.images.iter().any(|image| is_call(client, image));
        let members: Vec<&Process> = scene.tree.processes.iter().filter(is_hit).collect();
        if members.is_empty() {
            continue;
        }
        let is_main = members.iter().any(|p| is_main(scene, p));
        let severity = if is_main {
            Severity::Warning
        } else {
            Severity::Info
        };
        let finding = Finding::new(&RULE, keys(&members))
            .severity(severity)
            .with("client", Value::Word(client.name))
            .with("place", Value::Word(client.place))
            .advise(instead(client, &members));
        found.push(finding.say(
            scene,
            "{who}: what {client} was asked to do runs {place}, so it isn't in this recording",
        ));
    }
    remote_podman(scene, found);
}

/// How to record there: the very line if the calls are all the same and it is certain where the recorder belongs.
fn instead(client: &Client, members: &[&Process]) -> String {
    let images = members.iter().flat_map(|process| &process.images);
    let calls =
        images.filter(|image| is_call(client, image) && image.argv_truncated == Some(false));
    let mut lines: Vec<Option<String>> = calls
        .filter_map(|image| called(image, client.name))
        .map(|words| elsewhere_line::line(client.name, words))
        .collect();
    lines.dedup();
    match &lines[..] {
        [Some(line)] => format!("start the recorder where the work runs: {line}"),
        _ => client.instead.to_owned(),
    }
}

/// Podman does the work itself unless it is told to let a service do it.
fn remote_podman(scene: &Scene<'_>, found: &mut Found) {
    let is_remote = |word: &[u8]| {
        word == b"--remote"
            || word == b"-r"
            || word.starts_with(b"--url")
            || word == b"--connection"
    };
    let is_hit = |p: &&Process| {
        p.images.iter().any(|image| {
            called(image, "podman")
                .is_some_and(|words| words.iter().take(3).any(|word| is_remote(word)))
        })
    };
    let members: Vec<&Process> = scene.tree.processes.iter().filter(is_hit).collect();
    if members.is_empty() {
        return;
    }
    let finding = Finding::new(&RULE, keys(&members))
        .severity(Severity::Warning)
        .with("client", Value::Word("podman --remote"))
        .with("place", Value::Word("in a container that a Podman service starts"))
        .advise("record without --remote on the service's host: rtrace record -- podman run ... IMAGE CMD".to_owned());
    found.push(finding.say(
        scene,
        "{who}: what {client} was asked to do runs {place}, so it isn't in this recording",
    ));
}

/// Arguments of the program behind its name, if the image is that program: as a file, or as a script.
fn called<'a>(image: &'a Image, name: &str) -> Option<&'a [Vec<u8>]> {
    let argv = image.argv.as_deref()?;
    let file = image.filename.as_deref().map(program::base);
    if file != Some(name.as_bytes()) {
        return None;
    }
    // For a script the kernel puts its interpreter in front.
    let at = argv
        .iter()
        .position(|word| program::base(word) == name.as_bytes())
        .unwrap_or(0);
    argv.get(at + 1..)
}

fn is_call(client: &Client, image: &Image) -> bool {
    let Some(words) = called(image, client.name) else {
        return false;
    };
    let has = |of: &[&str], word: &Vec<u8>| of.iter().any(|w| w.as_bytes() == word.as_slice());
    let first = words.iter().find(|word| !word.starts_with(b"-"));
    let asks = client.verbs.is_empty() && first.is_some()
        || first.is_some_and(|word| has(client.verbs, word));
    asks && !words.iter().any(|word| has(client.not_with, word))
}

/// Whether it is the command, or there for most of its time.
fn is_main(scene: &Scene<'_>, process: &Process) -> bool {
    let Some(root) = scene.root() else {
        return false;
    };
    let end = |p: &Process| p.end_ns().unwrap_or(scene.tree.end_ns);
    let (own, whole) = (
        end(process) - process.key.start_ns,
        end(root).saturating_sub(root.key.start_ns),
    );
    root.key == process.key || own.saturating_mul(100) >= whole.saturating_mul(MAIN_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::testkit::{raised, unassessed},
        model::testkit::Story,
    };

    fn ran(argv: &[&str]) -> Story {
        let mut story = Story::new();
        story.root(10, argv).after(500).exit(10, 0);
        story
    }

    #[test]
    fn clients_are_known_by_what_they_are_asked() {
        for argv in [
            &["/usr/bin/docker", "run", "--rm", "x"][..],
            &["kubectl", "exec", "pod", "--", "ls"],
            &["srun", "-n", "4", "./solver"],
            &["systemd-run", "--wait", "make"],
            &["podman", "--remote", "run", "x"],
            &["ssh", "host", "make"],
        ] {
            let found = raised(&ran(argv), RULE.id);
            assert_eq!(found.len(), 1, "{argv:?}");
            assert!(
                found
                    .iter()
                    .all(|f| f.severity == Severity::Warning && f.advice.contains("record")),
                "{argv:?}"
            );
        }
    }

    #[test]
    fn the_line_that_would_have_worked_is_told() {
        let advice = |argv: &[&str]| raised(&ran(argv), RULE.id)[0].advice.clone();
        assert_eq!(
            advice(&["/usr/bin/ssh", "-p", "22", "host", "make"]),
            "start the recorder where the work runs: ssh -p 22 host sudo rtrace record -o trace.parquet -- make"
        );
        // Where the command begins isn't certain.
        let unsure = advice(&["srun", "--unheard-of", "4", "job"]);
        assert!(unsure.contains("srun ... sh -c"), "{unsure}");
        let container = advice(&["docker", "run", "x"]);
        assert!(
            container.contains("--cgroup") && container.contains("{{.State.Pid}}"),
            "{container}"
        );
    }

    #[test]
    fn what_works_here_is_no_client() {
        for argv in [
            &["docker", "ps"][..],
            &["docker"],
            &["systemd-run", "--scope", "make"],
            &["podman", "run", "x"],
            &["srun"],
            &["/opt/mysrun", "x"],
        ] {
            assert_eq!(raised(&ran(argv), RULE.id), [], "{argv:?}");
        }
    }

    #[test]
    fn a_client_on_the_side_is_information() {
        let mut story = Story::new();
        story
            .root(10, &["make"])
            .fork(10, 20)
            .exec(20, &["ssh", "host", "date"])
            .after(10)
            .exit(20, 0);
        story.after(1_000).exit(10, 0);
        let found = raised(&story, RULE.id);
        assert_eq!(found[0].severity, Severity::Info);
        assert_eq!(found[0].subjects, [story.key(20)]);
    }

    #[test]
    fn without_execs_it_is_not_assessed() {
        let mut story = Story::new();
        story
            .root(10, &["make"])
            .fork(10, 20)
            .exec(20, &["ssh", "host", "date"])
            .lost("exec");
        assert!(unassessed(&story, RULE.id).is_some());
    }
}
