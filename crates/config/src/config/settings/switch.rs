//! Settings of the buffer, the maps, the forwarding database and the queues that are equal on all ports.

use super::class_or;
use super::row::{Gauges, Labels, Place, Row, Settings, live, measure, restart};
use super::value::{Part, Precision, Value, queue_policy};
use crate::plan::{QueueSpec, SwitchSpec};
use crate::qos::QueueDiscipline;
use crate::sets::{CLASSES, NUMBERS};
use crate::units::{Alpha, Cells, Probability};

fn part(switch: &SwitchSpec, cells: Cells) -> Part {
    Part { cells, cell: switch.buffer.cell }
}

fn switch_rows() -> Vec<Row<SwitchSpec>> {
    vec![
        restart("buffer.cell", |switch, precision| Some(switch.buffer.cell.text(precision))),
        restart("buffer.headroom.policy", |switch, _| Some(switch.buffer.policy.label().to_owned())),
        restart("buffer.queue_policy", |switch, precision| Some(queue_policy(switch.abm.as_ref(), precision))),
        restart("buffer.size", |switch, precision| Some(part(switch, switch.buffer.total).text(precision))),
        live("reserves together", |switch, precision| Some(part(switch, switch.buffer.reserves).text(precision))),
        live("headroom together", |switch, precision| Some(part(switch, switch.buffer.headroom).text(precision))),
        live("buffer.shared", |switch, precision| Some(part(switch, switch.buffer.lossless_shared).text(precision))),
        live("buffer.lossy", |switch, precision| Some(part(switch, switch.buffer.lossy_shared).text(precision))),
        restart("fdb.capacity", |switch, _| Some(switch.fdb.capacity.to_string())),
        restart("fdb.ageing", |switch, precision| Some(switch.fdb.ageing.text(precision))),
    ]
}

/// An egress queue, equal on all ports.
struct QueueAt<'a> {
    switch: &'a SwitchSpec,
    queue: usize,
}

impl QueueAt<'_> {
    fn spec(&self) -> &QueueSpec {
        &self.switch.queues[self.queue]
    }

    fn part(&self, cells: Cells) -> Part {
        part(self.switch, cells)
    }

    fn size(&self, cells: Cells) -> f64 {
        cells.to_bytes(self.switch.buffer.cell).0 as f64
    }

    fn limit(&self) -> Option<Cells> {
        self.spec().limit?.threshold.cells()
    }

    fn alpha(&self) -> Option<Alpha> {
        self.spec().limit?.threshold.alpha()
    }
}

impl Place for QueueAt<'_> {
    fn labels(&self) -> Labels<'_> {
        std::iter::once(("queue", NUMBERS[self.queue])).collect()
    }
}

fn queue_rows<'a>() -> Vec<Row<QueueAt<'a>>> {
    vec![
        live("scheduler", |at: &QueueAt<'_>, precision| Some(at.spec().discipline.text(precision))).gauge(
            "holdfast_queue_weight",
            "Weight of the queue; 0: strict.",
            |at| match at.spec().discipline {
                QueueDiscipline::Strict => Some(0.0),
                QueueDiscipline::Dwrr { weight } => Some(weight.into()),
            },
        ),
        live("ecn", |at: &QueueAt<'_>, precision| Some(at.spec().wred.text(precision)))
            .gauge(
                "holdfast_queue_ecn_min_bytes",
                "Depth up to which nothing is marked or dropped early: kmin (with `ecn`).",
                |at| Some(at.spec().wred?.kmin.0 as f64),
            )
            .gauge(
                "holdfast_queue_ecn_max_bytes",
                "Depth from which all is marked or dropped early: kmax (with `ecn`).",
                |at| Some(at.spec().wred?.kmax.0 as f64),
            )
            .gauge(
                "holdfast_queue_ecn_probability_ratio",
                "Share that is marked or dropped early just below kmax: pmax.",
                |at| Some(f64::from(at.spec().wred?.pmax.0) / f64::from(Probability::ONE.0)),
            ),
        restart("telemetry", |at: &QueueAt<'_>, _| {
            Some(if at.switch.telemetry_queues.contains(at.queue) { "hpcc" } else { "off" }.to_owned())
        }),
        restart("qcn", |at: &QueueAt<'_>, precision| Some(at.switch.congestion_points[at.queue].text(precision))),
        restart("queue_reserve", |at: &QueueAt<'_>, precision| Some(at.part(at.spec().reserve).text(precision))).gauge(
            "holdfast_queue_reserve_bytes",
            "Reserve in the lossy pool, at each port.",
            |at| Some(at.size(at.spec().reserve)),
        ),
        live("queue_alpha", |at: &QueueAt<'_>, _| Some(at.alpha()?.to_string())).gauge(
            "holdfast_queue_alpha",
            "Dynamic Threshold factor in the lossy pool.",
            |at| Some(f64::from(at.alpha()?.exponent()).exp2()),
        ),
        live("queue_limit", |at: &QueueAt<'_>, precision| Some(at.part(at.limit()?).text(precision))).gauge(
            "holdfast_queue_static_threshold_bytes",
            "Fixed limit of the queue (`queue_limit`).",
            |at| Some(at.size(at.limit()?)),
        ),
    ]
}

fn queues(switch: &SwitchSpec) -> Vec<QueueAt<'_>> {
    (0..CLASSES).map(|queue| QueueAt { switch, queue }).collect()
}

/// Adds the settings of the switch and its queues.
pub(super) fn add(switch: &SwitchSpec, settings: &mut Settings) {
    settings.add(None, "", &switch_rows(), switch);
    let maps = [
        ("tc_to_group", &switch.classes.tc_to_group),
        ("tc_to_queue", &switch.classes.tc_to_queue),
        ("pfc_to_queue", &switch.classes.pfc_to_queue),
    ];
    for (key, map) in maps {
        for (from, to) in map.iter().enumerate() {
            settings.put(None, format!("maps.{key}.{from}"), false, |_: Precision| to.to_string());
        }
    }
    for entry in &switch.fdb.entries {
        let port = switch.ports.get(usize::from(entry.port)).map_or("none", |port| port.name.as_str());
        let key = format!("fdb.static.{} in VLAN {}", entry.mac, entry.vlan);
        settings.put(None, key, true, |_| format!("port {port}"));
    }
    let rows = queue_rows();
    for at in queues(switch) {
        let prefix = class_or(&switch.classes.tc_to_queue, at.queue, "queue");
        settings.add(None, &format!("{prefix}."), &rows, &at);
    }
}

/// Gives the metrics of the queues.
pub(super) fn measure_all(switch: &SwitchSpec, gauges: &mut dyn Gauges) {
    measure(&queue_rows(), &queues(switch), gauges);
}
