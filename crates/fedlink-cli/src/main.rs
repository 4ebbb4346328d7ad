//! The `fedlink` command.
fn main() {}
