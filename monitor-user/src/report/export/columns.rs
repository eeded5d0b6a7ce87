//! Tables as lists of columns: what is written and what is documented come from the same list.

use super::cell::Cell;

/// A column of a table whose rows are made from `R`.
pub(super) struct Column<R> {
    /// Its name.
    pub(super) name: &'static str,
    /// What it holds, with its unit.
    pub(super) about: &'static str,
    /// What stands there.
    pub(super) cell: fn(&R) -> Cell,
}

/// A list of columns: a name, what it holds, and where it is from.
macro_rules! columns {
    ($row:ty: $($name:literal, $about:literal, $cell:expr;)*) => {
        [$($crate::report::export::columns::Column::<$row> {
            name: $name,
            about: $about,
            cell: $cell,
        }),*]
    };
}

pub(super) use columns;

/// The columns as a table in Markdown.
pub(super) fn markdown<R>(columns: &[Column<R>]) -> String {
    let row = |column: &Column<R>| format!("| `{}` | {} |\n", column.name, column.about);
    let rows: String = columns.iter().map(row).collect();
    format!("| column | what |\n|---|---|\n{rows}")
}
