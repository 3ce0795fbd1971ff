//! Rows of the table of settings.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;

use super::value::Precision;

/// Labels of a series: names and values.
pub(super) type Labels<'a> = ArrayVec<(&'static str, &'a str), 2>;

/// A place whose settings have metrics: a priority group, a queue.
pub(super) trait Place {
    /// Labels of its metrics.
    fn labels(&self) -> Labels<'_>;
}

/// Whether a setting can change while the switch runs.
enum Change<S> {
    Live,
    Restart,
    LiveIf(fn(&S) -> bool),
    /// While the port is out, where this says so.
    OutIf(fn(&S) -> bool),
}

/// A metric of a setting, by name and help; `None`: the place has no series.
type Gauge<S> = (&'static str, &'static str, fn(&S) -> Option<f64>);

/// One setting of a place `S`: the only source of its comparisons, its texts and, at a [`Place`], its metrics.
pub(super) struct Row<S> {
    /// Its key below the place.
    key: &'static str,
    change: Change<S>,
    /// Its value; `None`: the place has no such setting.
    show: fn(&S, Precision) -> Option<String>,
    gauges: Vec<Gauge<S>>,
}

/// A setting that can change while the switch runs.
pub(super) fn live<S>(key: &'static str, show: fn(&S, Precision) -> Option<String>) -> Row<S> {
    Row { key, change: Change::Live, show, gauges: Vec::new() }
}

/// A setting that needs a restart.
pub(super) fn restart<S>(key: &'static str, show: fn(&S, Precision) -> Option<String>) -> Row<S> {
    Row { key, change: Change::Restart, show, gauges: Vec::new() }
}

/// A setting that a port takes only while it is out, and where `may_leave` says so.
pub(super) fn out<S>(
    key: &'static str,
    may_leave: fn(&S) -> bool,
    show: fn(&S, Precision) -> Option<String>,
) -> Row<S> {
    Row { key, change: Change::OutIf(may_leave), show, gauges: Vec::new() }
}

impl<S> Row<S> {
    /// This setting, which can change while the switch runs only where `is_live` says so.
    pub fn where_live(self, is_live: fn(&S) -> bool) -> Self {
        Self { change: Change::LiveIf(is_live), ..self }
    }

    fn is_live(&self, place: &S) -> bool {
        match self.change {
            Change::Live => true,
            Change::Restart => false,
            Change::LiveIf(is_live) | Change::OutIf(is_live) => is_live(place),
        }
    }
}

impl<S: Place> Row<S> {
    /// This setting with a metric.
    pub fn gauge(mut self, name: &'static str, help: &'static str, value: fn(&S) -> Option<f64>) -> Self {
        self.gauges.push((name, help, value));
        self
    }
}

/// One setting of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value for people, which may be rounded.
    pub text: String,
    /// The exact value: settings are equal if these are.
    pub exact: String,
    /// Whether it can change while the switch runs.
    pub is_live: bool,
    /// Whether its port is taken out and put in again for the change.
    pub is_out: bool,
}

/// All settings of a configuration, by port (`None`: the switch) and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    rows: BTreeMap<(Option<String>, String), Setting>,
    pub(super) fingerprint: u64,
}

impl Settings {
    /// A number that changes with any setting and with nothing else; zero without a configuration.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// All settings in order: those of the switch, then of each port, by key.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, &str, &Setting)> {
        self.rows.iter().map(|((port, key), setting)| (port.as_deref(), key.as_str(), setting))
    }

    /// The setting `key` of `port`, or of the switch.
    #[must_use]
    pub fn get(&self, port: Option<&str>, key: &str) -> Option<&Setting> {
        self.rows.get(&(port.map(str::to_owned), key.to_owned()))
    }

    /// Adds a setting whose text follows the precision.
    pub(in crate::config) fn put(
        &mut self,
        port: Option<&str>,
        key: impl Into<String>,
        is_live: bool,
        show: impl Fn(Precision) -> String,
    ) {
        let setting = Setting { text: show(Precision::Rounded), exact: show(Precision::Exact), is_live, is_out: false };
        self.rows.insert((port.map(str::to_owned), key.into()), setting);
    }

    /// Adds the settings of `rows` that `place` has. Their keys get `prefix`.
    pub(super) fn add<S>(&mut self, port: Option<&str>, prefix: &str, rows: &[Row<S>], place: &S) {
        for row in rows {
            let Some(exact) = (row.show)(place, Precision::Exact) else { continue };
            let text = (row.show)(place, Precision::Rounded).unwrap_or_default();
            let is_out = matches!(row.change, Change::OutIf(_));
            let setting = Setting { text, exact, is_live: row.is_live(place), is_out };
            self.rows.insert((port.map(str::to_owned), format!("{prefix}{}", row.key)), setting);
        }
    }
}

/// Takes metrics of settings: each family once, followed by its series.
pub trait Gauges {
    /// Begins a family.
    fn begin(&mut self, name: &str, help: &str);
    /// Adds a series to it.
    fn add(&mut self, labels: &[(&str, &str)], value: f64);
}

/// Gives the metrics of `rows` at all `places`.
pub(super) fn measure<S: Place>(rows: &[Row<S>], places: &[S], gauges: &mut dyn Gauges) {
    for (name, help, value) in rows.iter().flat_map(|row| &row.gauges) {
        gauges.begin(name, help);
        for place in places {
            if let Some(value) = value(place) {
                gauges.add(&place.labels(), value);
            }
        }
    }
}
