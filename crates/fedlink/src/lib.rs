//! Federated learning over wireless links.
pub mod data;
pub mod rng;
