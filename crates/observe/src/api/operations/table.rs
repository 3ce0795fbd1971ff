//! The table of operations, in the order of docs/api.md.

use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use super::{Answer, Method, Operation, Parameter, Values, schema_of};
use crate::api::answer::{json, part};
use crate::api::configs::{self, ReloadRequest};
use crate::api::fdb::ClearRequest;
use crate::api::model::{
    Advice, Buffers, Class, Dropped, Ecn, Event, Faults, Fdb, Flow, Group, Host, Interfaces, Lag, Lcore, LldpPort,
    Mirrors, Neighbours, Past, PastText, Pfc, Port, Queue, Reload, Routes, RunningConfig, Setting, State, Version,
    Vlan, Watchdog, Why,
};
use crate::api::openapi::{self, OpenApi};
use crate::api::routing::MOST_ROUTES;
use crate::api::server::{self, Done, Index};
use crate::api::{faults, routing};
use crate::router::Source;

/// A reading operation without parameters; each line below names its differences.
const GET: Operation = Operation {
    method: Method::Get,
    path: "/v1",
    text: "",
    parameters: &[],
    body: None,
    answer: Answer::whole::<Index>(),
    done: &[200],
    refused: &[],
    handle: |_, _| Box::pin(std::future::ready(json(StatusCode::OK, &Index::new()))),
};

/// A resource that is a view of the switch's state: a member of the answer under its own name.
macro_rules! view {
    ($name:literal, $part:ty, $of:expr, $text:expr) => {
        Operation {
            path: concat!("/v1/", $name),
            text: $text,
            answer: Answer::part::<$part>($name),
            handle: |served, _| {
                Box::pin(std::future::ready(served.look(|look| part(look, $name, ($of)(&*served, look)))))
            },
            ..GET
        }
    };
}

