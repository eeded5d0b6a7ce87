//! Recording a container: exactly its processes, by its name, also before there is one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use anyhow::{Context, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rtrace_tests::{
    groups::{self, Group},
    harness::{self, eventually, tail_of},
    report::{Process, Report},
};

/// A started program that is killed when the test ends.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// A host's files as the runtimes of containers would have them, in a folder that a program sees in the place of the
/// true ones.
struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["lib", "log", "own"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program that sees them, with mounts of its own.
    fn call(&self, program: &Path) -> Command {
        // Podman's runtime works with control groups of version 1 or 2, not with both at once.
        const LINES: &str = "umount /sys/fs/cgroup/unified 2>/dev/null
            mkdir -p \"$0/lib/containers\" /var/lib /var/log
            mount --bind \"$0/lib\" /var/lib && mount --bind \"$0/log\" /var/log && exec \"$@\"";
        let mut call = Command::new("unshare");
        call.args(["--mount", "/bin/sh", "-c", LINES])
            .arg(self.folder.path())
            .arg(program)
            .stdin(Stdio::null());
        call
    }

    fn record(&self, container: &str) -> anyhow::Result<Command> {
        let mut call = self.call(&harness::binary()?);
        call.args(["record", "-o"])
            .arg(self.path("t.parquet"))
            .args(["--container", container])
            .stderr(fs::File::create(self.path("stderr"))?);
        Ok(call)
    }

    /// What rtrace has said.
    fn said(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.path("stderr"))?)
    }

    /// Writes down a container as Docker does: whole or not at all.
    fn docker(&self, id: &str, name: &str) -> anyhow::Result<()> {
        let folder = self.path("lib/docker/containers").join(id);
        fs::create_dir_all(&folder)?;
        let text =
            format!(r#"{{"State":{{}},"ID":"{id}","Config":{{"Labels":{{}}}},"Name":"/{name}"}}"#);
        fs::write(folder.join("part"), text)?;
        fs::rename(folder.join("part"), folder.join("config.v2.json"))?;
        Ok(())
    }

    fn report(&self, rtrace: &mut Victim) -> anyhow::Result<Report> {
        let status = rtrace.0.wait()?;
        ensure!(status.success(), "{status}: {}", self.said()?);
        let report = harness::report(&self.path("t.parquet"))?;
        ensure!(report.trust.complete, "{:?}", report.trust);
        Ok(report)
    }
}

/// Ids of test containers; two begin alike.
fn id(n: u8) -> String {
    format!("{:08x}{n:x}", std::process::id()).repeat(8)[..64].to_owned()
}

/// A control group with the name that a runtime gives it.
fn group_of(name: &str) -> Group {
    Group {
        folder: groups::top().join(name),
    }
}

#[test]
fn a_container_that_is_yet_to_be_made_is_recorded_from_its_first_process_on() -> anyhow::Result<()>
{
    let _alone = harness::alone()?;
    let host = Host::new()?;
    let mut rtrace = Victim(host.record("web")?.spawn()?);
    eventually("it waits", || {
        Ok(host
            .said()?
            .contains("waiting for container web to be started"))
    })?;
    ensure!(!host.path("t.parquet").exists());
    host.docker(&id(2), "other")?;
    host.docker(&id(1), "web")?;
    eventually(
        "the trace",
        || Ok(tail_of(&host.path("t.parquet")).exists()),
    )?;
    let others = group_of(&format!("docker-{}.scope", id(2)));
    let own = group_of(&format!("docker-{}.scope", id(1)));
    let run = |group: &Group| -> anyhow::Result<u32> {
        group.begin()?;
        let line = format!("{}; (exit 5); exit 3", group.enter());
        let mut inside = Command::new("/bin/sh").args(["-c", &line]).spawn()?;
        ensure!(inside.wait()?.code() == Some(3));
        Ok(inside.id())
    };
    run(&others)?;
    let inside = run(&own)?;
    let report = host.report(&mut rtrace)?;
    assert_eq!(report.processes.len(), 2, "{:?}", report.processes);
    assert_eq!(report.by_pid(inside)?.code(), Some(3));
    let told = report.recording.group.context("no group")?;
    assert_eq!(told.wanted, "web");
    assert_eq!(told.path, Some(format!("/docker-{}.scope", id(1))));
    let container = told.container.context("no container")?;
    assert_eq!(container.id, Some(id(1)));
    assert_eq!(container.name.as_deref(), Some("web"));
    assert_eq!(container.runtime.as_deref(), Some("Docker"));
    assert_eq!(container.pod, None);
    Ok(())
}

