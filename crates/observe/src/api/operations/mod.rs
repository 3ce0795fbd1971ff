//! The operations of the API, in one table. The router, `GET /v1`, the OpenAPI description and docs/api.md read it.

mod statuses;
mod table;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::MethodFilter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::server::Served;

pub use statuses::{STATUSES, Status};
pub use table::OPERATIONS;

/// The method of a request. `GET` also answers `HEAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Changes the switch.
    Post,
    /// Removes.
    Delete,
}

impl Method {
    /// The word in a request.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    pub(super) const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// A parameter of the path or of the query.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// A valid value.
    pub example: &'static str,
    /// Its effect, as Markdown.
    pub text: &'static str,
    /// Its valid values.
    pub values: Values,
}

/// The valid values of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// A text of a form that its example shows.
    Text,
    /// One of these words.
    Words(fn() -> Vec<&'static str>),
    /// A whole number between these two.
    Number(u64, u64),
}

/// The schema of a type, whose parts become components of the description.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The answer to a successful request.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The member that stands beside `at_ns`; `None`: the schema is that of the whole answer.
    pub member: Option<&'static str>,
    /// The schema of the member, or of the answer.
    pub schema: SchemaOf,
}

impl Answer {
    const fn whole<T: JsonSchema>() -> Self {
        Self { member: None, schema: schema_of::<T> }
    }

    const fn part<T: JsonSchema>(member: &'static str) -> Self {
        Self { member: Some(member), schema: schema_of::<T> }
    }
}

/// The function that answers requests.
type Handle = fn(Arc<Served>, Request) -> Pin<Box<dyn Future<Output = Response> + Send>>;

/// A method of a path.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The content or the effect: Markdown, with links relative to docs.
    pub text: &'static str,
    /// Its parameters: those that are not in the path are of the query.
    pub parameters: &'static [Parameter],
    /// The body of the request; `None`: bodies are ignored.
    pub body: Option<SchemaOf>,
    /// The answer.
    pub answer: Answer,
    /// Statuses with this answer.
    pub done: &'static [u16],
    /// Statuses of refusals that not every request can get.
    pub refused: &'static [u16],
    pub(super) handle: Handle,
}

impl Operation {
    /// Whether a parameter of this name is in the path.
    #[must_use]
    pub fn has_in_path(&self, parameter: &str) -> bool {
        self.path.contains(&format!("{{{parameter}}}"))
    }

    /// Whether `path` is that of this operation, for some values of the parameters in it.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        let (mut own, mut others) = (self.path.split('/'), path.split('/'));
        loop {
            match (own.next(), others.next()) {
                (None, None) => return true,
                (Some(own), Some(other)) if own == other || own.starts_with('{') => {}
                _ => return false,
            }
        }
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method.word(), self.path)
    }
}
