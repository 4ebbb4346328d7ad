//! A run is resolved once. The count is for the whole process, so this test has its own program.

#[path = "system/common.rs"]
mod common;

use fedlink::prelude::*;

#[test]
fn a_simulation_resolves_its_configuration_once() {
    let before = Spec::resolutions();
    let mut simulation = Simulation::of(&common::small_config(), common::blobs(20, 600, 90)).unwrap();
    assert_eq!(Spec::resolutions(), before + 1);
    simulation.run(|_| ()).unwrap();
    assert_eq!(Spec::resolutions(), before + 1);
}
