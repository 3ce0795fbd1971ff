//! `classes:` of the configuration.

use super::draft::{Amount, Class, ClassSettings, Limit};
use super::max_rate;
use super::preset::Preset;
use crate::config::checks::bounds;
use crate::config::keys::Key;
use crate::config::yaml::read::{Fields, Item};
use crate::qos::{CongestionPointSpec, QueueDiscipline, WredProfile};
use crate::sets::CLASSES;
use crate::units::{Bytes, Probability};

pub const KEYS: &[Key] = &[
    Key::of_class("lossless", ["", ""], "`true` `false`", "selects the column of defaults"),
    Key::of_class("reserve", ["0", "2 frames"], "size", "guaranteed on each port"),
    Key::of_class("alpha", ["`8`", "`1/4`"], "alpha", "limit: alpha times the pool's free part"),
    Key::of_class("limit", ["", ""], "size", "fixed limit instead of `alpha`"),
    Key::of_class("xon_offset", ["not allowed", "10 frames"], "size", "distance of XON below the limit"),
    Key::of_class(
        "xon_floor",
        ["not allowed", "1 frame"],
        "size",
        "XON needs no lower use ([rule](buffer.md#stop-and-go))",
    ),
    Key::of_class(
        "headroom",
        ["not allowed", "`auto`"],
        "at least one frame, or `auto`",
        "eta on every port; `auto`: [computed](headroom.md). `shared-pool`: cap on pool use; `dynamic`: distance of \
         XOFF below the limit",
    ),
    Key::of_class(
        "scheduler",
        ["`{weight: 1}`", "`{weight: 1}`"],
        "`strict` or `{weight: 1 to 100}`",
        "strict queues go first, by falling number; others share by weight",
    ),
    Key::of_class(
        "max_rate",
        ["`off`", "`off`"],
        "`1M` to `800G`, `{rate: 2G, burst: 20kB}` or `off`",
        "[maximum rate](#max_rate) of each port's queue",
    ),
    Key::of_class(
        "ecn",
        ["`off`", "`off`"],
        "`{kmin: 100kB, kmax: 400kB, pmax: 20%}` or `off`",
        "marks ECN-capable frames by the [depth](decisions.md#pacing-by-the-clock-of-the-wire) at dequeue; lossy \
         classes drop other IP frames instead. `kmax`: from `kmin`, below 4 GiB",
    ),
    Key::of_class(
        "telemetry",
        ["`off`", "`off`"],
        "`hpcc` or `off`",
        "[notes](congestion-control.md#in-band-telemetry) of queue and time in marked RoCE packets",
    ),
    Key::of_class(
        "qcn",
        ["`off`", "`off`"],
        "`on`, `{set_point: 26kB, weight: 2, sample: 150kB}` or `off`",
        "[congestion points](congestion-control.md#qcn) of QCN; not beside `routing`. These values are the defaults. \
         `set_point` and `sample`: 1000 B to 64 MiB; `weight`: 0 to 16",
    ),
    Key::of_class(
        "queue_alpha",
        ["`1`", "not allowed"],
        "alpha",
        "queue limit: alpha times the lossy pool's free part",
    ),
    Key::of_class("queue_limit", ["", "not allowed"], "size", "fixed limit instead of `queue_alpha`"),
    Key::of_class(
        "queue_reserve",
        ["0", "not allowed"],
        "size",
        "part of the lossy pool reserved for each port's queue",
    ),
];

/// Keys of a class that set the buffer use of its priority group.
pub const GROUP_KEYS: &[&str] = &["reserve", "alpha", "limit", "xon_offset", "xon_floor", "headroom"];
pub const QUEUE_KEYS: &[&str] =
    &["scheduler", "max_rate", "ecn", "telemetry", "qcn", "queue_alpha", "queue_limit", "queue_reserve"];

/// Keys that only a lossless class has.
const LOSSLESS_KEYS: [&str; 3] = ["xon_offset", "xon_floor", "headroom"];
const LOSSY_KEYS: [&str; 3] = ["queue_alpha", "queue_limit", "queue_reserve"];

/// Reads `classes:`; a class or key that is not written keeps the value of `preset`.
pub fn read<'a>(item: Option<Item<'a>>, preset: Preset) -> [Class<'a>; CLASSES] {
    let mut classes = preset.classes().map(|settings| Class { settings, item: None });
    for (key, value) in item.and_then(|item| item.entries("e.g. `3: {lossless: true}`")).unwrap_or_default() {
        let Some(class) = key.number::<u8>("a class", 0..=7) else { continue };
        let class = &mut classes[usize::from(class)];
        if let Some(fields) = value.fields(KEYS) {
            read_class(&fields, &mut class.settings);
        }
        class.item = Some(value);
    }
    classes
}

fn read_class(fields: &Fields<'_>, class: &mut ClassSettings) {
    if let Some(lossless) = fields.get("lossless").and_then(|item| item.flag())
        && lossless != class.lossless
    {
        *class = ClassSettings::of_kind(lossless);
    }
    refuse_foreign_keys(fields, class.lossless);
    read_buffer_use(fields, class);
    if let Some(scheduler) = fields.get("scheduler").and_then(|item| read_scheduler(&item)) {
        class.scheduler = scheduler;
    }
    if let Some(item) = fields.get("max_rate") {
        class.max_rate = max_rate::read(&item);
    }
    if let Some(item) = fields.get("ecn") {
        class.wred = if item.is("off") { None } else { read_ecn(&item) };
    }
    if let Some(item) = fields.get("qcn") {
        class.qcn = read_qcn(&item);
    }
    if let Some(item) = fields.get("telemetry") {
        class.telemetry = item.choice(&[("hpcc", true), ("off", false)]).unwrap_or(false);
    }
}

