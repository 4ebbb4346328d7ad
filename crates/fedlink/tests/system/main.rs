//! Tests of the library as a whole, on a small data set made for them.

mod adversary;
mod central;
mod checkpoint;
mod coded;
mod common;
mod contracts;
mod custom_parts;
mod determinism;
mod engine;
mod feedback;
mod physical;
mod radio;
mod random_sparse;
mod reference;
mod server;
mod session;
mod wire;
