//! Workers of pools that outlive the owner of their pool.

use crate::{
    findings::{
        Finding, Rule, Scene, Value,
        scene::{found, keys, lived_until, signal},
    },
    model::Process,
};

/// Workers that leave within this time after their owner don't count, ns: it takes them a moment to notice.
const GRACE_NS: u64 = 250_000_000;

/// A finding of `rule` for each pool whose workers outlived its owner, still without its sentence; and that owner.
pub(super) fn living_on<'a>(scene: &Scene<'a>, rule: &Rule) -> Vec<(Finding, &'a Process)> {
    let pools = scene.pools.pools.iter();
    let found = pools.filter_map(|pool| {
        let owner = scene.process(pool.owner)?;
        let end = owner.end_ns()?;
        let mut workers = found(scene, &pool.workers);
        workers.retain(|worker| {
            let until = lived_until(scene, worker);
            until.is_some_and(|until| until > end.saturating_add(GRACE_NS))
        });
        let last = workers.iter().filter_map(|w| lived_until(scene, w)).max()?;
        let finding = Finding::new(rule, keys(&workers))
            .at(end)
            .with("owner", Value::Process(pool.owner))
            .with_known("signal", signal(owner).map(Value::Signal))
            .with("after_ns", Value::Span(last - end));
        Some((finding, owner))
    });
    found.collect()
}
