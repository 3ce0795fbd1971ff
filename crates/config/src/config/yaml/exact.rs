//! Values printed to the last unit, to distinguish two values that look equal when rounded.

use crate::config::model::IdleConfig;
use crate::mmu::{AbmSpec, Threshold};
use crate::pfc::WatchdogSpec;
use crate::qos::{CongestionPointSpec, MaxRate, WredProfile};
use crate::units::{BitRate, Bytes, Cells, Length, Nanos};

/// A value that is rounded when it is shown to people.
pub(in crate::config) trait Exact {
    /// The exact value as text: two texts are equal only if the values are equal.
    fn exact(&self) -> String;
}

impl Exact for Cells {
    fn exact(&self) -> String {
        self.to_string()
    }
}

impl Exact for Bytes {
    fn exact(&self) -> String {
        format!("{}B", self.0)
    }
}

impl Exact for Nanos {
    fn exact(&self) -> String {
        format!("{}ns", self.0)
    }
}

impl Exact for BitRate {
    fn exact(&self) -> String {
        format!("{}b/s", self.0)
    }
}

impl Exact for Length {
    fn exact(&self) -> String {
        format!("{}mm", self.mm)
    }
}

impl Exact for Threshold {
    fn exact(&self) -> String {
        match self {
            Self::Dynamic(alpha) => alpha.to_string(),
            Self::Static(cells) => cells.exact(),
        }
    }
}

impl Exact for MaxRate {
    fn exact(&self) -> String {
        format!("{}, burst {}", self.rate.exact(), self.burst.exact())
    }
}

impl Exact for AbmSpec {
    fn exact(&self) -> String {
        format!("interval {}, congested {}", self.interval.exact(), self.congested.exact())
    }
}

impl Exact for CongestionPointSpec {
    fn exact(&self) -> String {
        let Self { set_point, weight, sample } = self;
        format!("set point {}, weight {weight}, sample {}", set_point.exact(), sample.exact())
    }
}

impl Exact for WredProfile {
    fn exact(&self) -> String {
        format!("{} to {}, {}/65536", self.kmin.exact(), self.kmax.exact(), self.pmax.0)
    }
}

impl Exact for WatchdogSpec {
    fn exact(&self) -> String {
        let Self { detection, restoration, .. } = self;
        format!("{} after {}, until {} of quiet", self.action.label(), detection.exact(), restoration.exact())
    }
}

impl Exact for IdleConfig {
    fn exact(&self) -> String {
        let [after, longest, wake] = [self.after, self.longest, self.wake].map(|time| time.exact());
        let (wait, lossless) = (self.wait.label(), self.lossless);
        format!("{{wait: {wait}, after: {after}, longest: {longest}, wake: {wake}, lossless: {lossless}}}")
    }
}

/// A setting that may be absent.
impl<T: Exact> Exact for Option<T> {
    fn exact(&self) -> String {
        self.as_ref().map_or_else(|| "off".to_owned(), T::exact)
    }
}
