//! The facts of a switch that its copies and samples name.

use crate::plan::{BuildFacts, SwitchSpec};
use crate::sets::ClassSet;
use crate::units::{BitRate, Bytes};

/// The switch and its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchFacts {
    /// Name of the system, in printable ASCII.
    pub system: String,
    /// The program with its version.
    pub program: &'static str,
    /// Ports by index.
    pub ports: Vec<PortFacts>,
    /// Size of a cell.
    pub cell: Bytes,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFacts {
    /// Name, in printable ASCII.
    pub name: String,
    /// Rate to which the port is paced.
    pub rate: BitRate,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Priority groups that are lossless here.
    pub lossless: ClassSet,
    /// Whether PFC is generated here.
    pub has_pfc: bool,
}

impl SwitchFacts {
    /// The facts of the switch of `spec`, whose name is `system`.
    #[must_use]
    pub fn new(spec: &SwitchSpec, system: &str) -> Self {
        let ports = spec.ports.iter().map(|port| PortFacts {
            name: printable(&port.name),
            rate: port.rate,
            mtu: port.mtu,
            lossless: port.lossless_groups(),
            has_pfc: port.pfc.is_on(),
        });
        Self {
            system: printable(system),
            program: BuildFacts::default().program,
            ports: ports.collect(),
            cell: spec.buffer.cell,
        }
    }

    /// The name of `port`; `?` if there is no such port.
    #[must_use]
    pub fn name_of(&self, port: u8) -> &str {
        self.ports.get(usize::from(port)).map_or("?", |port| &port.name)
    }

    /// Whether `group` is lossless at `port`.
    #[must_use]
    pub fn is_lossless(&self, port: u8, group: u8) -> bool {
        let port = self.ports.get(usize::from(port));
        port.is_some_and(|port| usize::from(group) < crate::sets::CLASSES && port.lossless.contains(group.into()))
    }
}

/// `text` with `?` for all but printable ASCII.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' }).collect()
}
