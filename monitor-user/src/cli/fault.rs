//! Panics while reading: of a library on a damaged file, or a fault of rtrace. Either way one line.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, set_hook},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use anyhow::anyhow;

/// What the last panic said, and where.
static LAST: Mutex<String> = Mutex::new(String::new());

/// Runs a reader. The readers of trace files catch the panics of libraries themselves and make an
/// error of them; one that gets as far as here is rtrace's own.
pub(super) fn guarded(read: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    set_hook(Box::new(|panic| {
        let said = panic.to_string().replace('\n', " ");
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_panic| {
        let said = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        Err(anyhow!("this is a fault of rtrace: {said}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_one_line_that_says_where() {
        let result = guarded(|| panic!("two\nlines"));
        // Other tests want the usual message back.
        drop(std::panic::take_hook());
        let said = result.unwrap_err().to_string();
        assert!(
            said.contains("fault.rs") && said.contains("two lines"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
}
