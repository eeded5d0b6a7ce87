//! What a user may get wrong, and what rtrace says: one line, a status, and nothing left behind.
//!
//! `RTRACE_WRITE_DOCS=1` writes what was typed and what came out to `docs/bad-input.md`.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, ensure};
use nix::{sys::stat::Mode, unistd::mkfifo};
use rtrace_tests::{disk::Disk, harness};

mod hosts;
mod traces;

/// Typed after `rtrace`, the status, and a part of what is said.
const TYPED: [(&str, i32, &str); 34] = [
    (
        "record -- no-such-program",
        127,
        "no-such-program: command not found",
    ),
    (
        "record -- ./no-such-file",
        127,
        "./no-such-file: command not found",
    ),
    (
        "record -- ./a-text-file",
        126,
        "cannot run ./a-text-file: permission denied",
    ),
    (
        "record -- ./a-folder",
        126,
        "cannot run ./a-folder: permission denied",
    ),
    (
        "record -- ./without-interpreter",
        127,
        "cannot run ./without-interpreter",
    ),
    (
        "record -o nowhere/t.parquet -- true",
        125,
        "cannot write to nowhere: No such file",
    ),
    (
        "record -o a-folder -- true",
        125,
        "cannot write a-folder: it is a folder",
    ),
    (
        "record -o a-text-file/t.parquet -- true",
        125,
        "cannot write to a-text-file",
    ),
    (
        "record -o a-text-file/ -- true",
        125,
        "cannot write a-text-file/: Not a directory",
    ),
    (
        "record -o a-pipe -- true",
        125,
        "cannot write a-pipe: it exists and is no file",
    ),
    (
        "record -o read-only/t.parquet -- true",
        125,
        "cannot write to read-only: Read-only file system",
    ),
    (
        "record -o full/t.parquet -- true",
        125,
        "No space left on device",
    ),
    ("record -o  -- true", 125, "a value is required"),
    (
        "record --otput x -- true",
        125,
        "unexpected argument '--otput' found",
    ),
    ("record", 125, "required arguments were not provided"),
    ("record --buffer 3x -- true", 125, "'3x' is no size"),
    (
        "record --without nonsense -- true",
        125,
        "there is no hook 'nonsense'",
    ),
    ("recrod -- true", 2, "unrecognized subcommand 'recrod'"),
    ("report nowhere.parquet", 2, "there is no such file"),
    (
        "export nowhere.parquet --format csv",
        2,
        "there is no such file",
    ),
    (
        "export empty --format jsonl -o out/table",
        2,
        "the file is empty",
    ),
    ("export empty", 2, "required arguments were not provided"),
    (
        "export empty --format cvs",
        2,
        "invalid value 'cvs' for '--format <FORMAT>'",
    ),
    ("report a-folder", 2, "it is a folder, not a trace file"),
    ("report empty", 2, "the file is empty"),
    (
        "report a-text-file",
        2,
        "it is not a trace: not a Parquet file",
    ),
    ("report random", 2, "it is not a trace: not a Parquet file"),
    ("report damaged.parquet", 2, "damaged.parquet"),
    (
        "report newer.parquet",
        2,
        "newer.parquet: it has trace format 9.",
    ),
    (
        "report another.parquet",
        2,
        "it is a Parquet file, but not a trace recorded by rtrace",
    ),
    ("report cut.parquet", 2, "cut.parquet"),
    ("report --width 3 empty", 2, "invalid value '3'"),
    (
        "doctor --btf a-text-file",
        2,
        "cannot judge a-text-file: no BTF",
    ),
    (
        "doctor --btf nowhere",
        2,
        "cannot judge nowhere: cannot read nowhere: No such file",
    ),
];

/// The same as a user without rights.
const WITHOUT_RIGHTS: [(&str, i32, &str); 3] = [
    (
        "record -o out/t.parquet -- true",
        125,
        "recording needs root or three capabilities",
    ),
    (
        "record -o mine/t.parquet -- true",
        125,
        "cannot write to mine: Permission denied",
    ),
    ("report mine/secret", 2, "permission denied"),
];

struct Place {
    folder: tempfile::TempDir,
    /// Mounted while the place is in use.
    read_only: Disk,
    full: Disk,
}

