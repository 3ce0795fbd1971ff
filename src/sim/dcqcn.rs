//! DCQCN (Zhu et al., SIGCOMM 2015): a sender's rate follows the CNPs that its receiver sends.

use crate::units::{BitRate, Bytes, Nanos};

/// Its parameters; the default is the paper's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DcqcnSpec {
    /// A receiver sends at most one CNP a flow in this time (N, 50 us).
    pub cnp_interval: Nanos,
    /// alpha decays after this time without a CNP (K, 55 us).
    pub alpha_timer: Nanos,
    /// g, as the power of two that it is one over (1/256: 8).
    pub g_shift: u8,
    /// Time between two increases (T, 55 us).
    pub increase_timer: Nanos,
    /// Bytes between two increases (B, 10 MB).
    pub byte_counter: Bytes,
    /// Increases of either kind before additive increase begins (F, 5).
    pub fast_recovery: u32,
    /// Additive increase (R_AI, 40 Mbit/s).
    pub additive: BitRate,
    /// Hyper increase (R_HAI, 400 Mbit/s).
    pub hyper: BitRate,
    /// The rate never falls below this.
    pub least: BitRate,
}

impl Default for DcqcnSpec {
    fn default() -> Self {
        Self {
            cnp_interval: Nanos(50_000),
            alpha_timer: Nanos(55_000),
            g_shift: 8,
            increase_timer: Nanos(55_000),
            byte_counter: Bytes(10_000_000),
            fast_recovery: 5,
            additive: BitRate(40_000_000),
            hyper: BitRate(400_000_000),
            least: BitRate(40_000_000),
        }
    }
}
