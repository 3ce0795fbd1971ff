//! Tests that the auditor reports nothing for a correct switch, and the right invariant for each fault.

mod bed;
mod faults;
mod random;
