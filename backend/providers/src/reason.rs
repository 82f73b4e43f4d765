//! Reasons of failures for the partner whose work failed: short, stable, and without hosts, addresses, keys or words of the service.

use std::{borrow::Cow, error::Error, io, iter, net::SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use super::{ProviderError, ProviderErrorKind};

/// How resolvers say that a name has no address: `EAI_NONAME` and `EAI_NODATA` of glibc, of musl and of macOS. The standard library keeps
/// their codes to itself.
const NO_SUCH_NAME: [&str; 5] = [
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
    "Name has no usable address",
    "nodename nor servname provided, or not known",
];

/// Why there is no connection to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// Nothing listens at its port.
    Refused,
    /// Its host name has no address.
    HostNotFound,
    /// The resolver does not say if its host name has an address, such as while no DNS server answers.
    NotResolved,
    /// Nothing answers at its address in time.
    TimedOut,
    /// There is no TLS, or its certificate is not trusted.
    Insecure,
}

impl Unreachable {
    /// The reason of a failed connection; `None` for one that is none of these.
    pub(crate) fn of(error: &reqwest::Error) -> Option<Self> {
        match error.is_timeout() {
            true => Some(Self::TimedOut),
            false => Self::of_chain(error),
        }
    }

    fn of_chain(first: &(dyn Error + 'static)) -> Option<Self> {
        iter::successors(Some(first), |&cause| cause.source()).find_map(Self::of_cause)
    }

    fn of_cause(cause: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(unresolved) = cause.downcast_ref::<Unresolved>() {
            return Some(unresolved.reason());
        }
        if cause.is::<rustls::Error>() {
            return Some(Self::Insecure);
        }
        let error = cause.downcast_ref::<io::Error>()?;
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Some(Self::Refused),
            io::ErrorKind::TimedOut => Some(Self::TimedOut),
            // The source of an I/O error leaves out the error that it is made of.
            _ => {
                let inner: &(dyn Error + 'static) = error.get_ref()?;
                Self::of_cause(inner)
            }
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::HostNotFound => "host not found",
            Self::NotResolved => "name not resolved",
            Self::TimedOut => "timed out",
            Self::Insecure => "no secure connection",
        }
    }
}

impl ProviderErrorKind {
    /// Returns the reason of all failures of this kind. [`ProviderError::reason`] is more precise.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Timeout => "timed out",
            Self::RateLimited => "too many requests",
            Self::Busy => "busy",
            Self::Rejected => "refused the request",
            Self::Misconfigured => "not set up",
            Self::Failed => "reported a failure",
            Self::Malformed => "malformed answer",
            Self::Empty => "empty answer",
            Self::Cut => "connection cut",
            Self::Resting => "not asked for a moment, after failures",
        }
    }
}

impl ProviderError {
    /// Returns a short and stable reason that has nothing secret in it, such as `connection refused` or `answered 503`.
    #[must_use]
    pub fn reason(&self) -> Cow<'static, str> {
        match (self.kind, self.status()) {
            (ProviderErrorKind::Connect, _) => self
                .unreachable
                .map_or(self.kind.reason(), Unreachable::reason)
                .into(),
            (ProviderErrorKind::Misconfigured, Some(401 | 403)) => "not authorized".into(),
            (ProviderErrorKind::Timeout | ProviderErrorKind::RateLimited, _) | (_, None) => {
                self.kind.reason().into()
            }
            (_, Some(status)) => format!("answered {status}").into(),
        }
    }

    /// Returns the message of a service about a request that it refused, on one line of `most` characters at most; `None` for other failures,
    /// whose messages are for the operator. The message may repeat the request, so it is for whoever made that.
    #[must_use]
    pub fn refusal(&self, most: usize) -> Option<String> {
        if !self.is_of_request() {
            return None;
        }
        let message = self.told.as_ref()?.message.as_deref()?;
        let words = message.split(|c: char| c.is_whitespace() || c.is_control());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let line: String = words.join(" ").chars().take(most).collect();
        (!line.is_empty()).then_some(line)
    }
}

