//! Between lcores, and between an lcore and the control thread: rings, and the protocols over them.

pub(crate) mod accept;
pub(crate) mod mesh;