#[test]
fn a_running_container_of_kubernetes_is_found_by_its_pod() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let host = Host::new()?;
    let (own, other) = (id(3), id(4));
    let log = |pod: &str, id: &str| format!("log/containers/{pod}_shop_app-{id}.log");
    fs::create_dir(host.path("log/containers"))?;
    for (pod, id) in [("web-1", &own), ("web-2", &other)] {
        fs::write(host.path(&log(pod, id)), "")?;
    }
    let pod = Group::make(groups::top(), "kubepods")?;
    let uid = Group {
        folder: pod.folder.join("pod11-22"),
    };
    uid.begin()?;
    let inside = [&own, &other].map(|id| Group {
        folder: uid.folder.join(id),
    });
    let sleeps = |group: &Group| -> anyhow::Result<Victim> {
        group.begin()?;
        let line = format!("{}; exec sleep 1000", group.enter());
        let started = Command::new("/bin/sh").args(["-c", &line]).spawn()?;
        let victim = Victim(started);
        eventually("it is there", || {
            let procs = fs::read_to_string(group.folder.join("cgroup.procs"))?;
            Ok(!procs.is_empty())
        })?;
        Ok(victim)
    };
    let sleepers = [sleeps(&inside[0])?, sleeps(&inside[1])?];
    // Both are called app.
    let refused = host.record("app")?.status()?;
    assert_eq!(refused.code(), Some(125));
    let said = host.said()?;
    for name in ["shop/web-1", "shop/web-2"] {
        ensure!(
            said.contains(&format!("container app of pod {name} (")),
            "{said}"
        );
    }
    ensure!(!host.path("t.parquet").exists());
    let mut rtrace = Victim(host.record("shop/web-1/app")?.spawn()?);
    eventually(
        "the trace",
        || Ok(tail_of(&host.path("t.parquet")).exists()),
    )?;
    kill(Pid::from_raw(rtrace.0.id().try_into()?), Signal::SIGINT)?;
    let report = host.report(&mut rtrace)?;
    let pids: Vec<u32> = report.processes.iter().map(|one| one.pid).collect();
    assert_eq!(pids, [sleepers[0].0.id()]);
    let told = report.recording.group.context("no group")?;
    let container = told.container.context("no container")?;
    assert_eq!(container.id, Some(own));
    assert_eq!(container.pod.as_deref(), Some("web-1"));
    assert_eq!(container.namespace.as_deref(), Some("shop"));
    assert_eq!(container.pod_id.as_deref(), Some("11-22"));
    drop(sleepers);
    drop(inside);
    drop(uid);
    Ok(())
}

#[test]
fn there_is_no_container_in_that_time() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let host = Host::new()?;
    let mut call = host.record("never")?;
    let status = call.args(["--duration", "200ms"]).status()?;
    assert_eq!(status.code(), Some(125));
    let said = host.said()?;
    ensure!(
        said.contains("cannot record container never: there was none in that time"),
        "{said}"
    );
    ensure!(!host.path("t.parquet").exists());
    Ok(())
}

/// Programs of the image, all of which busybox is.
const APPLETS: [&str; 3] = ["sh", "sleep", "touch"];
const BUSYBOX: &str = "/bin/busybox";

/// Podman with an image of its own, in the host's storage.
struct Podman<'a> {
    host: &'a Host,
    program: PathBuf,
}

impl<'a> Podman<'a> {
    /// What there is of it; else why it can't run here.
    fn new(host: &'a Host) -> anyhow::Result<Result<Self, String>> {
        let program = PathBuf::from("/usr/bin/podman");
        for needed in [&program, Path::new(BUSYBOX)] {
            if !needed.exists() {
                return Ok(Err(format!("there is no {}", needed.display())));
            }
        }
        let podman = Self { host, program };
        let root = host.path("image");
        fs::create_dir_all(root.join("bin"))?;
        fs::copy(BUSYBOX, root.join("bin/busybox"))?;
        for name in APPLETS {
            std::os::unix::fs::symlink("busybox", root.join("bin").join(name))?;
        }
        let tar = host.path("image.tar");
        let packed = Command::new("tar")
            .arg("-C")
            .arg(&root)
            .arg("-cf")
            .arg(&tar)
            .arg(".")
            .status()?;
        ensure!(packed.success());
        let import = podman.call(&["import", &tar.to_string_lossy(), "box"])?;
        if !import.status.success() {
            return Ok(Err(last_line(&import)));
        }
        let tried = podman.run(&["--rm"], "exit 0")?;
        if !tried.status.success() {
            return Ok(Err(last_line(&tried)));
        }
        Ok(Ok(podman))
    }

