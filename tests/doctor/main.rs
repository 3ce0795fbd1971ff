//! Tests of `holdfast doctor` on machines made of files: the `/sys`, `/proc` and `/dev` of a server. Each test changes
//! one thing and checks the findings.

mod command;
mod cpus;
mod fix;
mod memory;
mod nics;
mod privileges;
mod reach;
mod server;
