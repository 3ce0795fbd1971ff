//! Statuses of answers.

/// A status and its cause.
#[derive(Debug, Clone, Copy)]
pub struct Status {
    /// The number.
    pub code: u16,
    /// The cause, in Markdown.
    pub text: &'static str,
    /// Whether any request can get it.
    pub is_common: bool,
}

const fn status(code: u16, text: &'static str) -> Status {
    Status { code, text, is_common: false }
}

const fn common(code: u16, text: &'static str) -> Status {
    Status { code, text, is_common: true }
}

/// Every status of a refusal. Its body is an error with a remedy.
pub const STATUSES: &[Status] = &[
    common(
        400,
        "mistakes in faults, or too many of them; wrong parameters, or parameters for another resource than `routes`; \
         not HTTP (answer without JSON, or cut)",
    ),
    status(403, "writes or faults not allowed"),
    status(404, "no such resource or fault"),
    status(405, "wrong method; `Allow` names the right one"),
    status(413, "body beyond 64 KiB"),
    common(431, "header beyond 16 KiB; beyond 64 KiB the connection is cut"),
    status(500, "a fault of the switch"),
    common(
        503,
        "an lcore did not return its forwarding database, or did not take the last change of faults; the router has \
         ended; the switch cannot reload; with `Retry-After`: too many clients",
    ),
];
