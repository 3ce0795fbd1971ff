//! The auditor raises no alarm while there is nothing wrong, and the right one when there is.

mod bed;
mod faults;
mod random;