impl Place {
    fn new() -> anyhow::Result<Self> {
        let place = Self {
            folder: tempfile::tempdir()?,
            read_only: Disk::read_only()?,
            full: Disk::in_memory(64)?,
        };
        place.full.fill();
        let path = |name: &str| place.path().join(name);
        let mode =
            |name: &str, mode| fs::set_permissions(path(name), fs::Permissions::from_mode(mode));
        mode("", 0o755)?;
        fs::copy(harness::binary()?, path("rtrace"))?;
        symlink(place.read_only.path(), path("read-only"))?;
        symlink(place.full.path(), path("full"))?;
        mkfifo(&path("a-pipe"), Mode::S_IRWXU)?;
        fs::create_dir(path("a-folder"))?;
        fs::create_dir(path("out"))?;
        mode("out", 0o777)?;
        fs::create_dir(path("mine"))?;
        fs::write(path("mine/secret"), "x")?;
        mode("mine/secret", 0o600)?;
        fs::write(path("empty"), "")?;
        fs::write(path("a-text-file"), "hello, this is text\n")?;
        // Multiples of an odd number: bytes without order, the same each time.
        let random: Vec<u8> = (0..5000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        fs::write(path("random"), &random)?;
        let damaged = [b"PAR1", random.as_slice(), &[64, 0, 0, 0], b"PAR1"].concat();
        fs::write(path("damaged.parquet"), damaged)?;
        fs::write(path("without-interpreter"), "#!/no/such/interpreter\n")?;
        mode("without-interpreter", 0o755)?;
        traces::write_into(place.path())?;
        Ok(place)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, as_nobody: bool, typed: &str) -> anyhow::Result<Output> {
        let mut call = if as_nobody {
            let mut call = Command::new("setpriv");
            call.args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "./rtrace",
            ]);
            call
        } else {
            Command::new("./rtrace")
        };
        call.args(typed.split(' ')).current_dir(self.path());
        Ok(call.output()?)
    }

    /// Every file below, with its size.
    fn files(&self) -> anyhow::Result<BTreeMap<PathBuf, u64>> {
        let mut files = BTreeMap::new();
        for folder in ["", "a-folder", "out", "mine", "full"] {
            for entry in fs::read_dir(self.path().join(folder))? {
                let entry = entry?;
                files.insert(entry.path(), entry.metadata()?.len());
            }
        }
        Ok(files)
    }
}

#[test]
fn each_mistake_has_a_clear_word_and_leaves_nothing_behind() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let place = Place::new()?;
    let before = place.files()?;
    let mut page = "| typed | status | said |\n|---|---|---|\n".to_owned();
    let as_root = TYPED.iter().map(|line| (false, line));
    let as_nobody = WITHOUT_RIGHTS.iter().map(|line| (true, line));
    for (is_nobody, (typed, status, expected)) in as_root.chain(as_nobody) {
        let output = place.run(is_nobody, typed)?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(
            output.status.code() == Some(*status),
            "{typed}: {}: {said}",
            output.status
        );
        ensure!(
            output.stdout.is_empty(),
            "{typed}: something on standard output"
        );
        ensure!(said.contains(expected), "{typed}: {said}");
        let is_usage = said.starts_with("error: ");
        ensure!(
            is_usage || said.lines().count() == 1,
            "{typed}: more than a line: {said}"
        );
        ensure!(!said.contains("panicked"), "{typed}: {said}");
        ensure!(place.files()? == before, "{typed}: files have changed");
        let who = if is_nobody { " (without rights)" } else { "" };
        let first = said.lines().next().unwrap_or_default();
        let shown = first
            .replace(&*place.path().to_string_lossy(), ".")
            .replace('|', "\\|");
        writeln!(page, "| `rtrace {typed}`{who} | {status} | `{shown}` |")?;
    }
    write_section("mistakes", &page)
}

#[test]
fn a_wrong_option_is_met_with_the_right_one() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let place = Place::new()?;
    for (typed, suggested) in [
        ("record --otput x -- true", "'--output'"),
        ("report --jsn", "'--json'"),
        ("recrod", "'record'"),
    ] {
        let output = place.run(false, typed)?;
        let said = String::from_utf8(output.stderr)?;
        assert!(said.contains(suggested), "{typed}: {said}");
    }
    Ok(())
}

#[test]
fn without_rights_the_line_that_would_work_is_said_to_the_letter() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let place = Place::new()?;
    let output = place.run(true, "record -o out/it's.parquet -- /bin/echo a;b")?;
    let said = String::from_utf8(output.stderr)?;
    let (_, line) = said
        .trim_end()
        .split_once("sudo ")
        .context("no such line")?;
    // A shell as root stands for sudo.
    let mut shell = Command::new("/bin/sh");
    let run = shell
        .args(["-c", line])
        .current_dir(place.path())
        .output()?;
    assert_eq!(String::from_utf8(run.stdout)?, "a;b\n", "{line}");
    assert!(place.path().join("out/it's.parquet").exists());
    Ok(())
}

#[test]
fn a_folder_that_was_removed_is_told() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let place = Place::new()?;
    let mut shell = Command::new("/bin/sh");
    shell.args([
        "-c",
        "mkdir gone && cd gone && rmdir ../gone && exec ../rtrace record -- touch ../out/ran",
    ]);
    let output = shell.current_dir(place.path()).output()?;
    let said = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert_eq!(said, "rtrace: cannot write to .: it has been removed\n");
    assert!(!place.path().join("out/ran").exists());
    Ok(())
}

/// Puts a table into the page between its marks, if that is asked for.
fn write_section(name: &str, table: &str) -> anyhow::Result<()> {
    if std::env::var_os("RTRACE_WRITE_DOCS").is_none() {
        return Ok(());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bad-input.md");
    let text = fs::read_to_string(&page)?;
    let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {name}: {word} -->"));
    let (before, rest) = text.split_once(&begin).context("no mark")?;
    let (_, after) = rest.split_once(&end).context("no mark")?;
    fs::write(&page, format!("{before}{begin}\n{table}{end}{after}"))?;
    Ok(())
}