    fn call(&self, words: &[&str]) -> anyhow::Result<Output> {
        let mut call = self.host.call(&self.program);
        call.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .arg("--root")
            .arg("/var/lib/containers/storage")
            .arg("--runroot")
            .arg(self.host.path("own"));
        Ok(call.args(words).output()?)
    }

    fn run(&self, options: &[&str], line: &str) -> anyhow::Result<Output> {
        // Without a network and with limits that are below any here.
        let fixed = [
            "run",
            "--network=none",
            "--ulimit=nofile=1024:1024",
            "--ulimit=nproc=512:512",
        ];
        let image = ["box", "/bin/sh", "-c", line];
        self.call(&[&fixed[..], options, &image].concat())
    }

    fn text(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.call(words)?;
        ensure!(output.status.success(), "{}", last_line(&output));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().last().unwrap_or_default().to_owned()
}

/// What runs in the container: each process writes down the pid that it has there, and one stays until it is killed.
const INSIDE: &str = "echo $$ >> /out/pids
    for i in 1 2 3; do sh -c 'echo $$ >> /out/pids; exit 5'; done
    sh -c 'echo $$ >> /out/pids; : > /out/ready; exec sleep 1000' &
    wait; exit 3";

#[test]
fn podmans_container_is_recorded_exactly() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let host = Host::new()?;
    let podman = match Podman::new(&host)? {
        Ok(podman) => podman,
        Err(why) => {
            println!("NOT RUN: podman doesn't run here: {why}");
            return Ok(());
        }
    };
    let name = format!("rtrace-test-{}", std::process::id());
    let mut rtrace = Victim(host.record(&name)?.spawn()?);
    eventually("it waits", || {
        Ok(host.said()?.contains("waiting for container"))
    })?;
    let out = host.path("out");
    fs::create_dir(&out)?;
    let volume = format!("--volume={}:/out", out.display());
    let started = podman.run(&["--detach", "--name", &name, &volume], INSIDE)?;
    ensure!(started.status.success(), "{}", last_line(&started));
    eventually("all have run", || Ok(out.join("ready").exists()))?;
    // Who is alive, by the pid inside and on the host.
    let top = podman.text(&["top", &name, "pid", "hpid"])?;
    let alive: BTreeMap<u32, u32> = top
        .lines()
        .skip(1)
        .map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse);
            let (inner, outer) = (numbers.next(), numbers.next());
            Ok((inner.context("pid")??, outer.context("hpid")??))
        })
        .collect::<anyhow::Result<_>>()?;
    ensure!(alive.len() == 2, "{top}");
    let (_, sleeper) = alive.last_key_value().context("nobody")?;
    kill(Pid::from_raw((*sleeper).try_into()?), Signal::SIGKILL)?;
    assert_eq!(podman.text(&["wait", &name])?, "3");
    let report = host.report(&mut rtrace)?;
    let identity = podman.text(&["inspect", "--format", "{{.Id}}", &name])?;
    podman.text(&["rm", &name])?;
    let written: BTreeSet<u32> = fs::read_to_string(out.join("pids"))?
        .lines()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    assert_eq!(written.len(), 5);
    let inner: BTreeSet<u32> = report
        .processes
        .iter()
        .filter_map(|one| one.pid_ns)
        .collect();
    assert_eq!(inner, written, "{:#?}", report.processes);
    assert_eq!(
        report.processes.len(),
        written.len(),
        "{:?}",
        report.processes
    );
    for (inside, outside) in &alive {
        let process = report.by_pid(*outside)?;
        assert_eq!(process.pid_ns, Some(*inside));
    }
    let codes: Vec<_> = report.processes.iter().filter_map(Process::code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 5).count(), 3);
    assert_eq!(report.by_pid(alive[&1])?.code(), Some(3));
    let told = report.recording.group.context("no group")?;
    ensure!(told.path.is_some_and(|path| path.contains(&identity)));
    let container = told.container.context("no container")?;
    assert_eq!((container.id, container.name), (Some(identity), Some(name)));
    assert_eq!(container.runtime.as_deref(), Some("Podman"));
    Ok(())
}
