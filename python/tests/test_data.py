"""Data as arrays: one's own, and the library's."""

import numpy as np
import pytest

import fedlink


@pytest.fixture(scope="module")
def digits():
    return fedlink.dataset("digits")


def test_the_librarys_data_can_be_had_and_given_back(digits, small):
    assert digits.x_train.shape[1:] == (28, 28) and digits.x_train.dtype == np.uint8
    assert digits.y_train.shape == digits.x_train.shape[:1] and digits.classes == 10
    arrays = (digits.x_train, digits.y_train, digits.x_test, digits.y_test)
    custom = fedlink.simulate(small, data=arrays)
    built_in = fedlink.simulate(small)
    assert custom.digest == built_in.digest
    assert custom.config["data"]["dataset"] == "arrays" and "sha256" in custom.config["custom"]["arrays"]
    by_name = fedlink.simulate(small, data=dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays)))
    assert (
        by_name.digest == built_in.digest and fedlink.simulate(small, data="digits").digest == built_in.digest
    )
    assert fedlink.simulate(small, data=digits).digest == built_in.digest
    assert fedlink.dataset(arrays).digest == digits.digest


def test_the_split_can_be_had_and_given_back(digits, small):
    config = {**small, "data.partition": "classes", "data.classes.per_device": 2, "run.seed": 3}
    split = fedlink.split(config)
    assert len(split) == 8 and all(len(samples) == 60 for samples in split)
    assert all(len(np.unique(digits.y_train[samples])) == 2 for samples in split)
    custom = fedlink.simulate({**config, "data.devices": 1, "data.partition": "iid"}, partition=split)
    assert custom.digest == fedlink.simulate(config).digest
    assert custom.config["data"]["partition"] == "indices" and custom.config["data"]["devices"] == 8
    assert "lists of 8 devices" in custom.config["custom"]["indices"]
    again = fedlink.split(config, partition=split)
    assert all((a == b).all() for a, b in zip(split, again))


def blobs(count, seed, shape=(2,)):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, count)
    size = int(np.prod(shape))
    points = generator.standard_normal((count, size)) * 0.5 + 2 * np.eye(size, dtype=float)[labels % size]
    return points.reshape(count, *shape).astype(np.float32), labels


def test_a_model_learns_from_own_floats_split_by_hand(small):
    (x, y), (x_test, y_test) = blobs(800, 0, (3,)), blobs(300, 1, (3,))
    parts = np.array_split(np.arange(800), 8)
    config = {
        **small,
        "run.rounds": 40,
        "schedule.policy": "bn2",
        "learn.optimizer": "sgd",
        "learn.rate": 0.5,
        "data.scaling": "none",
        "compress.scheme": "top-k",
        "schedule.k": 4,
    }
    result = fedlink.simulate(config, data=(x, y, x_test, y_test), partition=parts)
    assert result.summary["final_accuracy"] > 0.9
    assert len(result.theta) == 3 * 3 + 3


def test_images_with_channels_are_taken_last_and_refused_first(small):
    x, y = blobs(60, 0, (8, 8, 3))
    config = {**small, "data.samples_per_device": 6, "learn.batch": 6}
    assert len(fedlink.simulate(config, data=(x, y, x, y)).theta) == (8 * 8 * 3 + 1) * 3
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    with pytest.raises(
        ValueError, match=r"x_train: has shape \[60, 3, 8, 8\], its channels first.*transpose\(0, 2, 3, 1\)"
    ):
        fedlink.simulate(config, data=(first, y, first, y))
    # Not contiguous, but in the right order: a view is as good as a copy.
    assert fedlink.simulate(config, data=(first.transpose(0, 2, 3, 1), y, x, y)).digest == fedlink.simulate(
        config, data=(x, y, x, y)
    ).digest


GOOD = blobs(60, 0)


@pytest.mark.parametrize(
    "change, kind, reason",
    [
        (
            {"x_train": GOOD[0].astype(float)},
            TypeError,
            r"x_train: must be an array of uint8.*float64; write x_train.astype",
        ),
        ({"x_train": GOOD[0][:-1]}, ValueError, "y_train: has 60 labels for the 59 samples of x_train"),
        ({"y_train": GOOD[1] - 1}, ValueError, "y_train: entry .* is -1"),
        ({"y_train": GOOD[1] + 300}, ValueError, "is not below 256"),
        ({"y_train": GOOD[1] * 0.5}, TypeError, "y_train: must be an array of whole numbers"),
        ({"y_train": np.eye(3)[GOOD[1]]}, ValueError, "y_train: must have one dimension"),
        ({"x_test": GOOD[0][:, :1]}, ValueError, "x_test: samples are .* but those of x_train"),
        ({"x_test": (GOOD[0] > 0).astype(np.uint8)}, TypeError, "one of x_train and x_test is uint8"),
        ({"x_train": np.full((60, 2), np.nan, np.float32)}, ValueError, "x_train: number 0 is NaN"),
        ({"x_train": np.zeros((60, 2, 2, 2, 2), np.float32)}, ValueError, "must be N × F"),
        ({"x_train": np.zeros(60, np.float32)}, ValueError, "must be N × F"),
        ({"x_train": np.zeros((60, 9, 9, 9), np.float32)}, ValueError, "must be N × F"),
    ],
)
def test_arrays_that_cannot_be_data_are_refused(small, change, kind, reason):
    data = {"x_train": GOOD[0], "y_train": GOOD[1], "x_test": GOOD[0], "y_test": GOOD[1], **change}
    with pytest.raises(kind, match=reason):
        fedlink.simulate(small, data=data)


def test_an_object_that_is_no_data_set_or_no_split_is_refused(small):
    with pytest.raises(ValueError, match="data: has no y_train"):
        fedlink.simulate(small, data={"x_train": GOOD[0], "x_test": GOOD[0], "y_test": GOOD[1]})
    with pytest.raises(TypeError, match="data: must be .* but is 2 items"):
        fedlink.simulate(small, data=GOOD)
    with pytest.raises(TypeError, match="data: must be .* but is of type int"):
        fedlink.simulate(small, data=5)
    for partition, reason in [
        ([[0], []], "device 1 has no sample"),
        ([[0, 0]], "device 0 has sample 0 twice"),
        ([[10**6]], "device 0 has sample 1000000"),
        ([[0], [-1]], "device 1: entry 0 is -1"),
    ]:
        with pytest.raises(ValueError, match=reason):
            fedlink.simulate({**small, "schedule.k": 1}, partition=partition)


def test_a_task_has_its_own_data(small):
    class Task(fedlink.Task):
        devices = 3

    with pytest.raises(ValueError, match="a task has its own data"):
        fedlink.simulate(small, task=Task(), data="digits")
