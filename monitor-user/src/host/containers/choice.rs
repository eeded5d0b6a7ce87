//! Which container somebody means.

use super::is_start_of_id;
use crate::event::Container;

/// Digits of an id that are taken for one: fewer are rather a name.
const LEAST_DIGITS: usize = 4;
/// Candidates that are listed.
const LISTED: usize = 10;

/// The container that `text` names: by its id, its name, `POD/NAME`, `NAMESPACE/POD/NAME`, or the beginning of its id,
/// the first of these that fits. Where it fits several, the only one that runs. `None`: there is none.
///
/// # Errors
/// Several are meant; which, in one sentence.
pub fn choose(
    all: &[Container],
    text: &str,
    is_running: impl Fn(&Container) -> bool,
) -> Result<Option<Container>, String> {
    let is_id = |container: &Container| container.id.as_deref() == Some(text);
    let is_name = |container: &Container| names(container).iter().any(|name| name == text);
    let begins = |container: &Container| {
        let is_one = text.len() >= LEAST_DIGITS && is_start_of_id(text);
        is_one && container.id.as_ref().is_some_and(|id| id.starts_with(text))
    };
    let ways: [&dyn Fn(&Container) -> bool; 3] = [&is_id, &is_name, &begins];
    for is_meant in ways {
        let meant: Vec<&Container> = all.iter().filter(|container| is_meant(container)).collect();
        let running: Vec<&Container> = meant
            .iter()
            .copied()
            .filter(|one| is_running(one))
            .collect();
        match (&meant[..], &running[..]) {
            ([], _) => {}
            ([one], _) | (_, [one]) => return Ok(Some((*one).clone())),
            (_, []) => return Err(several(&meant)),
            _ => return Err(several(&running)),
        }
    }
    Ok(None)
}

/// What it can be called.
fn names(container: &Container) -> Vec<String> {
    let Some(name) = &container.name else {
        return Vec::new();
    };
    let mut names = vec![name.clone()];
    if let Some(pod) = &container.pod {
        names.push(format!("{pod}/{name}"));
        if let Some(namespace) = &container.namespace {
            names.push(format!("{namespace}/{pod}/{name}"));
        }
    }
    names
}

fn several(meant: &[&Container]) -> String {
    let listed: Vec<String> = meant.iter().take(LISTED).map(|one| one.words()).collect();
    let more = match meant.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "several are called that: {}{more}; name one by POD/NAME, NAMESPACE/POD/NAME or its id",
        listed.join("; ")
    )
}
