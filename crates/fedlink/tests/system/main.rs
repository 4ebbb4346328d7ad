//! Tests of the library as a whole, on a small data set made for them.

mod adversary;
mod central;
mod checkpoint;
mod common;
mod determinism;
mod engine;
mod own_parts;
mod random_sparse;
mod reference;
mod wire;
