//! The layers of rtrace and what each may use: the one place that says it.

/// A top module of the crate `rtrace`.
pub(super) struct Layer {
    pub(super) name: &'static str,
    /// The other layers that it may use.
    pub(super) uses: &'static [&'static str],
    /// Whether it takes values and returns values, and never touches the world.
    pub(super) is_pure: bool,
}

const fn layer(name: &'static str, uses: &'static [&'static str], is_pure: bool) -> Layer {
    Layer {
        name,
        uses,
        is_pure,
    }
}

/// The command line ties everything together.
const BELOW_CLI: &[&str] = &[
    "units", "event", "decode", "trace", "model", "findings", "report", "host", "record", "doctor",
];

/// Every layer; one that isn't here is an error. `main` is the binary, `testing` is there for unit tests only.
pub(super) const LAYERS: [Layer; 13] = [
    layer("testing", &[], false),
    layer("units", &[], true),
    layer("event", &["units"], true),
    layer("decode", &["units", "event"], true),
    layer("trace", &["testing", "units", "event", "decode"], false),
    layer("model", &["units", "event", "decode"], true),
    layer("findings", &["testing", "units", "event", "model"], true),
    layer(
        "report",
        &["testing", "units", "event", "model", "findings"],
        true,
    ),
    layer("host", &["units", "event"], false),
    layer("record", &["units", "event", "decode", "host"], false),
    layer("doctor", &["units", "host"], true),
    layer("cli", BELOW_CLI, false),
    layer("main", &["cli"], false),
];

/// What a pure layer may not name, as the beginning of a path.
pub(super) const WORLD: [&[&str]; 6] = [
    &["aya"],
    &["aya_obj"],
    &["parquet"],
    &["std", "fs"],
    &["std", "env"],
    &["std", "net"],
];

/// Clocks: what a pure layer may not name at any place of a path.
pub(super) const CLOCKS: [&str; 2] = ["Instant", "SystemTime"];

/// The layer of this name.
pub(super) fn find(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}
