//! Interfaces, neighbours and routes on request: the router's thread answers between two frames.

use std::net::IpAddr;

use axum::http::StatusCode;
use axum::response::Response;
use ipnet::IpNet;
use serde::Serialize;

use super::answer::{Part, error, json};
use super::model::{Interfaces, Neighbours, Routes};
use super::server::Served;
use crate::route::RoutingSpec;
use crate::router::{RouteRange, Router, Source};
use crate::units::Nanos;

/// Routes of an answer without `limit`.
const USUAL_ROUTES: usize = 1_000;
/// Most routes of an answer.
pub(super) const MOST_ROUTES: usize = 10_000;
/// Most routes that the router looks at for an answer. Meanwhile it handles no punted frame.
const MOST_WALKED: usize = 50_000;

/// The routes that a request selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    /// Only the route that covers this address.
    address: Option<IpAddr>,
    /// Only this prefix and more specific ones.
    prefix: Option<IpNet>,
    source: Option<Source>,
    is_ipv6: Option<bool>,
    /// Only routes behind this prefix.
    after: Option<IpNet>,
    limit: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Self { address: None, prefix: None, source: None, is_ipv6: None, after: None, limit: USUAL_ROUTES }
    }
}

impl Selection {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    /// The mistake and its remedy.
    pub fn read(query: &str) -> Result<Self, (String, String)> {
        let mut selection = Self::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            // Clients may escape the characters of prefixes and IPv6 addresses.
            let value = value.replace("%2F", "/").replace("%2f", "/").replace("%3A", ":").replace("%3a", ":");
            selection.set(name, &value)?;
        }
        let is_one = Self { address: selection.address, limit: selection.limit, ..Self::default() } == selection;
        if selection.address.is_some() && !is_one {
            let what = "`address` selects one route and has no further filter".to_owned();
            return Err((what, "send `address` alone".to_owned()));
        }
        Ok(selection)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), (String, String)> {
        let wrong = |remedy: &str| (format!("`{name}={}` is not valid", shown(value)), remedy.to_owned());
        match name {
            "address" => {
                self.address = Some(value.parse().map_err(|_| wrong("write an address, e.g. address=10.1.2.3"))?);
            }
            "prefix" => {
                let prefix: IpNet = value.parse().map_err(|_| wrong("write a prefix, e.g. prefix=10.1.0.0/16"))?;
                self.prefix = Some(prefix.trunc());
            }
            "after" => {
                let prefix: IpNet = value.parse().map_err(|_| wrong("write the `next` of the answer before"))?;
                self.after = Some(prefix.trunc());
            }
            "source" => {
                let found = Source::TABLE.iter().find(|(_, label)| *label == value);
                let labels = Source::TABLE.map(|(_, label)| label).join(", ");
                self.source = Some(found.ok_or_else(|| wrong(&format!("write one of {labels}")))?.0);
            }
            "family" => {
                self.is_ipv6 = Some(match value {
                    "ipv4" => false,
                    "ipv6" => true,
                    _ => return Err(wrong("write family=ipv4 or family=ipv6")),
                });
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MOST_ROUTES).contains(limit));
                self.limit = limit.ok_or_else(|| wrong(&format!("write a number from 1 to {MOST_ROUTES}")))?;
            }
            _ => {
                let what = format!("routes have no parameter `{}`", shown(name));
                return Err((what, "use address, prefix, source, family, after or limit".to_owned()));
            }
        }
        Ok(())
    }

    fn routes(&self, router: &Router, spec: &RoutingSpec) -> Routes {
        if let Some(address) = self.address {
            let found: Vec<_> = router.lookup_view(address).into_iter().collect();
            return Routes::of(spec, &found, None);
        }
        let range = RouteRange {
            after: self.after,
            within: self.prefix,
            is_ipv6: self.is_ipv6,
            most: self.limit,
            most_walked: MOST_WALKED,
        };
        let (views, next) = router.routes_view(&range, self.source);
        Routes::of(spec, &views, next)
    }
}

/// The first characters of a wrong word.
fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Asks the router's thread for `part`. A switch that does not route has an empty one.
async fn ask<T: Serialize + Default + Send + 'static>(
    served: &Served,
    name: &'static str,
    part: impl FnOnce(&Router, Nanos) -> T + Send + 'static,
) -> Response {
    let part = match &served.router {
        Some(router) => router.ask(|router, now| part(router, now)).await,
        None => Some(T::default()),
    };
    match part {
        Some(part) => json(StatusCode::OK, &Part { at_ns: served.at_ns(), name, part }),
        None => {
            let remedy = "restart the switch; report this as a bug with the lines that it printed";
            error(StatusCode::SERVICE_UNAVAILABLE, "the router of this switch has ended", remedy)
        }
    }
}

pub(super) async fn interfaces(served: &Served) -> Response {
    let spec = served.current.get().spec.clone();
    ask(served, "interfaces", move |router, _| Interfaces::of(&spec, &router.interfaces_view())).await
}

pub(super) async fn neighbours(served: &Served) -> Response {
    let switch_view = served.current.get();
    ask(served, "neighbours", move |router, now| {
        let Some(spec) = &switch_view.spec.routing else { return Neighbours::default() };
        let views = router.neighbours_view(now);
        let keys: Vec<_> = views.iter().map(|view| (view.interface, view.address)).collect();
        let frames = switch_view.router.as_ref().map_or_else(
            || vec![0; keys.len()],
            |published| published.frames(&keys, |adjacency| switch_view.counters.adjacency_frames(adjacency)),
        );
        Neighbours::of(spec, &views, &frames)
    })
    .await
}

pub(super) async fn routes(served: &Served, query: Option<&str>) -> Response {
    let selection = match Selection::read(query.unwrap_or_default()) {
        Ok(selection) => selection,
        Err((what, remedy)) => return error(StatusCode::BAD_REQUEST, &what, &remedy),
    };
    let switch_view = served.current.get();
    ask(served, "routes", move |router, _| match &switch_view.spec.routing {
        Some(spec) => selection.routes(router, spec),
        None => Routes::default(),
    })
    .await
}

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
