"""A PyTorch task. Run where PyTorch is: see `cargo xtask python`."""

import random
import sys

import numpy as np
import pytest
import torch

import fedlink
import fedlink.torch


def blobs(devices, samples, seed):
    """Three clouds of points in the plane; every device has its own part of them."""
    generator = np.random.default_rng(seed)
    centers = np.float32([[2, 0], [-2, 1], [0, -3]])
    parts = []
    for _ in range(devices):
        labels = generator.integers(0, 3, samples)
        points = centers[labels] + 0.7 * generator.standard_normal((samples, 2), dtype=np.float32)
        parts.append(torch.utils.data.TensorDataset(torch.from_numpy(points), torch.from_numpy(labels)))
    return parts


TEST = blobs(1, 500, 99)[0]


def local_training(model, dataset):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    losses = []
    for points, labels in torch.utils.data.DataLoader(dataset, batch_size=20, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(points), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def evaluate(model):
    points, labels = TEST.tensors
    scores = model(points)
    return (scores.argmax(1) == labels).float().mean(), torch.nn.functional.cross_entropy(scores, labels)


def factory():
    return torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def flat(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).numpy()


def with_buffers():
    return torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
    )


CONFIG = {
    "schedule.policy": "bn2-c",
    "schedule.k": 2,
    "run.rounds": 12,
    "radio.symbols": 200,
    "run.evaluate_every": 4,
}


def run(seed=None, **settings):
    task = fedlink.torch.Task(factory, blobs(6, 60, 1), local_training, evaluate, seed=seed)
    return fedlink.simulate({**CONFIG, **settings}, task=task)


def test_a_torch_model_learns_over_the_air():
    result = run()
    assert result.summary["final_accuracy"] > 0.9
    assert len(result.theta) == 2 * 16 + 16 + 16 * 3 + 3
    assert result.config["data"]["devices"] == 6
    assert result.summary["bits_per_round"] > 0


def test_a_run_can_be_repeated_while_other_code_draws_random_numbers():
    first = run()
    torch.manual_seed(123), np.random.seed(123), random.seed(123)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    assert run().digest == first.digest
    assert (torch.get_rng_state() == states[0]).all(), "the global generators were left as they were"
    assert (np.random.get_state()[1] == states[1]).all() and random.getstate() == states[2]


def test_the_seed_is_the_runs_unless_the_task_has_its_own():
    digests = [run(**{"run.seed": seed}).theta_digest for seed in (0, 1, 0)]
    assert digests[0] == digests[2] != digests[1]
    task = fedlink.torch.Task(factory, blobs(2, 20, 1), local_training, evaluate, seed=5)
    other = fedlink.torch.Task(factory, blobs(2, 20, 1), local_training, evaluate)
    starts = []
    for seed in (0, 1):
        for one in (task, other):
            one.begin({"run": {"seed": seed}, "learn": {"state": "reset"}})
            starts.append(one.theta0())
    assert (starts[0] == starts[2]).all() and (starts[1] != starts[3]).any()


@pytest.mark.parametrize("factory", [factory, with_buffers])
def test_an_update_is_the_difference_of_the_parameters(factory):
    task = fedlink.torch.Task(factory, blobs(2, 60, 1), local_training, evaluate)
    theta = task.theta0()
    before = theta.copy()
    update, loss = task.train(theta, 0, 1)
    trained = flat(task._trainer.model)
    assert (theta == before).all() and (update == trained - theta).all() and abs(update).max() > 0
    task.begin({"run": {"seed": 0}, "learn": {"state": "keep"}})
    again, _ = task.train(theta, 0, 1)
    assert (update == again).all() and update.dtype == np.float32 and loss > 0
    assert (task.train(theta, 1, 1)[0] != update).any()
    model = task._trainer.evaluated(torch.from_numpy(theta + update), None)
    assert (flat(model) == theta + update).all()


def test_sizes_count_where_they_should():
    parts = blobs(1, 100, 1) + blobs(1, 20, 2)
    task = fedlink.torch.Task(factory, parts, local_training, evaluate)
    assert [task.samples(0), task.samples(1)] == [100, 20]
    runs = [
        fedlink.simulate({**CONFIG, "learn.aggregate": way}, task=task).digest for way in ("mean", "by-size")
    ]
    assert runs[0] != runs[1]


def test_an_impossible_task_is_refused():
    with pytest.raises(ValueError, match="datasets: is empty"):
        fedlink.torch.Task(factory, [], local_training, evaluate)
    with pytest.raises(
        TypeError, match=r"model_factory: must be a function.*is a model itself; write lambda: Sequential"
    ):
        fedlink.torch.Task(factory(), blobs(1, 5, 1), local_training, evaluate)
    with pytest.raises(
        TypeError, match="model_factory: must make a torch.nn.Module, but made an object of type int"
    ):
        fedlink.torch.Task(lambda: 5, blobs(1, 5, 1), local_training, evaluate)
    with pytest.raises(TypeError, match="local_training: must be a function, but is of type NoneType"):
        fedlink.torch.Task(factory, blobs(1, 5, 1), None, evaluate)
    with pytest.raises(TypeError, match="must be float32"):
        fedlink.torch.Task(lambda: factory().double(), blobs(1, 5, 1), local_training, evaluate)


def test_an_exception_in_local_training_is_raised_unchanged():
    def broken(model, dataset):
        raise KeyError("on purpose")

    task = fedlink.torch.Task(factory, blobs(3, 10, 1), broken, evaluate)
    with pytest.raises(KeyError, match="on purpose") as caught:
        fedlink.simulate(CONFIG, task=task)
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["raised in local_training of device 0 in round 1"]


def test_the_error_states_the_results_that_training_and_evaluation_must_return():
    cases = [
        (
            lambda model, dataset: None,
            evaluate,
            "local_training of device 0 in round 1: the mean loss must be a number, but a NoneType",
        ),
        (lambda model, dataset: "low", evaluate, "round 1: the mean loss must be a number, but a str"),
        (
            local_training,
            lambda model: 0.5,
            r"evaluate: must return \(accuracy, loss\) or a dictionary.*returned float",
        ),
        (local_training, lambda model: (0.5, None), "evaluate: loss must be a number, but a NoneType"),
        (local_training, lambda model: (1, 2, 3), "returned 3 items"),
    ]
    for training, evaluation, reason in cases:
        task = fedlink.torch.Task(factory, blobs(3, 10, 1), training, evaluation)
        with pytest.raises(TypeError, match=reason):
            fedlink.simulate({**CONFIG, "run.rounds": 1}, task=task)


def test_metrics_of_a_model_are_columns_and_the_task_has_a_name():
    def measured(model):
        accuracy, loss = evaluate(model)
        return {"accuracy": accuracy, "loss": loss, "bias": model[-1].bias.abs().max()}

    task = fedlink.torch.Task(factory, blobs(6, 60, 1), local_training, measured)
    result = fedlink.simulate(CONFIG, task=task)
    assert (result.rounds["bias"][3::4] > 0).all()
    assert result.digest != run().digest and result.theta_digest == run().theta_digest
    assert result.config["learn"]["model"] == result.config["data"]["dataset"] == "torch"


def test_without_torch_the_message_names_the_package_to_install():
    import subprocess

    script = "import sys; sys.modules['torch'] = None; import fedlink.torch"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "ImportError: fedlink.torch needs PyTorch: pip install 'torch>=2'" in ended.stderr
