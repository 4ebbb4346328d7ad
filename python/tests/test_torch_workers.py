"""A PyTorch task that trains in worker processes and keeps the state of devices. Run where PyTorch is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from test_torch import CONFIG, blobs, evaluate, factory, local_training, with_buffers

import fedlink
import fedlink.torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.02)


def steps(model, dataset, optimizer):
    """A few steps, on batches that NumPy and Python draw too."""
    points, labels = dataset.tensors
    total = 0.0
    for _ in range(3):
        batch = torch.randperm(len(labels))[:20]
        optimizer.zero_grad()
        noise = 0.01 * float(np.random.standard_normal())
        loss = torch.nn.functional.cross_entropy(model(points[batch] + noise), labels[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() / 3
    return total


def without_zero_grad(model, dataset):
    """Adds to gradients that an earlier training must not have left."""
    points, labels = dataset.tensors
    loss = torch.nn.functional.cross_entropy(model(points), labels)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.5 * parameter.grad
    return loss


def task(factory=with_buffers, training=steps, sets=None, **options):
    if training is steps:
        options.setdefault("optimizer", adam)
    return fedlink.torch.Task(factory, sets or blobs(7, 60, 1), training, evaluate, **options)


def gone(pids):
    """Waits until none of these processes is there; whether that came true."""
    for _ in range(200):
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.1)
    return False


WORKERS = [{"workers": 1}, {"workers": 3}]
WORKERS = [{**options, "multiprocessing_context": "fork"} for options in WORKERS] + [{"workers": 2}]


@pytest.mark.parametrize("state", ["keep", "reset"])
@pytest.mark.parametrize("policy", ["bn2-c", "bc"])
def test_any_number_of_processes_gives_the_same_bits(state, policy):
    config = {**CONFIG, "schedule.policy": policy, "learn.state": state, "run.rounds": 5}
    uneven = blobs(4, 60, 1) + blobs(3, 25, 2)
    here = fedlink.simulate(config, task=task(sets=uneven))
    for options in WORKERS if (state, policy) == ("keep", "bn2-c") else WORKERS[1:2]:
        there = fedlink.simulate(config, task=task(sets=uneven, **options))
        assert there.digest == here.digest, options
    # A device that keeps an optimizer trains in every round; statistics alone do not make it train.
    trained = 7 if state == "keep" or policy == "bn2-c" else 2
    assert here.rounds["trained"].tolist() == [trained] * 5


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_of_one_training_reaches_another(workers):
    config = {**CONFIG, "run.rounds": 4}
    options = {"workers": workers, "multiprocessing_context": "fork"}
    one = task(factory, without_zero_grad, **options)
    together = fedlink.simulate(config, task=one)
    theta, update = one.theta0(), None
    for device in range(7):
        fresh = task(factory, without_zero_grad)
        alone = fresh.train(theta, 0, device)[0]
        update = one.train_cohort(theta, 0, list(range(7)))[0][device].copy()
        assert (alone == update).all()
    one.end()
    assert together.summary["final_accuracy"] > 0.5 and np.abs(update).max() > 0


@pytest.mark.parametrize("workers", [0, 2])
def test_kept_optimizers_are_those_of_a_loop_written_by_hand(workers):
    config = {
        **CONFIG,
        "schedule.policy": "bc",
        "schedule.k": 7,
        "radio.symbols": 1e12,
        "compress.scheme": "random-sparse",
        "learn.state": "keep",
        "run.rounds": 4,
        "run.seed": 3,
    }
    sets = blobs(7, 60, 1)
    result = fedlink.simulate(
        config, task=task(factory, sets=sets, workers=workers, multiprocessing_context="fork")
    )
    from fedlink.torch._rng import seed_all, seed_of

    seed_all(seed_of(3, "init"))
    theta = torch.nn.utils.parameters_to_vector(factory().parameters()).detach()
    models = [factory() for _ in sets]
    optimizers = [adam(model.parameters()) for model in models]
    for t in range(4):
        mean = torch.zeros_like(theta, dtype=torch.float64)
        for m, (model, optimizer) in enumerate(zip(models, optimizers)):
            with torch.no_grad():
                start = 0
                for parameter in model.parameters():
                    parameter.copy_(theta[start : start + parameter.numel()].view_as(parameter))
                    start += parameter.numel()
            seed_all(seed_of(3, t, m))
            steps(model, sets[m], optimizer)
            with torch.no_grad():
                mean += torch.nn.utils.parameters_to_vector(model.parameters()) - theta
        theta = theta + (mean / 7).float()
    assert np.abs(result.theta - theta.numpy()).max() < 1e-5
    reset = fedlink.simulate({**config, "learn.state": "reset"}, task=task(factory, sets=sets))
    assert np.abs(reset.theta - theta.numpy()).max() > 1e-3


def test_a_model_is_evaluated_with_the_mean_statistics_of_the_devices():
    seen = []

    def look(model):
        seen.append((model[1].running_mean.clone(), model[1].running_var.clone()))
        return evaluate(model)

    one = fedlink.torch.Task(with_buffers, blobs(6, 60, 1), local_training, look)
    result = fedlink.simulate({**CONFIG, "run.rounds": 4}, task=one)
    means = torch.stack([buffers[0] for buffers in one._device_buffers.values()])
    assert len(means) == 6 and (means[0] != means[1]).any()
    assert torch.allclose(seen[-1][0], means.mean(0), atol=1e-6) and (seen[-1][1] != 1).all()
    assert result.summary["final_accuracy"] > 0.9

    with pytest.warns(RuntimeWarning, match='buffers="reset": BatchNorm.*mean 0, variance 1'):
        one = fedlink.torch.Task(with_buffers, blobs(6, 60, 1), local_training, look, buffers="reset")
    fedlink.simulate({**CONFIG, "run.rounds": 4}, task=one)
    assert (seen[-1][0] == 0).all() and (seen[-1][1] == 1).all()


@pytest.mark.parametrize("first, then", [(0, 2), (2, 0), (2, 3)])
def test_a_checkpoint_has_optimizers_and_statistics_for_any_number_of_processes(tmp_path, first, then):
    config = {**CONFIG, "learn.state": "keep", "run.rounds": 7}
    fork = {"multiprocessing_context": "fork"}
    whole = fedlink.simulate(config, task=task())
    path = tmp_path / "run.ckpt"

    def stops(model):
        if path.exists():
            raise RuntimeError("on purpose")
        return evaluate(model)

    stopping = fedlink.torch.Task(
        with_buffers, blobs(7, 60, 1), steps, stops, optimizer=adam, workers=first, **fork
    )
    with pytest.raises(RuntimeError, match="on purpose"):
        fedlink.simulate(config, task=stopping, checkpoint=path, checkpoint_every=3)
    resumed = fedlink.simulate(config, task=task(workers=then, **fork), checkpoint=path)
    assert resumed.digest == whole.digest
    with pytest.raises(ValueError, match="the checkpoint has state of a task, but this task keeps none"):
        fedlink.simulate(config, task=task(factory, local_training), checkpoint=path)


def fails_on_three(model, dataset):
    if len(dataset) == 33:
        raise KeyError("on purpose")
    return local_training(model, dataset)


def dies_on_three(model, dataset):
    if len(dataset) == 33:
        os.kill(os.getpid(), signal.SIGKILL)
    return local_training(model, dataset)


class Stubborn(Exception):
    """One that cannot be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def stubborn(model, dataset):
    raise Stubborn("on", "purpose")


