//! Expectations: `peak<8GiB`, `survivors==0`, `pool.start_method=='spawn'`.

use super::{
    Verdict,
    quantity::{self, Known, Unit},
};
use crate::report::Report;

/// A comparison of a quantity with a value.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// As it was typed.
    pub text: String,
    quantity: quantity::Asked,
    operator: Operator,
    value: Literal,
}

/// What isn't an expectation, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no condition: {why}")]
pub struct ExpressionError {
    /// As it was typed.
    pub text: String,
    /// Why.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Other,
}

/// Longer ones first, since `<` begins `<=`.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::Other),
    ("<", Operator::Less),
    (">", Operator::More),
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Literal {
    Number(u64),
    Word(String),
}

impl Expectation {
    /// From `QUANTITY OPERATOR VALUE`.
    ///
    /// # Errors
    /// An unknown quantity or operator, or a value that doesn't fit the quantity.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let wrong = |why: String| ExpressionError {
            text: text.to_owned(),
            why,
        };
        let at = text.find(['<', '>', '=', '!']);
        let (name, rest) = at
            .map(|at| text.split_at(at))
            .ok_or_else(|| wrong("it has none of <, <=, >, >=, ==, !=".to_owned()))?;
        let (sign, operator) = OPERATORS
            .iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| wrong("it has none of <, <=, >, >=, ==, !=".to_owned()))?;
        let name = name.trim();
        let quantity = quantity::find(name)
            .ok_or_else(|| wrong(format!("'{name}' is none of {}", quantity::names())))?;
        let unit = quantity.unit();
        let value = literal(rest[sign.len()..].trim(), unit).map_err(wrong)?;
        let is_ordered = !matches!(operator, Operator::Equal | Operator::Other);
        if is_ordered && unit == Unit::Word {
            return Err(wrong(format!("{name} is a word: compare it by == or !=")));
        }
        Ok(Self {
            text: text.to_owned(),
            quantity,
            operator: *operator,
            value,
        })
    }

    /// Whether it holds in a report.
    pub(super) fn verdict(&self, report: &Report) -> Verdict {
        let known = self.quantity.of(report);
        let said = |known: &Known| {
            format!(
                "{} is {}",
                self.quantity.name(),
                quantity::told(known, self.quantity.unit())
            )
        };
        let holds = |known: &Known| self.holds(known);
        let of = |wanted: Option<bool>| {
            known
                .iter()
                .filter(|known| holds(known) == wanted)
                .map(&said)
                .collect()
        };
        let (violated, open): (Vec<String>, Vec<String>) = (of(Some(false)), of(None));
        if !violated.is_empty() {
            Verdict::Violated(violated)
        } else if !open.is_empty() {
            Verdict::Undecided(open)
        } else {
            Verdict::Holds
        }
    }

    /// Whether it holds for a value; `None` if what is known of that leaves it open.
    fn holds(&self, known: &Known) -> Option<bool> {
        match (known, &self.value) {
            (Known::Word(word), Literal::Word(wanted)) => {
                Some((word == wanted) == (self.operator == Operator::Equal))
            }
            (Known::Between(low, high), Literal::Number(limit)) => {
                between(*low, *high, self.operator, *limit)
            }
            // Not known; that kinds are the same, parsing has made sure.
            _ => None,
        }
    }
}

/// Whether all values from `low` to `high` (`None`: without end) satisfy the comparison, or none does.
fn between(low: u64, high: Option<u64>, operator: Operator, limit: u64) -> Option<bool> {
    let less = |strictly: bool| {
        let is_under = |n: u64| if strictly { n < limit } else { n <= limit };
        match (is_under(low), high.is_some_and(is_under)) {
            (_, true) => Some(true),
            (false, _) => Some(false),
            _ => None,
        }
    };
    let equal = || {
        if high == Some(low) {
            Some(low == limit)
        } else if limit < low || high.is_some_and(|high| limit > high) {
            Some(false)
        } else {
            None
        }
    };
    match operator {
        Operator::Less => less(true),
        Operator::AtMost => less(false),
        Operator::AtLeast => less(true).map(|is| !is),
        Operator::More => less(false).map(|is| !is),
        Operator::Equal => equal(),
        Operator::Other => equal().map(|is| !is),
    }
}

/// A value of a unit: `8GiB`, `1.5s`, `3`, `'spawn'`.
fn literal(text: &str, unit: Unit) -> Result<Literal, String> {
    if unit == Unit::Word {
        let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
        let word = quoted('\'').or_else(|| quoted('"')).unwrap_or(text);
        return if word.is_empty() {
            Err("the value is missing".to_owned())
        } else {
            Ok(Literal::Word(word.to_owned()))
        };
    }
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let scale = scale(suffix.trim(), unit)
        .ok_or_else(|| format!("'{text}' has no unit of {}", unit.example()))?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !is_number(part) || part.len() > 9 || (scale == 1 && !part.is_empty()) {
        return Err(format!("'{digits}' is no number for {}", unit.example()));
    }
    let whole: u64 = whole
        .parse()
        .map_err(|_too_large| format!("{whole} is too large"))?;
    // A part of a unit is cut to a whole number of bytes or ns.
    let thousandths = format!("{part:0<9}").parse::<u128>().unwrap_or(0);
    let rest = thousandths * u128::from(scale) / 1_000_000_000;
    let all = u128::from(whole) * u128::from(scale) + rest;
    u64::try_from(all)
        .map(Literal::Number)
        .map_err(|_too_large| format!("{text} is too large"))
}

/// How many bytes, ns or things a suffix means.
fn scale(suffix: &str, unit: Unit) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    match (unit, lower.as_str()) {
        (Unit::Count, "") | (Unit::Bytes, "" | "b") | (Unit::Time, "ns") => Some(1),
        (Unit::Bytes, "k" | "kib") => Some(1 << 10),
        (Unit::Bytes, "m" | "mib") => Some(1 << 20),
        (Unit::Bytes, "g" | "gib") => Some(1 << 30),
        (Unit::Bytes, "t" | "tib") => Some(1 << 40),
        (Unit::Bytes, "kb") | (Unit::Time, "us") => Some(1_000),
        (Unit::Bytes, "mb") | (Unit::Time, "ms") => Some(1_000_000),
        (Unit::Bytes, "gb") | (Unit::Time, "s") => Some(1_000_000_000),
        (Unit::Bytes, "tb") => Some(1_000_000_000_000),
        (Unit::Time, "min") => Some(60_000_000_000),
        (Unit::Time, "h") => Some(3_600_000_000_000),
        _ => None,
    }
}
