//! What Rust's test programs print about their result.

use std::ops::AddAssign;

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// Ignored, or a group that did not run.
    pub(crate) skipped: u32,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
pub(crate) fn result_line(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = Counts::default();
    for part in numbers.split("; ") {
        let (number, word) = part.trim().split_once(' ')?;
        match word {
            "passed" => counts.passed = number.parse().ok()?,
            "failed" => counts.failed = number.parse().ok()?,
            "ignored" => counts.skipped = number.parse().ok()?,
            _ => {}
        }
    }
    Some(counts)
}

/// The test programs named in cargo's messages, `--message-format=json-render-diagnostics`.
pub(super) fn programs(messages: &str) -> Vec<String> {
    let after = |line: &str, mark: &str| line.split_once(mark).map(|(_, rest)| rest.to_owned());
    messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"compiler-artifact\""))
        .filter(|line| {
            let profile = after(line, "\"profile\":{").unwrap_or_default();
            profile
                .split('}')
                .next()
                .unwrap_or_default()
                .contains("\"test\":true")
        })
        .filter_map(|line| {
            after(line, "\"executable\":\"")?
                .split('"')
                .next()
                .map(str::to_owned)
        })
        .collect()
}

/// Output folder of a package's build script, in the same messages.
pub(super) fn out_dir(messages: &str, package: &str) -> Option<String> {
    messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"build-script-executed\""))
        .filter(|line| {
            let id = line
                .split_once("\"package_id\":\"")
                .map_or("", |(_, rest)| rest);
            let id = id.split('"').next().unwrap_or_default();
            // A path's last part, or the name before the version.
            id.split(['/', '#', '@', ' ']).any(|part| part == package)
        })
        .filter_map(|line| line.split_once("\"out_dir\":\"")?.1.split('"').next())
        .map(str::to_owned)
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_line_has_three_numbers() {
        let line = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s";
        assert_eq!(
            result_line(line),
            Some(Counts {
                passed: 12,
                failed: 2,
                skipped: 1
            })
        );
        assert_eq!(result_line("test model::tree ... ok"), None);
        assert_eq!(result_line("test result: unclear"), None);
    }

    #[test]
    fn only_test_programs_are_taken() {
        let artifact = |executable: &str, test: bool| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"target\":{{\"name\":\"x\",\"test\":true}},\
                 \"profile\":{{\"opt_level\":\"3\",\"test\":{test}}},\"executable\":{executable}}}"
            )
        };
        let messages = [
            artifact("\"/t/deps/forks-1\"", true),
            artifact("\"/t/rtrace\"", false),
            artifact("null", true),
            "{\"reason\":\"build-finished\",\"success\":true}".to_owned(),
        ];
        assert_eq!(programs(&messages.join("\n")), ["/t/deps/forks-1"]);
    }

    #[test]
    fn the_output_folder_is_the_package_s_own() {
        let line = |id: &str, folder: &str| {
            format!(
                "{{\"reason\":\"build-script-executed\",\"package_id\":\"{id}\",\"out_dir\":\"{folder}\"}}"
            )
        };
        let messages = [
            line("registry+x#libc@0.2.1", "/t/libc/out"),
            line(
                "path+file:///clone/tests#rtrace-tests@0.1.0",
                "/t/tests/out",
            ),
        ];
        let found = out_dir(&messages.join("\n"), "rtrace-tests");
        assert_eq!(found.as_deref(), Some("/t/tests/out"));
    }
}
