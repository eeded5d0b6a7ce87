//! The schema as text, and the part of the documentation that is made from it.

use std::fmt::Write as _;

use crate::{
    testing::documentation,
    trace::schema::{COLUMNS, Col, Kind, VERSION},
};

fn kinds(of: &[Kind]) -> String {
    if of == Kind::ALL {
        return "every".to_owned();
    }
    let names: Vec<_> = of.iter().map(|kind| format!("`{}`", kind.name())).collect();
    names.join(", ")
}

/// The tables of kinds and columns in Markdown.
fn tables() -> String {
    let mut text = format!("This is version {VERSION}.\n\n### Kinds of rows\n\n");
    text += "| kind | meaning |\n|---|---|\n";
    for kind in Kind::ALL {
        writeln!(text, "| `{}` | {} |", kind.name(), kind.doc()).unwrap();
    }
    text += "\n### Columns\n\n| column | type | unit | in | meaning |\n|---|---|---|---|---|\n";
    for column in COLUMNS {
        let (name, of, unit) = (column.name, column.of.name(), column.unit);
        let kinds = kinds(column.kinds);
        writeln!(
            text,
            "| `{name}` | {of} | {unit} | {kinds} | {} |",
            column.doc
        )
        .unwrap();
    }
    text
}

#[test]
fn the_documentation_has_the_tables_of_the_schema() {
    let made = format!("\n{}\n", tables());
    documentation("trace-format.md", &[("made from schema.rs", made)]);
}

#[test]
fn the_schema_changes_only_on_purpose() {
    let mut text = format!("version {VERSION}\n");
    for field in crate::trace::schema::arrow_schema().fields() {
        let null = if field.is_nullable() {
            "null"
        } else {
            "always"
        };
        let unit = field.metadata().get("unit").map_or("", String::as_str);
        writeln!(
            text,
            "{} | {} | {null} | {unit}",
            field.name(),
            field.data_type()
        )
        .unwrap();
    }
    for kind in Kind::ALL {
        writeln!(text, "kind {} = {}", *kind as u8, kind.name()).unwrap();
    }
    insta::assert_snapshot!("schema", text);
}

#[test]
fn columns_are_found_under_their_own_name() {
    assert_eq!(Col::LostCounts as usize + 1, COLUMNS.len());
    assert_eq!(Col::PeakSwap.column().name, "peak_swap");
    for column in COLUMNS {
        let same = COLUMNS.iter().filter(|other| other.name == column.name);
        assert_eq!(same.count(), 1, "{}", column.name);
        assert!(column.doc.ends_with('.') && !column.kinds.is_empty());
    }
    for kind in Kind::ALL {
        assert_eq!(Kind::from_name(kind.name()), Some(*kind));
    }
}
