//! Builds the BPF side with the toolchain that `cargo xtask setup` found, and copies the object to `OUT_DIR`.
//!
//! Not by aya-build: that insists on rustup's nightly and builds `core` again for every profile.

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const TARGET: &str = "bpfel-unknown-none";
const BINARY: &str = "rtrace-bpf";
const SETTINGS: &str = "toolchain.env";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../monitor-ebpf");
    for path in ["src", "Cargo.toml", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", source.join(path).display());
    }
    // The folder of all build output: the nearest one above OUT_DIR with the settings in it.
    let found = out
        .ancestors()
        .map(|dir| dir.join(SETTINGS))
        .find(|file| file.is_file());
    let Some(file) = found else {
        // Asked again at the next build: without this, cargo would remember the failure only.
        println!(
            "cargo::rerun-if-changed={}",
            out.join("no-toolchain-yet").display()
        );
        println!(
            "cargo::error=no BPF toolchain is set up for this build folder: run `cargo xtask setup` first"
        );
        return;
    };
    println!("cargo::rerun-if-changed={}", file.display());
    let settings = read_settings(&file);
    let target_dir = file.parent().expect("a file has a folder").join("bpf");
    let status = cargo(&settings, &source, &target_dir).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            println!(
                "cargo::error=building the BPF side failed ({status}); its messages are among what follows"
            );
            // Only then does cargo show what a build script's commands have printed.
            std::process::exit(1);
        }
        Err(error) => {
            println!(
                "cargo::error=cannot start {}: {error}; run `cargo xtask setup`",
                settings["CARGO"]
            );
            return;
        }
    }
    let object = target_dir.join(TARGET).join("release").join(BINARY);
    fs::copy(&object, out.join(BINARY)).expect("copy the BPF object to OUT_DIR");
}

fn cargo(settings: &HashMap<String, String>, source: &Path, target_dir: &Path) -> Command {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target's architecture");
    let flags = [
        format!("-Clinker={}", settings["BPF_LINKER"]),
        "-Clink-arg=--btf".into(),
        "-Cdebuginfo=2".into(),
        "-Cpanic=abort".into(),
        "-Ccodegen-units=1".into(),
        "-Coverflow-checks=off".into(),
        format!("--cfg=bpf_target_arch=\"{arch}\""),
    ];
    let mut command = Command::new(&settings["CARGO"]);
    command
        .current_dir(source)
        .args(["build", "--release", "--locked", "-Z", "build-std=core"])
        .args(["--target", TARGET, "--bin", BINARY, "--target-dir"])
        .arg(target_dir);
    // What the outer cargo tells its build scripts must not reach the inner one.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO") && name != "CARGO_HOME" && name != "CARGO_NET_OFFLINE"
            || name.starts_with("RUST")
        {
            command.env_remove(&*name);
        }
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    command.envs(settings.iter().filter(|(name, _)| name.starts_with("RUST")));
    command
}

fn read_settings(file: &Path) -> HashMap<String, String> {
    fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
