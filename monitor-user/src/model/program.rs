//! What a person would call a program, from its arguments.

/// How an interpreter names what it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    Python,
    Shell,
    Other,
}

/// Name of a program with the argument that tells most: `python3 pool.py`, `python3 -m http.server`,
/// `sh -c 'make all'`, else the last part of its path. Bytes as they are; nothing is escaped.
///
/// `comm` serves where there are no arguments. A program that was given the name of another one is
/// told by its file first: `true as sshd`.
pub fn label(filename: &[u8], argv: &[Vec<u8>], comm: &[u8]) -> Vec<u8> {
    let label = own_label(filename, argv, comm);
    match truth(filename, argv) {
        Some(file) => [file, label.as_slice()].join(&b" as "[..]),
        None => label,
    }
}

/// Name of the executed file, if the arguments give another one.
fn truth<'a>(filename: &'a [u8], argv: &[Vec<u8>]) -> Option<&'a [u8]> {
    let called = argv.first().filter(|a| !a.is_empty())?;
    let name = base(called);
    // Links to what is open say nothing by their last part.
    let is_link = filename.starts_with(b"/proc/") || filename.starts_with(b"/dev/fd/");
    let file = if is_link { filename } else { base(filename) };
    let is_shell = |name: &[u8]| name.strip_prefix(b"-") == Some(file);
    if file.is_empty() || name == file || is_shell(name) {
        return None;
    }
    // Of a script the kernel puts the interpreter in front, and the label tells the script.
    let told = interpreter(name).and_then(|kind| told_by(kind, argv.get(1..).unwrap_or_default()));
    (told.as_deref() != Some(file)).then_some(file)
}

fn own_label(filename: &[u8], argv: &[Vec<u8>], comm: &[u8]) -> Vec<u8> {
    let called = argv.first().filter(|a| !a.is_empty()).map(Vec::as_slice);
    let name = match called.or(Some(filename).filter(|f| !f.is_empty())) {
        // A login shell calls itself "-bash".
        Some(path) => base(path).to_vec(),
        None => comm.to_vec(),
    };
    let Some(kind) = interpreter(&name) else {
        return name;
    };
    match told_by(kind, argv.get(1..).unwrap_or_default()) {
        Some(rest) => [name.as_slice(), rest.as_slice()].join(&b' '),
        None => name,
    }
}

/// Last part of a path.
pub fn base(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    let start = path[..end].iter().rposition(|b| *b == b'/');
    let last = &path[start.map_or(0, |at| at + 1)..end];
    if last.is_empty() { path } else { last }
}

fn interpreter(name: &[u8]) -> Option<Interpreter> {
    let stem = name.strip_prefix(b"-").unwrap_or(name);
    let word = stem
        .iter()
        .position(|b| !b.is_ascii_alphabetic())
        .map_or(stem, |end| &stem[..end]);
    match word {
        b"python" | b"pypy" => Some(Interpreter::Python),
        b"sh" | b"bash" | b"dash" | b"zsh" | b"ksh" | b"tcsh" | b"csh" | b"busybox" => {
            Some(Interpreter::Shell)
        }
        b"perl" | b"ruby" | b"node" | b"Rscript" | b"java" | b"env" | b"php" => {
            Some(Interpreter::Other)
        }
        _ => None,
    }
}

/// The first argument that isn't an option, or what `-c`, `-m`, `-e`, `-jar` gives.
fn told_by(kind: Interpreter, args: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_slice() {
            b"-c" => {
                let code = rest.next()?;
                let helper = multiprocessing_helper(code).filter(|_| kind == Interpreter::Python);
                return Some(helper.unwrap_or_else(|| [b"-c '", code.as_slice(), b"'"].concat()));
            }
            // To a shell, -e is something else.
            b"-e" if kind == Interpreter::Other => {
                return Some([b"-e '", rest.next()?.as_slice(), b"'"].concat());
            }
            b"-m" if kind == Interpreter::Python => {
                return Some([b"-m ", rest.next()?.as_slice()].concat());
            }
            b"-jar" => return Some([b"-jar ", base(rest.next()?)].concat()),
            // Options of Python that take the next argument along.
            b"-W" | b"-X" if kind == Interpreter::Python => {
                rest.next()?;
            }
            // Shells join options: -ec CODE.
            [b'-', letters @ ..] if kind == Interpreter::Shell && letters.ends_with(b"c") => {
                return Some([b"-c '", rest.next()?.as_slice(), b"'"].concat());
            }
            b"-o" | b"+o" | b"-O" if kind == Interpreter::Shell => {
                rest.next()?;
            }
            [b'-', ..] => {}
            script => return Some(base(script).to_vec()),
        }
    }
    None
}

