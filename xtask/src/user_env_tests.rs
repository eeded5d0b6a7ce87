use super::*;

fn env(text: &str) -> Env {
    text.lines()
        .filter_map(|line| line.trim().split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn caller(program: &str, text: &str) -> Caller {
    Caller {
        env: env(text),
        program: program.to_owned(),
    }
}

fn restored(own: &str, caller: Option<&Caller>) -> Env {
    let debian = |path: &Path| {
        [
            "/usr/lib/ssl/cert.pem",
            "/usr/lib/ssl/certs",
            "/etc/ssl/certs",
            "/etc/ssl/certs/ca-certificates.crt",
        ]
        .contains(&path.to_str().unwrap_or_default())
    };
    restore(&env(own), caller, Path::new("/t"), &debian)
}

/// What Debian's cargo adds.
const CARGO: &str = "CARGO=/usr/bin/cargo
    CARGO_MANIFEST_DIR=/w/xtask
    CARGO_MANIFEST_PATH=/w/xtask/Cargo.toml
    CARGO_PKG_NAME=xtask
    CARGO_PKG_VERSION_MAJOR=0
    SSL_CERT_FILE=/usr/lib/ssl/cert.pem
    SSL_CERT_DIR=/usr/lib/ssl/certs
    LD_LIBRARY_PATH=/t/release:/t/release/deps:/usr/lib/rustlib/x86_64-unknown-linux-gnu/lib";

/// What rustup's cargo adds for a user whose home is `/h/u` and whose `PATH` lacked cargo.
const RUSTUP: &str = "CARGO=/h/u/.rustup/toolchains/stable/bin/cargo
    CARGO_PKG_NAME=xtask
    HOME=/h/u
    CARGO_HOME=/h/u/.cargo
    RUSTUP_HOME=/h/u/.rustup
    RUSTUP_TOOLCHAIN=stable
    RUSTUP_TOOLCHAIN_SOURCE=default
    RUST_RECURSION_COUNT=1
    PATH=/h/u/.cargo/bin:/usr/bin:/bin
    LD_LIBRARY_PATH=/t/release:/t/release/deps:/h/u/.rustup/toolchains/stable/lib/rustlib/x/lib:/h/u/.rustup/toolchains/stable/lib";

#[test]
fn all_that_debians_cargo_adds_goes_and_the_rest_stays() {
    let own = format!(
        "{CARGO}\nHOME=/root\nCARGO_TERM_COLOR=never\nCARGO_HOME=/c\nRUST_BACKTRACE=1\nRUSTUP_TOOLCHAIN=x"
    );
    let want = env(
        "HOME=/root\nCARGO_TERM_COLOR=never\nCARGO_HOME=/c\nRUST_BACKTRACE=1\nRUSTUP_TOOLCHAIN=x",
    );
    assert_eq!(restored(&own, None), want);
}

#[test]
fn without_cargo_nothing_changes() {
    let own = "PATH=/bin\nCARGO_PKG_NAME=mine\nLD_LIBRARY_PATH=/t/release";
    assert_eq!(restored(own, None), env(own));
}

#[test]
fn all_that_rustup_adds_goes() {
    let want = env("HOME=/h/u\nPATH=/usr/bin:/bin");
    let make = caller("make", "HOME=/h/u\nPATH=/usr/bin:/bin");
    assert_eq!(restored(RUSTUP, Some(&make)), want);
}

#[test]
fn cargo_home_stays_on_path_unless_rustup_is_known_to_have_added_it() {
    let path =
        |own: &str, caller: Option<&Caller>| restored(own, caller)[OsStr::new("PATH")].clone();
    let with = "/h/u/.cargo/bin:/usr/bin:/bin";
    // Nothing known; a caller that had it; a login shell that may have added it after its start.
    assert_eq!(path(RUSTUP, None), with);
    assert_eq!(
        path(RUSTUP, Some(&caller("make", &format!("PATH={with}")))),
        with
    );
    let bash = caller("bash", "PATH=/usr/bin:/bin");
    assert_eq!(path(RUSTUP, Some(&bash)), with);
    assert_eq!(
        path(&format!("{RUSTUP}\n_=/h/u/.cargo/bin/cargo"), Some(&bash)),
        with
    );
    // The shell found another cargo first.
    assert_eq!(
        path(&format!("{RUSTUP}\n_=/usr/bin/cargo"), Some(&bash)),
        "/usr/bin:/bin"
    );
    // A caller with quite another PATH says nothing about this one.
    assert_eq!(path(RUSTUP, Some(&caller("make", "PATH=/opt/bin"))), with);
}

#[test]
fn a_path_that_was_not_set_is_not_set_again() {
    let own = RUSTUP.replace("PATH=/h/u/.cargo/bin:/usr/bin:/bin", "PATH=/h/u/.cargo/bin");
    assert!(!restored(&own, Some(&caller("make", "HOME=/h/u"))).contains_key(OsStr::new("PATH")));
}

#[test]
fn the_users_own_homes_stay() {
    let own = RUSTUP.replace("CARGO_HOME=/h/u/.cargo", "CARGO_HOME=/data/cargo");
    assert_eq!(
        restored(&own, None)[OsStr::new("CARGO_HOME")],
        "/data/cargo"
    );
    // Set by the user to the usual value.
    let make = caller("make", "CARGO_HOME=/h/u/.cargo");
    let env = restored(RUSTUP, Some(&make));
    assert_eq!(env[OsStr::new("CARGO_HOME")], "/h/u/.cargo");
    assert!(!env.contains_key(OsStr::new("RUSTUP_HOME")));
}

#[test]
fn a_toolchain_that_the_user_named_stays() {
    let own = RUSTUP.replace("SOURCE=default", "SOURCE=env");
    assert_eq!(
        restored(&own, None)[OsStr::new("RUSTUP_TOOLCHAIN")],
        "stable"
    );
    let short = caller("bash", "RUSTUP_TOOLCHAIN=st");
    assert_eq!(
        restored(&own, Some(&short))[OsStr::new("RUSTUP_TOOLCHAIN")],
        "st"
    );
    assert!(!restored(RUSTUP, None).contains_key(OsStr::new("RUSTUP_TOOLCHAIN")));
}

#[test]
fn the_recursion_count_goes_back_by_one() {
    let own = RUSTUP.replace("COUNT=1", "COUNT=4");
    assert_eq!(
        restored(&own, None)[OsStr::new("RUST_RECURSION_COUNT")],
        "3"
    );
}

#[test]
fn the_users_part_of_the_library_path_stays() {
    let libraries = |tail: &str, caller: Option<&Caller>| {
        restored(&format!("{CARGO}{tail}"), caller)
            .get(OsStr::new("LD_LIBRARY_PATH"))
            .cloned()
    };
    assert_eq!(libraries("", None), None);
    assert_eq!(libraries(":", None), Some("".into()), "set but empty");
    assert_eq!(libraries(":/a:/b", None), Some("/a:/b".into()));
    assert_eq!(
        libraries(":/a::/t/release", None),
        Some("/a::/t/release".into())
    );
    // The user's own part begins with a folder that cargo adds as well.
    let own = "/usr/lib/rustlib/x86_64-unknown-linux-gnu/lib:/a";
    let make = caller("make", &format!("LD_LIBRARY_PATH={own}"));
    assert_eq!(libraries(&format!(":{own}"), Some(&make)), Some(own.into()));
}

#[test]
fn certificates_of_the_user_stay() {
    let file = |own: &str, caller: Option<&Caller>| {
        restored(own, caller)
            .get(OsStr::new("SSL_CERT_FILE"))
            .cloned()
    };
    let own = CARGO.replace(
        "/usr/lib/ssl/cert.pem",
        "/etc/ssl/certs/ca-certificates.crt",
    );
    assert_eq!(
        file(&own, None),
        Some("/etc/ssl/certs/ca-certificates.crt".into())
    );
    let make = caller("make", "SSL_CERT_FILE=/usr/lib/ssl/cert.pem");
    assert_eq!(
        file(CARGO, Some(&make)),
        Some("/usr/lib/ssl/cert.pem".into())
    );
    // Named a file that isn't there: cargo put its own in its place.
    let make = caller("make", "SSL_CERT_FILE=/gone.pem");
    assert_eq!(file(CARGO, Some(&make)), Some("/gone.pem".into()));
    assert_eq!(file(CARGO, None), None);
}

#[test]
fn a_caller_under_cargo_or_sudo_is_no_hint() {
    let nested = caller(
        "sh",
        "CARGO_MANIFEST_DIR=/x\nCARGO=/other/cargo\nSSL_CERT_FILE=/usr/lib/ssl/cert.pem",
    );
    let env = restored(CARGO, Some(&nested));
    assert!(!env.contains_key(OsStr::new("CARGO")));
    assert!(!env.contains_key(OsStr::new("SSL_CERT_FILE")));
    let sudo = caller("sudo", "CARGO=/mine");
    assert!(!restored(CARGO, Some(&sudo)).contains_key(OsStr::new("CARGO")));
    let make = caller("make", "CARGO=/mine");
    assert_eq!(restored(CARGO, Some(&make))[OsStr::new("CARGO")], "/mine");
}
