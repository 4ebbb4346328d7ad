//! The store of a sweep: it survives kills, signals and full disks, is shared by many processes, grows, and
//! records the programs that made it.

mod common;
mod faults;
mod fixtures;
mod grow;
mod kill;
mod links;
mod provenance;
mod share;
#[path = "../small_data/mod.rs"]
mod small_data;
mod small_disk;
mod vouched;
