//! Facts about the recording as metadata of the file.
//!
//! Each field of [`Recording`] has a key of its own, `rtrace.` and its name. Text stands there as it
//! is, everything else as JSON; what isn't known has no key.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::ReadError;
use super::schema::{VERSION, Version};
use crate::event::Recording;

/// Prefix of all keys.
pub(super) const PREFIX: &str = "rtrace.";
/// Key of the version of the trace format.
pub(super) const VERSION_KEY: &str = "rtrace.schema_version";

/// Fields of a recording by name.
pub(super) type Fields = Map<String, Value>;

/// The fields of a recording, with the rows counted by the writer itself.
///
/// # Errors
///
/// Those of `serde_json`, none of which a [`Recording`] can cause.
pub(super) fn fields(
    recording: &Recording,
    rows: &BTreeMap<String, u64>,
) -> Result<Fields, serde_json::Error> {
    let mut fields = match serde_json::to_value(recording)? {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    };
    fields.insert("events".to_owned(), serde_json::to_value(rows)?);
    Ok(fields)
}

/// The fields of `new` that aren't the same in `old`.
pub(super) fn changed(old: &Fields, new: &Fields) -> Fields {
    new.iter()
        .filter(|(name, value)| old.get(*name) != Some(*value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Keys and values for a Parquet footer.
pub(super) fn key_values(fields: &Fields) -> Vec<(String, String)> {
    let version = (VERSION_KEY.to_owned(), VERSION.to_string());
    let rest = fields.iter().filter(|(_, value)| !value.is_null());
    std::iter::once(version)
        .chain(rest.map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (format!("{PREFIX}{name}"), text)
        }))
        .collect()
}

/// The recording that these fields describe. Fields that this version doesn't know are ignored.
///
/// # Errors
///
/// [`ReadError::Metadata`] if a field has the wrong type.
pub(super) fn recording(fields: Fields) -> Result<Recording, ReadError> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| ReadError::Metadata(error.to_string()))
}

/// Takes version and fields from the keys of a footer.
///
/// # Errors
///
/// [`ReadError::NotATrace`] without a version, [`ReadError::Newer`] and [`ReadError::Older`] for
/// another major version, [`ReadError::Metadata`] for values that make no sense.
pub(super) fn from_key_values<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Fields, ReadError> {
    let template = serde_json::to_value(Recording::default())
        .map_err(|error| ReadError::Metadata(error.to_string()))?;
    let mut version = None;
    let mut fields = Fields::new();
    for (key, text) in pairs {
        if key == VERSION_KEY {
            version = Some(text);
        } else if let Some(name) = key.strip_prefix(PREFIX)
            && let Some(example) = template.get(name)
        {
            let value = if example.is_string() {
                Value::String(text.to_owned())
            } else {
                serde_json::from_str(text)
                    .map_err(|error| ReadError::Metadata(format!("{key}: {error}")))?
            };
            fields.insert(name.to_owned(), value);
        }
    }
    check_version(version.ok_or(ReadError::NotATrace)?)?;
    Ok(fields)
}

/// Refuses traces of another major version.
///
/// # Errors
///
/// See [`from_key_values`].
pub(super) fn check_version(text: &str) -> Result<(), ReadError> {
    let version: Version = text
        .parse()
        .map_err(|_error| ReadError::Metadata(format!("version {text:?}")))?;
    match version.major.cmp(&VERSION.major) {
        std::cmp::Ordering::Greater => Err(ReadError::Newer(version)),
        std::cmp::Ordering::Less => Err(ReadError::Older(version)),
        std::cmp::Ordering::Equal => Ok(()),
    }
}
