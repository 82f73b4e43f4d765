//! Keys to make, and what their settings may be.

use colloquy_base::{invalid::InvalidField, names};
use url::Url;

use super::KeyKind;
use crate::{Scope, Tenant};

/// How many origins a publishable key may name.
const MAX_ORIGINS: usize = 100;
/// The longest origin, in bytes: a host name has 253 at most.
const MAX_ORIGIN_BYTES: usize = 300;

/// A key to make.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The kind.
    pub kind: KeyKind,
    /// Whose key it is; `None` for an admin key.
    pub tenant: Option<Tenant>,
    /// What people call it.
    pub name: String,
    /// What it may be used for; `None` for everything.
    pub scopes: Option<Vec<Scope>>,
    /// The origins of the pages that may use it.
    pub allowed_origins: Vec<String>,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: Option<i64>,
}

impl NewKey {
    /// A secret key for everything that the partner may do.
    #[must_use]
    pub fn secret(tenant: Tenant, name: impl Into<String>) -> Self {
        Self {
            kind: KeyKind::Secret,
            tenant: Some(tenant),
            name: name.into(),
            scopes: None,
            allowed_origins: Vec::new(),
            expires_at: None,
        }
    }

    /// Checks what belongs together, and brings origins into the form in which browsers send them.
    pub(super) fn validated(mut self, now_ms: i64) -> Result<Self, InvalidField> {
        if self.name.len() > 100 {
            return Err(InvalidField::new("name", "at most 100 characters"));
        }
        names::visible("name", &self.name)?;
        if (self.kind == KeyKind::Admin) != self.tenant.is_none() {
            return Err(InvalidField::new(
                "kind",
                "an admin key has no partner, every other key has one",
            ));
        }
        if self.expires_at.is_some_and(|at| at <= now_ms) {
            return Err(InvalidField::new(
                "expires_in_days",
                "must lie in the future",
            ));
        }
        if self.scopes.as_ref().is_some_and(Vec::is_empty) {
            return Err(InvalidField::new("scopes", "name at least one scope"));
        }
        self.scopes = self.scopes.map(distinct);
        if self.kind == KeyKind::Publishable {
            if self
                .scopes
                .as_ref()
                .is_some_and(|scopes| scopes.iter().any(|scope| *scope != Scope::Calls))
            {
                return Err(InvalidField::new(
                    "scopes",
                    "a publishable key is for calls only",
                ));
            }
            self.scopes = Some(vec![Scope::Calls]);
            if self.allowed_origins.is_empty() {
                return Err(InvalidField::new(
                    "allowed_origins",
                    "a publishable key names the origins of its pages",
                ));
            }
            if self.allowed_origins.len() > MAX_ORIGINS {
                return Err(InvalidField::new(
                    "allowed_origins",
                    format!("at most {MAX_ORIGINS} origins"),
                ));
            }
            for (index, origin) in self.allowed_origins.iter_mut().enumerate() {
                let parsed = parse_origin(origin).filter(|bare| bare.len() <= MAX_ORIGIN_BYTES);
                *origin = parsed.ok_or_else(|| {
                    InvalidField::new(
                        format!("allowed_origins[{index}]"),
                        format!(
                            "write an origin such as https://www.example.com, of at most {MAX_ORIGIN_BYTES} bytes"
                        ),
                    )
                })?;
            }
        } else if !self.allowed_origins.is_empty() {
            return Err(InvalidField::new(
                "allowed_origins",
                "only a publishable key has allowed origins",
            ));
        }
        Ok(self)
    }
}

/// Each scope once, in the order in which they are named first.
fn distinct(scopes: Vec<Scope>) -> Vec<Scope> {
    let mut named = Vec::new();
    for scope in scopes {
        if !named.contains(&scope) {
            named.push(scope);
        }
    }
    named
}

/// `scheme://host[:port]` as browsers write it; `None` when there is more or less than that.
fn parse_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let bare = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    bare.then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(origins: Vec<String>) -> NewKey {
        NewKey {
            kind: KeyKind::Publishable,
            allowed_origins: origins,
            ..NewKey::secret(Tenant::of_row("acme"), "page")
        }
    }

    #[test]
    fn the_origins_of_a_key_are_bounded() {
        let origins = |count: usize| -> Vec<String> {
            let origins = (0..count).map(|number| format!("https://page-{number}.example"));
            origins.collect()
        };
        page(origins(MAX_ORIGINS)).validated(0).unwrap();
        let many = page(origins(MAX_ORIGINS + 1)).validated(0).unwrap_err();
        assert_eq!(many.field, "allowed_origins");
        let host = ["a".repeat(60).as_str(); 5].join(".");
        let long = page(vec![
            "https://www.example.com".to_owned(),
            format!("https://{host}.example"),
        ]);
        let long = long.validated(0).unwrap_err();
        assert_eq!(long.field, "allowed_origins[1]");
    }

    #[test]
    fn the_name_of_a_key_can_be_seen() {
        let named = |name: &str| NewKey::secret(Tenant::of_row("acme"), name).validated(0);
        named("Łódź 1").unwrap();
        named("").unwrap();
        for hidden in ["a\nb", "a\tb", "\u{1b}[2J", "a\u{202e}b"] {
            assert_eq!(named(hidden).unwrap_err().field, "name", "{hidden:?}");
        }
    }

    #[test]
    fn a_key_has_each_scope_once() {
        let key = NewKey {
            scopes: Some([Scope::Keys, Scope::Calls].repeat(1_000)),
            ..NewKey::secret(Tenant::of_row("acme"), "server")
        };
        let scopes = key.validated(0).unwrap().scopes.unwrap();
        assert_eq!(scopes, [Scope::Keys, Scope::Calls]);
    }
}
