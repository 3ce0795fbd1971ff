//! Rules that concern several sections: bounds, sums, links between ports, and the advice where they do not fit.

pub mod bounds;
pub(super) mod levers;
pub(super) mod max_rates;
pub(super) mod paths;
pub(super) mod summary;