def test_an_exception_in_a_worker_is_raised_and_names_device_and_round():
    sets = blobs(3, 60, 1) + blobs(1, 33, 2) + blobs(2, 60, 3)
    one = task(factory, fails_on_three, sets, workers=2, multiprocessing_context="fork")
    with pytest.raises(KeyError, match="on purpose") as caught:
        fedlink.simulate(CONFIG, task=one)
    assert "in fails_on_three" in str(caught.value.__cause__)
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["raised in local_training of device 3 in round 1"]
    assert one._workers is None
    one = task(factory, stubborn, workers=2, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="local_training of device 0 in round 1: Stubborn: on purpose"):
        fedlink.simulate(CONFIG, task=one)
    one = task(factory, lambda model, dataset: None, workers=2, multiprocessing_context="fork")
    with pytest.raises(TypeError, match="local_training of device 0 in round 1: the mean loss must"):
        fedlink.simulate(CONFIG, task=one)


def test_a_worker_that_is_killed_is_named_and_the_others_end():
    sets = blobs(3, 60, 1) + blobs(1, 33, 2) + blobs(2, 60, 3)
    with task(factory, dies_on_three, sets, workers=2, multiprocessing_context="fork") as one:
        pids = one._running().process_ids
        with pytest.raises(RuntimeError, match=r"worker process \d of .* was killed by SIGKILL during"):
            fedlink.simulate(CONFIG, task=one)
        assert gone(pids)


