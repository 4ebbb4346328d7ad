//! Tests of the library as a whole, on a small data set made for them.

mod adaptive_k;
mod adversary;
mod central;
mod checkpoint;
mod coded;
mod common;
mod contracts;
mod custom_parts;
mod determinism;
mod engine;
mod fairness;
mod feedback;
mod learners;
mod log_all;
mod physical;
mod policies;
mod privacy;
mod radio;
mod random_sparse;
mod reference;
mod references;
mod reports;
mod rounds_by_hand;
mod server;
mod wire;
