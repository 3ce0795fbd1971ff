//! `classes:` and `maps:`.

use super::preset::{Amount, ClassSettings, Limit, Preset};
use super::range::IdRange;
use super::read::{Fields, Item};
use crate::qos::{CLASSES, ClassMap, MarkMap, QueueDiscipline, WredProfile};
use crate::units::{Bytes, Probability};

const KEYS: &[&str] = &[
    "lossless",
    "reserve",
    "alpha",
    "limit",
    "xon_offset",
    "xon_floor",
    "headroom",
    "scheduler",
    "ecn",
    "queue_alpha",
];

/// Keys that only a lossless, or only a lossy class has.
const LOSSLESS_KEYS: [&str; 3] = ["xon_offset", "xon_floor", "headroom"];
const LOSSY_KEYS: [&str; 1] = ["queue_alpha"];

/// One class and where it is configured, if it is.
pub struct Class<'a> {
    pub settings: ClassSettings,
    pub item: Option<Item<'a>>,
}

/// Reads `classes:` over what `preset` has.
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
    if let Some(item) = fields.get("ecn") {
        class.wred = if item.is("off") { None } else { read_ecn(&item) };
    }
}

fn refuse_foreign_keys(fields: &Fields<'_>, lossless: bool) {
    let (foreign, kind, other): (&[&str], _, _) =
        if lossless { (&LOSSY_KEYS, "lossless", "false") } else { (&LOSSLESS_KEYS, "lossy", "true") };
    for key in foreign {
        if let Some(item) = fields.get(key) {
            item.fail(format!("means nothing in a {kind} class; remove it or write `lossless: {other}`"));
        }
    }
}

fn read_buffer_use(fields: &Fields<'_>, class: &mut ClassSettings) {
    let amount = |key| fields.parse::<Bytes>(key).map(Amount::Bytes);
    class.reserve = amount("reserve").unwrap_or(class.reserve);
    class.xon_offset = amount("xon_offset").unwrap_or(class.xon_offset);
    class.xon_floor = amount("xon_floor").unwrap_or(class.xon_floor);
    class.queue_alpha = fields.parse("queue_alpha").unwrap_or(class.queue_alpha);
    match (fields.get("alpha"), fields.get("limit")) {
        (Some(_), Some(limit)) => limit.fail("`alpha` and `limit` exclude each other; keep one of the two"),
        (Some(item), None) => class.limit = item.parse().map_or(class.limit, Limit::Alpha),
        (None, Some(item)) => class.limit = item.parse().map_or(class.limit, Limit::Static),
        (None, None) => {}
    }
    if let Some(item) = fields.get("headroom") {
        class.headroom = if item.is("auto") { None } else { item.parse() };
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
        return kmax_item.refuse(format!("`{}` is below kmin; write a size from kmin on", kmax_item.shown()));
    }
    match WredProfile::new(kmin, kmax, pmax) {
        Some(profile) => Some(profile),
        None => {
            kmax_item.refuse(format!("`{}` is more than a queue can hold; write less than 4GiB", kmax_item.shown()))
        }
    }
}

/// Reads `maps:` over the class selectors.
pub fn read_maps(item: Option<Item<'_>>, classes: &[Class<'_>; CLASSES]) -> (MarkMap, ClassMap) {
    let mut map = MarkMap::identity();
    if let Some(fields) = item.and_then(|item| item.fields(&["dscp", "pcp"])) {
        read_map(fields.get("dscp"), "a DSCP", &mut map.dscp_to_tc);
        if let Some(item) = fields.get("pcp") {
            read_map(Some(item.clone()), "a PCP", &mut map.pcp_to_tc);
            warn_deaf_senders(&item, &map, classes);
        }
    }
    (map, ClassMap::identity())
}

/// PFC names the priority that a sender stops; one that sends with another PCP does not.
fn warn_deaf_senders(item: &Item<'_>, map: &MarkMap, classes: &[Class<'_>; CLASSES]) {
    for (pcp, &class) in map.pcp_to_tc.iter().enumerate() {
        if pcp != usize::from(class) && classes[usize::from(class)].settings.lossless {
            item.warn(format!(
                "PCP {pcp} goes into the lossless class {class}, whose PFC stops priority {class} and not {pcp}; map \
                 only PCP {class} to it"
            ));
        }
    }
}

fn read_map(item: Option<Item<'_>>, what: &str, table: &mut [u8]) {
    let highest = u16::try_from(table.len() - 1).unwrap_or(u16::MAX);
    for (key, value) in item.and_then(|item| item.entries("e.g. `{26: 3}`")).unwrap_or_default() {
        let range = IdRange::read(&key, what, 0..=highest);
        if let (Some(range), Some(class)) = (range, value.number("a class", 0..=7)) {
            table[range.indices()].fill(class);
        }
    }
}
