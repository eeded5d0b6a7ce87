//! A program that `cargo xtask run` starts has the environment that its user had before cargo.
//!
//! Every test compares `env` with and without `cargo xtask` before it, from the same clean start.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

type Env = BTreeMap<String, String>;

/// Folder of build output: the running cargo has put xtask there, and finds it there again.
fn target() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask"));
    program
        .ancestors()
        .nth(2)
        .expect("a build folder")
        .to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace")
        .to_owned()
}

/// The cargo of the toolchain that runs this test.
fn cargo() -> PathBuf {
    env::var_os("CARGO")
        .map(PathBuf::from)
        .expect("cargo tells its tests where it is")
}

/// rustup's stand-in for it, if rustup runs this test.
fn stand_in() -> Option<PathBuf> {
    env::var_os("RUSTUP_TOOLCHAIN")?;
    let file = Path::new(&env::var_os("CARGO_HOME")?).join("bin/cargo");
    file.exists().then_some(file)
}

/// What a user has in any case. Without root, `sudo` is one that changes nothing and asks for nothing.
fn user(first_on_path: Option<&Path>) -> Env {
    let tools = target().join("tmp/no-sudo");
    fs::create_dir_all(&tools).expect("create a folder");
    let sudo = tools.join("sudo");
    fs::write(&sudo, "#!/bin/sh\nshift\nexec \"$@\"\n").expect("write sudo");
    fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).expect("make it a program");
    let first = first_on_path
        .map(|folder| format!("{}:", folder.display()))
        .unwrap_or_default();
    let home = env::var("HOME").expect("a home");
    let mut vars = Env::from([
        (
            "PATH".to_owned(),
            format!("{first}{}:/usr/bin:/bin", tools.display()),
        ),
        (
            "CARGO_TARGET_DIR".to_owned(),
            target().display().to_string(),
        ),
        ("CARGO_NET_OFFLINE".to_owned(), "true".to_owned()),
        ("RUSTUP_AUTO_INSTALL".to_owned(), "0".to_owned()),
    ]);
    for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let value = env::var(name)
            .ok()
            .filter(|value| Path::new(value) != Path::new(&home).join(usual));
        vars.extend(value.map(|value| (name.to_owned(), value)));
    }
    vars.insert("HOME".to_owned(), home);
    vars
}

/// Runs `env` in an environment of `vars`, called by `caller`, and returns what it sees.
fn seen(vars: &Env, caller: &[&str], before: &[String]) -> Env {
    let output = Command::new("/usr/bin/env")
        .arg("-i")
        .args(vars.iter().map(|(name, value)| format!("{name}={value}")))
        .args(caller)
        .args(before)
        .args(["/usr/bin/env", "-0"])
        .current_dir(root())
        .output()
        .expect("env runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{before:?} failed: {messages}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let entries = text
        .split_terminator('\0')
        .map(|entry| entry.split_once('=').expect("NAME=VALUE"));
    // `_` is the shell's note of the program it started, which differs for good.
    entries
        .filter(|(name, _)| *name != "_")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A shell that stays: it doesn't become its last command.
const SHELL: [&str; 4] = ["/bin/sh", "-c", "\"$@\"; exit $?", "sh"];
/// A caller that is no shell.
const TIMEOUT: [&str; 2] = ["/usr/bin/timeout", "600"];

fn same_with_and_without(vars: &Env, caller: &[&str], cargo: &Path) {
    let words = [cargo.to_str().expect("UTF-8"), "xtask", "run-as"].map(str::to_owned);
    let with = seen(vars, caller, &words);
    let without = seen(vars, caller, &[]);
    assert_eq!(with, without, "called by {caller:?}");
}

#[test]
fn nothing_of_cargo_is_left() {
    let cargo = cargo();
    let vars = user(cargo.parent());
    same_with_and_without(&vars, &SHELL, &cargo);
    same_with_and_without(&vars, &TIMEOUT, &cargo);
}

#[test]
fn the_users_own_variables_survive() {
    let cargo = cargo();
    let mut vars = user(cargo.parent());
    let own = [
        ("LD_LIBRARY_PATH", "/opt/fsl/lib::/opt/other lib"),
        ("CARGO_TERM_COLOR", "never"),
        ("RUST_BACKTRACE", "full"),
        ("SSL_CERT_DIR", "/usr/share"),
        ("OMP_NUM_THREADS", "4"),
        ("EMPTY", ""),
        ("TWO_LINES", "a\nb=c"),
    ];
    vars.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    same_with_and_without(&vars, &SHELL, &cargo);
    vars.insert("LD_LIBRARY_PATH".to_owned(), String::new());
    same_with_and_without(&vars, &SHELL, &cargo);
}

#[test]
fn nothing_of_rustup_is_left() {
    let Some(cargo) = stand_in() else {
        // Another test covers a cargo without rustup; say so where the output is shown.
        println!("not under rustup");
        return;
    };
    same_with_and_without(&user(cargo.parent()), &SHELL, &cargo);
    // rustup puts its folder on a PATH without it; only a caller that can't have exported it tells that.
    same_with_and_without(&user(None), &TIMEOUT, &cargo);
}

#[test]
fn arguments_arrive_as_they_are() {
    let cargo = cargo();
    let vars = user(cargo.parent());
    let output = Command::new(&cargo)
        .args([
            "xtask", "run-as", "printf", "%s|", "--help", "--", "a b", "", "-x",
        ])
        .env_clear()
        .envs(&vars)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "--help|--|a b||-x|"
    );
}
