//! Errors of namespaces, sockets and requests.

use std::io;

/// Failure of a netlink operation.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The network namespace cannot be opened or entered.
    #[error("network namespace {name}: {error}; it must exist, and to enter it needs CAP_SYS_ADMIN")]
    Namespace {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// A netlink socket cannot be made or used.
    #[error("netlink in network namespace {namespace}: cannot {action}: {error}")]
    Socket {
        /// Name of the namespace.
        namespace: String,
        /// The attempted step.
        action: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The kernel has refused a request.
    #[error("netlink in network namespace {namespace}: the kernel refuses to {action}: {error}{detail}")]
    Refused {
        /// Name of the namespace.
        namespace: String,
        /// The request in words.
        action: String,
        /// The error code.
        error: io::Error,
        /// The kernel's own words, after a colon, or nothing.
        detail: String,
    },
    /// The kernel has not answered a request.
    #[error("netlink in network namespace {namespace}: no answer to the request to {action}")]
    Silent {
        /// Name of the namespace.
        namespace: String,
        /// The request in words.
        action: String,
    },
}

impl NetlinkError {
    /// The error code of the kernel, if it has refused a request.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { error, .. } => error.raw_os_error(),
            _ => None,
        }
    }
}
