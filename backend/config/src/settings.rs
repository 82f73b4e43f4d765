//! The effective settings with their origin, for people. Secrets are left out, and so is what addresses may have of them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Map, Value};
use url::Url;

use super::{Config, HIDDEN, ModelConfig, is_secret};

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key as a TOML file names it, such as `http.listen`.
    pub key: String,
    /// The effective value; null if unset, and for a secret.
    pub value: Value,
    /// The value without a setting; null if none.
    pub default: Value,
    /// True for a secret, whose value is not told.
    pub is_secret: bool,
    /// True if there is a value.
    pub is_set: bool,
    /// True if the value is another one than the default.
    pub is_changed: bool,
    /// Source of the value.
    pub origin: Origin,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// No source names the setting.
    Default,
    /// The settings file.
    File,
    /// The environment variable of this name.
    Environment(String),
}

/// The keys that sources name. A key may be that of a table, all of whose settings are named then.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    pub(super) file: BTreeSet<String>,
    /// The variables by their keys.
    pub(super) environment: BTreeMap<String, String>,
}

impl Origins {
    fn of(&self, path: &[&str]) -> Origin {
        let mut within = (1..=path.len()).map(|length| joined(&path[..length]));
        let variable = within.clone().find_map(|key| self.environment.get(&key));
        if let Some(variable) = variable {
            return Origin::Environment(variable.clone());
        }
        match within.any(|key| self.file.contains(&key)) {
            true => Origin::File,
            false => Origin::Default,
        }
    }
}

/// Returns a key as TOML writes it: what has other characters than letters, digits, `-` and `_` stands in quotes.
pub(super) fn joined(path: &[&str]) -> String {
    let is_bare = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !part.is_empty() && part.chars().all(is_plain)
    };
    let parts = path.iter().map(|part| match is_bare(part) {
        true => (*part).to_owned(),
        false => format!("{part:?}"),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Calls `found` with the path and the value of each setting of a table. An empty table is a value.
pub(super) fn leaves<'a>(
    table: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
    found: &mut impl FnMut(&[&'a str], &'a Value),
) {
    for (name, value) in table {
        path.push(name);
        match value {
            Value::Object(inner) if !inner.is_empty() => leaves(inner, path, found),
            value => found(path, value),
        }
        path.pop();
    }
}

fn table(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(table) => table,
        _ => Map::new(),
    }
}

fn at<'a>(table: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(*first)?;
    match (rest, value) {
        ([], value) => Some(value),
        (rest, Value::Object(inner)) => at(inner, rest),
        _ => None,
    }
}

impl Config {
    /// Returns all settings in alphabetical order, without secrets.
    ///
    /// # Errors
    /// Fails if a value cannot be written as JSON.
    pub fn settings(&self) -> serde_json::Result<Vec<Setting>> {
        let values = table(serde_json::to_value(self)?);
        let defaults = table(serde_json::to_value(Self::default())?);
        let model = table(serde_json::to_value(ModelConfig::default())?);
        let mut settings = Vec::new();
        leaves(&values, &mut Vec::new(), &mut |path, value| {
            let default = match path {
                // A model has the settings of all models.
                ["models", _, setting @ ..] if !setting.is_empty() => at(&model, setting),
                path => at(&defaults, path),
            };
            let default = default.cloned().unwrap_or_default();
            let is_hidden = value == HIDDEN || is_secret_path(path);
            settings.push(Setting {
                key: joined(path),
                is_set: !value.is_null(),
                is_changed: *value != default,
                is_secret: is_hidden,
                value: match is_hidden {
                    true => Value::Null,
                    false => shown(value),
                },
                default: match is_hidden {
                    true => Value::Null,
                    false => shown(&default),
                },
                origin: self.origins.of(path),
            });
        });
        settings.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(settings)
    }
}

/// Returns true if a setting is a secret, set or not.
pub(super) fn is_secret_path(path: &[&str]) -> bool {
    match path {
        ["models", _, setting] => *setting == "api_key",
        path => is_secret(&path.join(".")),
    }
}

/// Returns a value without the secrets that addresses in it may have.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => without_credentials(text).into(),
        Value::Array(values) => values.iter().map(shown).collect(),
        Value::Object(table) => {
            let shown = table
                .iter()
                .map(|(name, value)| (name.clone(), shown(value)));
            shown.collect::<Map<_, _>>().into()
        }
        value => value.clone(),
    }
}

/// Returns a text without what may be secret in its addresses: the name and the password of a user, the values of the query, and the fragment. An
/// address begins with the letters before `://` and ends at a blank, a double quote or an angle bracket, so that what follows it may be taken for a
/// part of it, never the reverse.
#[must_use]
pub fn without_credentials(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '<' | '>');
    let pieces = text.split_inclusive(is_end).map(|piece| {
        let rest = piece.trim_end_matches(is_end);
        let end = &piece[rest.len()..];
        let (before, address) = rest.split_at(address_at(rest).unwrap_or(rest.len()));
        format!("{before}{}{end}", hidden(address))
    });
    pieces.collect()
}

/// Returns where the first address of a text without blanks begins.
fn address_at(text: &str) -> Option<usize> {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let end = text.find("://")?;
    Some(text[..end].trim_end_matches(is_of_scheme).len())
}

fn hidden(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    // An address that cannot be parsed may hold a secret anywhere, and so may a second address behind the first.
    let url = Url::parse(address).ok().filter(|_| !rest.contains("://"));
    let Some(mut url) = url.filter(Url::has_authority) else {
        return format!("{scheme}://hidden");
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !has_user && url.query().is_none() && url.fragment().is_none() {
        return address.to_owned();
    }
    if has_user {
        // Addresses without a host have no user.
        let _ = url.set_password(None);
        let _ = url.set_username("hidden");
    }
    // A name without a value may be the secret.
    let name = |pair: (Cow<'_, str>, Cow<'_, str>)| match pair {
        (_, value) if value.is_empty() => None,
        (name, _) => Some(name.into_owned()),
    };
    let names: Vec<Option<String>> = url.query_pairs().map(name).collect();
    url.set_query(None);
    for name in names {
        let name = name.as_deref().unwrap_or("hidden");
        url.query_pairs_mut().append_pair(name, "hidden");
    }
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