/// Every operation.
pub const OPERATIONS: &[Operation] = &[
    Operation { text: "Paths of all resources.", ..GET },
    Operation {
        path: "/v1/openapi.json",
        text: "A description of the API for programs, in OpenAPI 3.1.",
        answer: Answer::whole::<OpenApi>(),
        handle: |_, _| {
            let answer = ([(header::CONTENT_TYPE, "application/json")], openapi::text());
            Box::pin(std::future::ready(answer.into_response()))
        },
        ..GET
    },
    Operation {
        path: "/v1/state",
        text: "The resources from `version` to `advice`, all of one time.",
        answer: Answer::whole::<State>(),
        handle: |served, _| Box::pin(std::future::ready(server::state(&served))),
        ..GET
    },
    view!("version", Version, |served: &server::Served, _| served.version(), ""),
    view!("classes", Vec<Class>, |_, look| Class::all(look), ""),
    view!("ports", Vec<Port>, |_, look| Port::all(look), ""),
    view!("pfc", Vec<Pfc>, |_, look| Pfc::all(look), ""),
    view!("buffers", Buffers, |_, look| Buffers::of(look), ""),
    view!("groups", Vec<Group>, |_, look| Group::all(look), ""),
    view!("queues", Vec<Queue>, |_, look| Queue::all(look), ""),
    view!("drops", Vec<Dropped>, |_, look| Dropped::all(look), "Only reasons with drops have a row."),
    view!("ecn", Vec<Ecn>, |_, look| Ecn::all(look), "Only marking queues have a row."),
    view!("watchdog", Vec<Watchdog>, |_, look| Watchdog::all(look), "Only ports with a watchdog have a row."),
    view!("lcores", Vec<Lcore>, |_, look| Lcore::all(look), ""),
    view!("hosts", Vec<Host>, |_, look| Host::all(look), "Virtual hosts."),
    view!("flows", Vec<Flow>, |_, look| Flow::all(look), "Flows of virtual hosts."),
    view!("advice", Vec<Advice>, |_, look| Advice::all(look), "Recommended changes."),
    view!(
        "events",
        Vec<Event>,
        |served: &server::Served, _| served.events.all(),
        "The last 256 [events, warnings](metrics.md#events-and-warnings) and reloads, oldest first: at most 16 of each \
         kind and port."
    ),
    view!("lags", Vec<Lag>, |_, look| Lag::all(look), "[Link aggregation groups](lag.md); empty if there are none."),
    view!(
        "lldp",
        Vec<LldpPort>,
        |_, look| LldpPort::all(look),
        "[LLDP](lldp.md) of all ports; empty if none can have a neighbour."
    ),
    view!("faults", Faults, |_, look| Faults::of(look), "[Injected faults](faults.md)."),
    view!("mirrors", Mirrors, |_, look| Mirrors::of(look), "[Mirrors and sFlow](mirror.md)."),
    view!("config", RunningConfig, |served: &server::Served, _| served.config(), ""),
    view!(
        "settings",
        Vec<Setting>,
        |_, look| Setting::all(look),
        "Every setting, written or by default, but no static routes and neighbours."
    ),
    Operation {
        path: "/v1/fdb",
        text: "The switch asks the lcores at most once a second; in between it repeats the last answer.",
        answer: Answer::part::<Fdb>("fdb"),
        handle: |served, _| Box::pin(async move { server::fdb(&served).await }),
        ..GET
    },
    Operation {
        method: Method::Post,
        path: "/v1/fdb/clear",
        text: "Removes learned stations, all or those of `{\"port\": \"p1\", \"vlan\": 10}`, and answers \
               `{\"at_ns\": ..., \"cleared\": {\"stations\": 2}}`. It needs `writes`.",
        body: Some(schema_of::<ClearRequest>),
        answer: Answer::part::<server::Cleared>("cleared"),
        refused: &[403, 413],
        handle: |served, request| Box::pin(async move { server::clear_fdb(&served, request).await }),
        ..GET
    },
    Operation {
        path: "/v1/vlans",
        answer: Answer::part::<Vec<Vlan>>("vlans"),
        handle: |served, _| Box::pin(async move { server::vlans(&served).await }),
        ..GET
    },
    Operation {
        path: "/v1/interfaces",
        text: "Interfaces of the router, in the order of the configuration. The router's thread answers this and the \
               next two.",
        answer: Answer::part::<Interfaces>("interfaces"),
        handle: |served, _| Box::pin(async move { routing::interfaces(&served).await }),
        ..GET
    },
    Operation {
        path: "/v1/neighbours",
        answer: Answer::part::<Neighbours>("neighbours"),
        handle: |served, _| Box::pin(async move { routing::neighbours(&served).await }),
        ..GET
    },
    Operation {
        path: "/v1/routes",
        text: "Routes in use, IPv4 first, by prefix. Only this resource has parameters, for example \
               `/v1/routes?prefix=10.1.0.0/16&limit=50`. An answer with `next` is a part: request again with `after` \
               set to it, until `next` is null. The switch looks at 50,000 routes at most for an answer, so a part may \
               have no entries. Routes that change between two requests may be missing or old.",
        parameters: ROUTE_PARAMETERS,
        answer: Answer::part::<Routes>("routes"),
        handle: |served, request| Box::pin(async move { routing::routes(&served, request.uri().query()).await }),
        ..GET
    },
    view!(
        "why",
        Vec<Why>,
        |_, look| Why::all(look),
        "Reasons of drops and XOFFs by port and class, as in `holdfast why-dropped`. Decisions are the last four drops \
         of the class, at most one per poll, and the last four XOFFs of its group. Drops before admission, except \
         `shed`, have no decisions."
    ),
    Operation {
        path: "/v1/reload",
        text: "The switch compares its configuration file with the running settings ([reload.md](reload.md)). Status \
               is 200, but 409 with `needs_restart`, `unconfirmed` or `busy`, and 422 with `invalid`.",
        answer: Answer::part::<Reload>("reload"),
        done: &[200, 409, 422],
        handle: |served, _| Box::pin(async move { configs::compare(&served).await }),
        ..GET
    },
    Operation {
        method: Method::Post,
        path: "/v1/reload",
        text: "The switch also applies the file, or the configuration that a body such as `{\"text\": \"ports: ...\", \
               \"confirm_within_ns\": 60000000000}` gives, completely or not at all; `/v1/openapi.json` has the fields \
               of the body. POST needs `writes`; `kill -HUP` does not.",
        body: Some(schema_of::<ReloadRequest>),
        answer: Answer::part::<Reload>("reload"),
        done: &[200, 409, 422],
        refused: &[403, 413],
        handle: |served, request| Box::pin(async move { configs::reload(&served, request).await }),
        ..GET
    },
    Operation {
        method: Method::Post,
        path: "/v1/reload/confirm",
        text: "Confirms the running configuration.",
        answer: Answer::part::<Reload>("reload"),
        done: &[200, 409],
        refused: &[403],
        handle: |served, request| Box::pin(async move { configs::confirm(&served, request).await }),
        ..GET
    },
    view!(
        "history",
        Vec<Past>,
        |served: &server::Served, _| served.history.all(),
        "The last 20 [configurations](reload.md#confirmation-and-history), oldest first."
    ),
    Operation {
        path: "/v1/history/{number}",
        text: "One of them.",
        parameters: &[Parameter {
            name: "number",
            example: "1",
            text: "Its number.",
            values: Values::Number(1, u64::MAX),
        }],
        answer: Answer::part::<PastText>("history"),
        refused: &[404],
        handle: |served, request| Box::pin(std::future::ready(configs::past(&served, request.uri().path()))),
        ..GET
    },
    Operation {
        method: Method::Post,
        path: "/v1/faults",
        text: "The body is a fault or a list of faults, up to 64 KiB, as JSON or YAML with the keys of \
               [faults.md](faults.md#keys), such as `[{\"lose\": \"p1\", \"one_in\": 1000}]`. The switch adds all of \
               them or none, and answers `{\"at_ns\": ..., \"added\": {\"ids\": [1, 2]}}`. An error names line, \
               column, key and remedy of each mistake. It needs `writes` and `faults` in the configuration.",
        body: Some(openapi::faults),
        answer: Answer::part::<faults::Added>("added"),
        refused: &[403, 413, 500],
        handle: |served, request| Box::pin(async move { faults::add(&served, request).await }),
        ..GET
    },
    Operation {
        method: Method::Delete,
        path: "/v1/faults",
        text: "Removes all faults. The answer is `{\"at_ns\": ..., \"removed\": 1}`.",
        answer: Answer::part::<usize>("removed"),
        refused: &[403],
        handle: |served, request| Box::pin(async move { faults::remove(&served, request, None).await }),
        ..GET
    },
    Operation {
        method: Method::Delete,
        path: "/v1/faults/{id}",
        text: "Removes one fault.",
        parameters: &[Parameter { name: "id", example: "2", text: "Its number.", values: Values::Number(0, u64::MAX) }],
        answer: Answer::part::<usize>("removed"),
        refused: &[403, 404],
        // The extractor of paths would refuse names that are not UTF-8 without JSON.
        handle: |served, request| {
            Box::pin(async move {
                let path = request.uri().path().to_owned();
                faults::remove(&served, request, path.rsplit('/').next()).await
            })
        },
        ..GET
    },
    Operation {
        method: Method::Post,
        path: "/v1/watermarks/clear",
        text: "The switch resets all watermarks to current values and answers `{\"done\": ...}`. POST needs `writes`; \
               `kill -USR1` does not.",
        answer: Answer::whole::<Done>(),
        refused: &[403],
        handle: |served, request| Box::pin(std::future::ready(server::clear(&served, &request))),
        ..GET
    },
];

const fn parameter(name: &'static str, example: &'static str, text: &'static str) -> Parameter {
    Parameter { name, example, text, values: Values::Text }
}

const ROUTE_PARAMETERS: &[Parameter] = &[
    parameter("address", "10.1.2.3", "Only the route that covers it, by longest prefix."),
    parameter("prefix", "10.1.0.0/16", "This prefix and more specific ones."),
    Parameter {
        values: Values::Words(|| Source::TABLE.map(|(_, label)| label).to_vec()),
        ..parameter("source", "static", "Routes of this origin.")
    },
    Parameter {
        values: Values::Words(|| vec!["ipv4", "ipv6"]),
        ..parameter("family", "ipv4", "Routes of this family.")
    },
    Parameter {
        values: Values::Number(1, MOST_ROUTES as u64),
        ..parameter("limit", "50", "At most so many, up to 10000; 1000 without it.")
    },
    parameter("after", "10.1.7.0/24", "Only routes behind this prefix in their order; it need not exist."),
];
