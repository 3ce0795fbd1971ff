//! The cases of SONiC's public RoCEv2 test plan, with simulated hosts as generator. `conf/sonic` has a scenario for
//! each case. The hosts send messages of queue pairs, answer with ACKs, NAKs and CNPs, obey PFC and run DCQCN. The
//! switch is the pipeline of `holdfast run`.
//!
//! The commands of conf/sonic/README.md are run here. `tests/switch/sonic.rs` has the cases without DCQCN in real time.

mod congestion;
mod fabric;
mod quiet;
mod report;