def test_workers_end_with_the_run_or_with_the_block():
    one = task(workers=2, multiprocessing_context="fork")
    fedlink.simulate({**CONFIG, "run.rounds": 1}, task=one)
    assert one._workers is None
    with one:
        first = fedlink.simulate({**CONFIG, "run.rounds": 1}, task=one)
        pids = one._workers.process_ids
        again = fedlink.simulate({**CONFIG, "run.rounds": 1}, task=one)
        other = fedlink.simulate({**CONFIG, "run.rounds": 1, "run.seed": 1}, task=one)
        assert one._workers.process_ids == pids
    assert gone(pids) and first.digest == again.digest != other.digest


def test_impossible_settings_of_workers_are_refused():
    with pytest.raises(ValueError, match="workers: must be a whole number from 0 to 1024, but is -1"):
        task(workers=-1)
    with pytest.raises(ValueError, match="buffers: must be one of 'local', 'reset', but is 'global'"):
        task(buffers="global")
    with pytest.raises(ValueError, match="multiprocessing_context: must be one of .*, but is 'thread'"):
        task(workers=1, multiprocessing_context="thread")
    for name, options in (
        ("model_factory", {"factory": lambda: factory()}),
        ("local_training", {"training": lambda model, dataset: 0.0}),
        ("optimizer", {"optimizer": lambda parameters: adam(parameters)}),
    ):
        with pytest.raises(TypeError, match=f"^{name}: cannot be sent to a worker process .* top level"):
            fedlink.simulate(CONFIG, task=task(workers=1, **options))
    with pytest.raises(TypeError, match="optimizer: must make a torch.optim.Optimizer, but made .* type int"):
        fedlink.simulate(CONFIG, task=task(optimizer=lambda parameters: 5))


SCRIPT = """
import sys, time
sys.path[:0] = {path!r}
import torch
import fedlink, fedlink.torch
from test_torch import blobs, evaluate, factory

def slow(model, dataset):
    time.sleep(0.05)
    return 1.0

task = fedlink.torch.Task(
    factory, blobs(4, 20, 1), slow, evaluate, workers=2, multiprocessing_context="fork"
)
with task:
    print(*task._running().process_ids, flush=True)
    try:
        fedlink.simulate({{"schedule.k": 2, "run.rounds": 100000}}, task=task, progress=False)
    except KeyboardInterrupt as stop:
        print("stopped after", stop.result.summary["rounds"] > 0, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_the_run_and_no_shared_memory_stays(number):
    script = SCRIPT.format(path=[str(ROOT / "python"), str(ROOT / "python/tests")])
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(1)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # As a terminal does: to all.
        else:
            process.send_signal(number)
        rest = process.stdout.read()
    assert gone(pids)
    assert "stopped after True" in rest if number == signal.SIGINT else process.returncode == -number
    # PyTorch's names of shared memory have the process that made it.
    assert not [name for name in os.listdir("/dev/shm") if f"torch_{process.pid}_" in name]


def test_the_example_runs_in_a_short_form(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples/cifar10-resnet"))
    import train

    tiny = "--dataset digits --devices 4 --samples 40 --steps 2 --batch 10 --rounds 2 --symbols 200000"
    assert train.main([*tiny.split(), "--workers", "1", "--target", "0"]) == 0
    first = capsys.readouterr().out
    assert train.main([*tiny.split(), "--workers", "0", "--target", "1.01"]) == 1
    second = capsys.readouterr().out
    assert "after 2 rounds" in first and first.split("digest")[1][:13] == second.split("digest")[1][:13]
    assert sum(parameter.numel() for parameter in train.ResNet8().parameters()) == 77_850
