//! The memory of a split is of the order of the training set, not of the devices.
//!
//! One test, because the allocator counts for the whole process.

mod counting;

use counting::peak;
use fedlink::base::units::DeviceId;
use fedlink::data::{Dataset, Features, Samples};
use fedlink::parts::Parts;
use fedlink::spec::Config;

#[test]
fn a_million_devices_take_no_more_memory_than_the_training_set() {
    let samples = |count: usize| Samples {
        features: Features::Bytes(vec![0; count]),
        labels: (0..count).map(|i| (i % 10) as u8).collect(),
    };
    let train = 60_000;
    let (train_samples, test) = (samples(train), samples(1));
    let dataset = Dataset {
        name: "plain".into(),
        features: 1,
        shape: [1, 1, 1],
        classes: 10,
        train: train_samples,
        test,
    };
    let mut config = Config::default();
    config.data.devices = 1_000_000;
    for (kind, key, value) in [
        ("iid", "data.iid.sharing", "overlapping"),
        ("quantity", "data.quantity.sharing", "overlapping"),
        ("classes", "data.dirichlet.sizes", "equal"),
        ("dirichlet", "data.dirichlet.sizes", "equal"),
        ("dirichlet", "data.dirichlet.sizes", "free"),
    ] {
        config.data.partition = kind.into();
        config.set(key, value).expect("a key");
        let (bytes, held) = peak(|| {
            let split = config
                .resolve(&Parts::default())
                .and_then(|spec| spec.partition(&dataset))
                .expect("the configuration is possible");
            let mut samples = Vec::new();
            for device in [0, 1, 499_999, 999_999] {
                split.samples_of(DeviceId(device), &mut samples);
                assert_eq!(samples.len(), split.size_of(DeviceId(device)));
            }
            samples.len()
        });
        assert!(held > 0);
        // Four bytes per training sample, as much again while the table grows, and one device's draw.
        assert!(bytes < 16 * train, "{kind:?} took {bytes} bytes");
    }
    // Disjoint splits are refused before anything of the size of the devices is made.
    for kind in ["iid", "quantity", "shards"] {
        config.data.partition = kind.into();
        for key in ["data.iid.sharing", "data.quantity.sharing"] {
            config.set(key, "disjoint").expect("a key");
        }
        let spec = config.resolve(&Parts::default()).expect("the rules allow it");
        let (bytes, refused) = peak(|| spec.partition(&dataset).is_err());
        assert!(refused && bytes < 1000, "{kind:?} took {bytes} bytes");
    }
}