/// The resolver has given no address.
#[derive(Debug, thiserror::Error)]
#[error("the host name is not resolved")]
struct Unresolved(#[source] io::Error);

impl Unresolved {
    fn reason(&self) -> Unreachable {
        let told = self.0.to_string();
        match NO_SUCH_NAME.iter().any(|text| told.contains(text)) {
            true => Unreachable::HostNotFound,
            false => Unreachable::NotResolved,
        }
    }
}

/// The system's resolver, whose failures are told from those of connections.
#[derive(Debug)]
pub(crate) struct HostNames;

impl Resolve for HostNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0_u16)).await;
            let found = found.map_err(Unresolved)?;
            let addresses: Vec<SocketAddr> = found.collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use colloquy_formats::UpstreamFailure;

    use super::*;

    fn answered(kind: ProviderErrorKind, status: u16) -> ProviderError {
        let mut error = ProviderError::new("secret.example", kind, "https://secret.example");
        error.told = Some(Box::new(UpstreamFailure {
            status: Some(status),
            message: Some("sk-secret".to_owned()),
            ..UpstreamFailure::default()
        }));
        error
    }

    #[test]
    fn a_reason_is_short_and_has_no_words_of_the_service() {
        let no_connection = |unreachable| ProviderError {
            unreachable,
            ..ProviderError::new("secret.example", ProviderErrorKind::Connect, "sk-secret")
        };
        let silent = ProviderError::new("m", ProviderErrorKind::Timeout, "sk-secret");
        for (error, reason) in [
            (
                no_connection(Some(Unreachable::Refused)),
                "connection refused",
            ),
            (
                no_connection(Some(Unreachable::HostNotFound)),
                "host not found",
            ),
            (
                no_connection(Some(Unreachable::NotResolved)),
                "name not resolved",
            ),
            (no_connection(Some(Unreachable::TimedOut)), "timed out"),
            (
                no_connection(Some(Unreachable::Insecure)),
                "no secure connection",
            ),
            (no_connection(None), "no connection"),
            (silent, "timed out"),
            (answered(ProviderErrorKind::Failed, 503), "answered 503"),
            (answered(ProviderErrorKind::Rejected, 404), "answered 404"),
            (
                answered(ProviderErrorKind::Misconfigured, 401),
                "not authorized",
            ),
            (
                answered(ProviderErrorKind::RateLimited, 429),
                "too many requests",
            ),
        ] {
            assert_eq!(error.reason(), reason);
        }
    }

    #[test]
    fn the_message_of_a_refusal_is_one_bounded_line() {
        let refused = |status, message: &str| {
            let mut error = answered(ProviderErrorKind::Rejected, status);
            error.told.as_mut().unwrap().message = Some(message.to_owned());
            error
        };
        let long = refused(400, "the parameter\n foo\0is bad");
        assert_eq!(
            long.refusal(100).as_deref(),
            Some("the parameter foo is bad")
        );
        assert_eq!(long.refusal(17).as_deref(), Some("the parameter foo"));
        assert_eq!(refused(400, " \0").refusal(100), None);
        let untold = ProviderError::new("m", ProviderErrorKind::Rejected, "sk-secret");
        for of_the_operator in [
            refused(404, "sk-secret"),
            answered(ProviderErrorKind::Failed, 500),
            answered(ProviderErrorKind::Misconfigured, 401),
            answered(ProviderErrorKind::RateLimited, 429),
            untold,
        ] {
            assert_eq!(of_the_operator.refusal(100), None, "{of_the_operator:?}");
        }
    }

    #[test]
    fn failures_of_connections_are_told_by_what_they_are_made_of() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let certificate = rustls::Error::NoCertificatesPresented;
        let unresolved = |told: &str| {
            let told = format!("failed to lookup address information: {told}");
            io::Error::other(Unresolved(io::Error::other(told)))
        };
        for (error, expected) in [
            (refused(), Some(Unreachable::Refused)),
            (io::Error::other(refused()), Some(Unreachable::Refused)),
            (io::ErrorKind::TimedOut.into(), Some(Unreachable::TimedOut)),
            (
                unresolved("Name or service not known"),
                Some(Unreachable::HostNotFound),
            ),
            (
                unresolved("Temporary failure in name resolution"),
                Some(Unreachable::NotResolved),
            ),
            (
                unresolved("Non-recoverable failure in name resolution"),
                Some(Unreachable::NotResolved),
            ),
            (
                io::Error::other(io::Error::other(certificate)),
                Some(Unreachable::Insecure),
            ),
            (io::Error::other("secret.example"), None),
        ] {
            assert_eq!(Unreachable::of_chain(&error), expected, "{error}");
        }
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_no_failed_connection() {
        let name: Name = "name.invalid".parse().unwrap();
        let Err(error) = HostNames.resolve(name).await else {
            panic!("a name of a reserved domain is found");
        };
        // A machine without a DNS server does not resolve it.
        let reason = Unreachable::of_chain(&*error);
        let reasons = [Unreachable::HostNotFound, Unreachable::NotResolved];
        assert!(reasons.map(Some).contains(&reason), "{error}");
        assert!(error.source().is_some_and(|cause| cause.is::<io::Error>()));
    }
}
