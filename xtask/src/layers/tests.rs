use super::*;

/// A tree of sources in a folder of its own, removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-layers-{}-{name}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("create the folder");
            fs::write(path, text).expect("write the file");
        }
        Self(root)
    }

    /// The problems, without the folder's name.
    fn problems(&self) -> Vec<String> {
        let folder = format!("{}/", self.0.display());
        check(&self.0)
            .expect("readable")
            .into_iter()
            .map(|line| line.replace(&folder, ""))
            .collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("remove the folder");
    }
}

#[test]
fn a_good_tree_has_no_problems() {
    let tree = Tree::new(
        "good",
        &[
            ("lib.rs", "pub mod units; pub mod event; pub mod model;"),
            ("main.rs", "fn main() { rtrace::cli::run() }"),
            ("units.rs", "pub struct Bytes(pub u64);"),
            ("event/mod.rs", "use crate::units::Bytes;"),
            (
                "event/memory.rs",
                "use super::super::units::Bytes; use super::Kind;",
            ),
            (
                "model/mod.rs",
                "use crate::{event::{Event, memory::*}, units};\n// crate::report::Report\nmod tests { use super::*; use std::fs; }",
            ),
            (
                "record/load.rs",
                "use std::{env, fs, time::Instant}; use crate::decode; use aya::Ebpf;",
            ),
            (
                "cli.rs",
                "use crate::{record, report, trace, model, findings};",
            ),
        ],
    );
    assert_eq!(tree.problems(), Vec::<String>::new());
}

#[test]
fn wrong_arrows_are_found_with_their_line() {
    let tree = Tree::new(
        "bad",
        &[
            (
                "event/mod.rs",
                "\nuse crate::{\n    units,\n    model::Tree,\n};",
            ),
            ("model/mod.rs", "fn f() { crate::trace::read() }"),
            (
                "model/deep.rs",
                "use super::super::report::Report;\nmod inner { use super::super::super::cli; }",
            ),
            ("trace.rs", "use super::model;"),
            ("report/text.rs", "use crate::record;"),
            ("main.rs", "use rtrace::model::Model;"),
        ],
    );
    let want = [
        "event/mod.rs:4: `event` may not use `model`",
        "main.rs:1: `main` may not use `model`",
        "model/deep.rs:1: `model` may not use `report`",
        "model/deep.rs:2: `model` may not use `cli`",
        "model/mod.rs:1: `model` may not use `trace`",
        "report/text.rs:1: `report` may not use `record`",
        "trace.rs:1: `trace` may not use `model`",
    ];
    assert_eq!(tree.problems(), want);
}

#[test]
fn unknown_modules_are_problems() {
    let tree = Tree::new(
        "unknown",
        &[
            ("helpers.rs", ""),
            ("model/mod.rs", "use crate::helpers::f;\nuse crate::*;"),
        ],
    );
    let want = [
        "helpers.rs:1: `helpers` is no known layer: give it a place in xtask/src/layers/table.rs",
        "model/mod.rs:1: `model` uses `helpers`, which is no known layer",
        "model/mod.rs:2: `model` uses `*`, which is no known layer",
    ];
    assert_eq!(tree.problems(), want);
}

#[test]
fn pure_layers_may_not_touch_the_world() {
    let tree = Tree::new(
        "pure",
        &[
            (
                "model/mod.rs",
                "use std::{collections::BTreeMap, fs::File};\nuse std::time::Duration;\nlet now = Instant::now();",
            ),
            (
                "report/text.rs",
                "let home = std::env::var(\"HOME\");\nuse parquet::file;\nuse std::time::{Duration, SystemTime};\nlet s = \"std::fs\";",
            ),
            ("findings/a.rs", "use aya::maps::Map;"),
        ],
    );
    let want = [
        "findings/a.rs:1: `findings` is pure and may not name `aya::maps::Map`",
        "model/mod.rs:1: `model` is pure and may not name `std::fs::File`",
        "model/mod.rs:3: `model` is pure and may not name `Instant::now`",
        "report/text.rs:1: `report` is pure and may not name `std::env::var`",
        "report/text.rs:2: `report` is pure and may not name `parquet::file`",
        "report/text.rs:3: `report` is pure and may not name `std::time::SystemTime`",
    ];
    assert_eq!(tree.problems(), want);
}

#[test]
fn every_layer_uses_only_layers_there_are() {
    for layer in &table::LAYERS {
        for used in layer.uses {
            let other = table::find(used).expect("a layer");
            assert!(
                !other.uses.contains(&layer.name),
                "{} and {used} use each other",
                layer.name
            );
        }
    }
}
