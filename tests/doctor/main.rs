//! `holdfast doctor` on machines that are made of files: the `/sys`, `/proc` and `/dev` of a server, and what is wrong with it
//! after one thing of it has been changed.

mod command;
mod cpus;
mod memory;
mod nics;
mod privileges;
mod server;
