//! What a run found, for people and for machines: tables, JSON and CSV. Pure functions of the scenario and the outcome.

pub(in crate::sim) mod group;

#[cfg(test)]
pub(in crate::sim) mod fixture;