/// Name of the module in the command line by which Python's multiprocessing starts its helpers:
/// `-c 'from multiprocessing.spawn import spawn_main; …'` (CPython 3.8 to 3.13, `Lib/multiprocessing`).
/// The code is the same up to there in each of them, so nothing of it would be left in a narrow column.
fn multiprocessing_helper(code: &[u8]) -> Option<Vec<u8>> {
    let rest = code.strip_prefix(b"from multiprocessing.")?;
    let end = rest
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || *b == b'_'))?;
    (end > 0 && rest[end..].starts_with(b" import "))
        .then(|| [b"multiprocessing.", &rest[..end]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> String {
        executed(words.first().unwrap_or(&"/usr/bin/x"), words)
    }

    fn executed(file: &str, words: &[&str]) -> String {
        let argv: Vec<Vec<u8>> = words.iter().map(|a| a.as_bytes().to_vec()).collect();
        String::from_utf8(label(file.as_bytes(), &argv, b"comm")).unwrap()
    }

    #[test]
    fn a_name_that_is_not_the_files_comes_after_it() {
        for (file, words, expected) in [
            ("/bin/true", &["[kthreadd]"][..], "true as [kthreadd]"),
            ("/tmp/x", &["/usr/sbin/sshd", "-D"], "x as sshd"),
            ("/tmp/x", &["sh", "good.sh"], "x as sh good.sh"),
            ("/tmp/x", &["sh", "good.sh", "/tmp/x"], "x as sh good.sh"),
            ("/proc/self/exe", &["good"], "/proc/self/exe as good"),
            ("/bin/busybox", &["ls", "-l"], "busybox as ls"),
        ] {
            assert_eq!(executed(file, words), expected);
        }
    }

    #[test]
    fn shells_at_login_and_scripts_go_by_their_names() {
        for (file, words, expected) in [
            ("/bin/bash", &["-bash"][..], "-bash"),
            ("./run.sh", &["/bin/sh", "./run.sh", "x"], "sh run.sh"),
            (
                "/a/run.sh",
                &["/bin/bash", "-e", "/a/run.sh"],
                "bash run.sh",
            ),
            (
                "./pool.py",
                &["/usr/bin/python3", "./pool.py"],
                "python3 pool.py",
            ),
            (
                "/usr/bin/python3",
                &["python3", "pool.py"],
                "python3 pool.py",
            ),
            ("/bin/true", &[], "true"),
            ("/bin/true", &[""], "true"),
        ] {
            assert_eq!(executed(file, words), expected);
        }
    }

    #[test]
    fn interpreters_are_called_by_what_they_run() {
        assert_eq!(
            of(&["/usr/bin/python3", "-u", "/a/b/pool.py", "8"]),
            "python3 pool.py"
        );
        assert_eq!(
            of(&["python3.11", "-X", "dev", "-m", "http.server"]),
            "python3.11 -m http.server"
        );
        assert_eq!(of(&["python", "-c", "print(1)"]), "python -c 'print(1)'");
        assert_eq!(of(&["sh", "-ec", "make all"]), "sh -c 'make all'");
        assert_eq!(
            of(&["bash", "-e", "-o", "pipefail", "/x/run.sh"]),
            "bash run.sh"
        );
        assert_eq!(of(&["-bash", "--login"]), "-bash");
        assert_eq!(
            of(&["java", "-Xmx2g", "-jar", "/opt/a.jar"]),
            "java -jar a.jar"
        );
        assert_eq!(of(&["/bin/true", "x"]), "true");
        assert_eq!(of(&[]), "x");
        assert_eq!(of(&["python3"]), "python3");
        assert_eq!(of(&["python3", "-m"]), "python3");
    }

    #[test]
    fn helpers_of_multiprocessing_have_names() {
        let spawn =
            "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)";
        assert_eq!(
            of(&["/usr/bin/python3", "-c", spawn, "--multiprocessing-fork"]),
            "python3 multiprocessing.spawn"
        );
        let others = [
            "from multiprocessing.x",
            "from multiprocessing. import y",
            "from multiprocessing import y",
        ];
        for code in others {
            assert_eq!(of(&["python3", "-c", code]), format!("python3 -c '{code}'"));
        }
        assert_eq!(of(&["sh", "-c", spawn]), format!("sh -c '{spawn}'"));
    }

    #[test]
    fn without_a_path_the_kernels_name_serves() {
        assert_eq!(label(b"", &[], b"worker"), b"worker");
        assert_eq!(base(b"/"), b"/");
        assert_eq!(base(b"/usr/bin/"), b"bin");
    }
}