fn refuse_foreign_keys(fields: &Fields<'_>, lossless: bool) {
    let (foreign, kind, other): (&[&str], _, _) =
        if lossless { (&LOSSY_KEYS, "lossless", "false") } else { (&LOSSLESS_KEYS, "lossy", "true") };
    for key in foreign {
        if let Some(item) = fields.get(key) {
            item.fail(format!("has no effect in a {kind} class; remove it or write `lossless: {other}`"));
        }
    }
}

fn read_buffer_use(fields: &Fields<'_>, class: &mut ClassSettings) {
    let amount = |key| fields.parse::<Bytes>(key).map(Amount::Bytes);
    class.reserve = amount("reserve").unwrap_or(class.reserve);
    class.xon_offset = amount("xon_offset").unwrap_or(class.xon_offset);
    class.xon_floor = amount("xon_floor").unwrap_or(class.xon_floor);
    class.queue_reserve = fields.parse("queue_reserve").unwrap_or(class.queue_reserve);
    class.limit = read_limit(fields, "alpha", "limit", class.limit);
    class.queue_limit = read_limit(fields, "queue_alpha", "queue_limit", class.queue_limit);
    if let Some(item) = fields.get("headroom") {
        class.headroom = if item.is("auto") { None } else { item.parse() };
    }
}

/// Reads a limit, which is either dynamic (`alpha`) or static (`limit`); `over` if neither key is written.
fn read_limit(fields: &Fields<'_>, alpha: &str, limit: &str, over: Limit) -> Limit {
    match (fields.get(alpha), fields.get(limit)) {
        (Some(_), Some(item)) => {
            item.fail(format!("`{alpha}` and `{limit}` exclude each other; keep one of the two"));
            over
        }
        (Some(item), None) => item.parse().map_or(over, Limit::Alpha),
        (None, Some(item)) => item.parse().map_or(over, Limit::Static),
        (None, None) => over,
    }
}

fn read_scheduler(item: &Item<'_>) -> Option<QueueDiscipline> {
    if item.is("strict") {
        return Some(QueueDiscipline::Strict);
    }
    if !item.is_map() {
        return item.refuse(format!("`{}` is not a scheduler; write `strict` or `{{weight: 4}}`", item.shown()));
    }
    let weight = item.fields(&["weight"])?.required("weight", "weight: 4")?.number("a weight", 1..=100)?;
    Some(QueueDiscipline::Dwrr { weight })
}

/// Reads the congestion point of QCN of each queue; `None`: it is none.
fn read_qcn(item: &Item<'_>) -> Option<CongestionPointSpec> {
    let default = CongestionPointSpec::default();
    if item.is("off") || item.is("false") {
        return None;
    }
    if item.is("on") || item.is("true") {
        return Some(default);
    }
    if !item.is_map() {
        let remedy = "write `on`, `off` or e.g. `{set_point: 26kB, weight: 2, sample: 150kB}`";
        return item.refuse(format!("`{}` is not a congestion point; {remedy}", item.shown()));
    }
    let fields = item.fields(&["set_point", "weight", "sample"])?;
    let size = |key, read: fn(&str) -> Result<Bytes, String>, default| {
        fields.get(key).map_or(Some(default), |item| item.read(read))
    };
    Some(CongestionPointSpec {
        set_point: size("set_point", |text| bounds::size(text, bounds::SET_POINTS), default.set_point)?,
        weight: fields.get("weight").map_or(Some(default.weight), |item| item.number("a weight", 0..=16))?,
        sample: size("sample", |text| bounds::size(text, bounds::SAMPLES), default.sample)?,
    })
}

/// Refuses congestion points in a switch that routes: a frame that it has routed has lost its source.
pub fn refuse_routed_congestion_points(classes: &[Class<'_>; CLASSES]) {
    for class in classes.iter().filter(|class| class.settings.qcn.is_some()) {
        if let Some(item) = &class.item {
            item.child("qcn").fail(
                "QCN works within a layer 2 network: a routed frame does not show its source; remove it, or `routing`",
            );
        }
    }
}

fn read_ecn(item: &Item<'_>) -> Option<WredProfile> {
    if !item.is_map() {
        let remedy = "write `{kmin: 100kB, kmax: 400kB, pmax: 20%}` or `off`";
        return item.refuse(format!("`{}` is not an ECN profile; {remedy}", item.shown()));
    }
    let fields = item.fields(&["kmin", "kmax", "pmax"])?;
    let kmin = fields.required("kmin", "kmin: 100kB")?.parse::<Bytes>()?;
    let kmax_item = fields.required("kmax", "kmax: 400kB")?;
    let kmax = kmax_item.parse::<Bytes>()?;
    let pmax = fields.required("pmax", "pmax: 20%")?.parse::<Probability>()?;
    if kmax < kmin {
        return kmax_item.refuse(format!("`{}` is below kmin; write kmin or more", kmax_item.shown()));
    }
    match WredProfile::new(kmin, kmax, pmax) {
        Some(profile) => Some(profile),
        None => {
            kmax_item.refuse(format!("`{}` is more than a queue can hold; write less than 4GiB", kmax_item.shown()))
        }
    }
}
