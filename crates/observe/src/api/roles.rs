//! Roles: what the user behind a request may do, by the groups that `api.readers` and `api.admins` name.
//!
//! The kernel tells the user of a connection (SO_PEERCRED); its groups are those of `/etc/passwd` and `/etc/group` at
//! the time of the request. Root and the user of the switch may do all.

use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State as Shared};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::answer::error;
use super::server::Served;
use super::socket::{SocketError, own_user};
use crate::config::ApiConfig;
use crate::linux::{group_number, groups_of, user_name};
use crate::stats::bounded::Peer;

/// The requests that a user may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Nobody,
    Reader,
    Admin,
}

/// The groups of each role, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    readers: Vec<u32>,
    admins: Vec<u32>,
    /// The user of the switch.
    own: Option<u32>,
}

impl Roles {
    /// The roles of `config`; `None`: each user who can connect may read, and `api.writes` decides about changes.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn new(config: &ApiConfig) -> Result<Option<Self>, SocketError> {
        if !config.has_roles() {
            return Ok(None);
        }
        let number = |group: &String| group_number(group).ok_or_else(|| SocketError::NoGroup(group.clone()));
        let numbers = |groups: &[String]| groups.iter().map(number).collect::<Result<Vec<_>, _>>();
        let (readers, admins) = (numbers(&config.readers)?, numbers(&config.admins)?);
        Ok(Some(Self { readers, admins, own: own_user() }))
    }

    fn of(&self, user: Option<u32>, groups: impl FnOnce(u32) -> Vec<u32>) -> Role {
        match user {
            None => Role::Nobody,
            Some(user) if user == 0 || Some(user) == self.own => Role::Admin,
            Some(user) => {
                let groups = groups(user);
                let is_in = |role: &[u32]| groups.iter().any(|group| role.contains(group));
                match (is_in(&self.admins), is_in(&self.readers)) {
                    (true, _) => Role::Admin,
                    (false, true) => Role::Reader,
                    (false, false) => Role::Nobody,
                }
            }
        }
    }
}

/// The number of the user behind `request`; `None`: the kernel does not tell.
pub(super) fn user_of(request: &Request) -> Option<u32> {
    request.extensions().get::<ConnectInfo<Peer>>().and_then(|ConnectInfo(peer)| peer.user)
}

/// ", by NAME" for the event of a change; empty if the user is unknown.
pub(super) fn by(user: Option<u32>) -> String {
    user.map(|user| format!(", by {}", user_name(user))).unwrap_or_default()
}

/// Marks a request whose user may read and not change.
#[derive(Debug, Clone, Copy)]
struct MayOnlyRead;

/// Path of the requests that may only compare, which their bodies say.
const RELOAD: &str = "/v1/reload";

/// Refuses a request that its user may not make.
pub(super) async fn judge(Shared(served): Shared<Arc<Served>>, mut request: Request, next: Next) -> Response {
    let Some(roles) = &served.roles else { return next.run(request).await };
    let user = user_of(&request);
    let role = roles.of(user, groups_of);
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if role == Role::Reader && (only_reads || request.uri().path() == RELOAD) {
        request.extensions_mut().insert(MayOnlyRead);
        return next.run(request).await;
    }
    match role {
        Role::Admin => next.run(request).await,
        Role::Reader => refuse_change(user),
        Role::Nobody => refuse(user, "read", "api.readers` or `api.admins"),
    }
}

/// Whether the user behind `request` may change the switch, as far as roles decide.
pub(super) fn may_change(request: &Request) -> bool {
    request.extensions().get::<MayOnlyRead>().is_none()
}

/// Refuses the change that `user` wants.
pub(super) fn refuse_change(user: Option<u32>) -> Response {
    refuse(user, "change", "api.admins")
}

fn refuse(user: Option<u32>, what: &str, key: &str) -> Response {
    let name = user.map_or_else(|| "an unknown user".to_owned(), user_name);
    let remedy = format!("add the user to a group of `{key}` in /etc/group, or ask one of its members");
    error(StatusCode::FORBIDDEN, &format!("{name} may not {what} this switch"), &remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_is_the_highest_of_the_users_groups() {
        let roles = Roles { readers: vec![50, 51], admins: vec![60], own: Some(990) };
        let role = |user, groups: &[u32]| roles.of(user, |_| groups.to_vec());
        assert_eq!((role(Some(0), &[]), role(Some(990), &[])), (Role::Admin, Role::Admin));
        assert_eq!((role(Some(7), &[1, 51]), role(Some(7), &[51, 60])), (Role::Reader, Role::Admin));
        assert_eq!((role(Some(7), &[1]), role(None, &[60])), (Role::Nobody, Role::Nobody));
    }
}
