//! The route stage over ports in memory, with tables made by hand.

mod bed;
mod drops;
mod ecmp;
mod forward;
mod fuzz;
mod hostile;
mod inject;
mod lossless;
mod packet;
mod punt;
mod reference;
mod transport;
