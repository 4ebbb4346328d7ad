"""A PyTorch model and the data of the devices as a task."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .._parts import Task as BaseTask
from ._rng import seed_of, seeded
from ._trainer import Done, Failure, Functions, Job, Trainer, as_number
from ._workers import Workers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Memory for the updates of a cohort, bytes.
COHORT_BYTES = 256 << 20


#: Attributes of a task that change with its runs, or do not affect the result.
_OF_A_RUN = {
    "cohort", "_begun", "_blocks", "_context", "_count", "_device_buffers", "_functions", "_keeps_optimizer",
    "_restored", "_seed", "_sizes", "_trainer", "_workers",
}  # fmt: skip


class Task(BaseTask):
    """A ``torch.nn.Module`` trained on one data set for each device.

    ``model_factory()`` makes a model. ``datasets[m]`` is the data of device m, with a length.
    ``local_training(model, dataset)`` trains the model in place and returns its mean loss.
    ``evaluate(model)`` returns accuracy (a share) and loss, or a dictionary of both and any other metrics by
    name.

    With ``optimizer``, such as ``lambda parameters: torch.optim.Adam(parameters, lr=1e-3)``, it is
    ``local_training(model, dataset, optimizer)``, and under ``learn.state = "keep"`` every device keeps its
    optimizer from round to round (and trains in every round); under ``"reset"`` it gets a new one each time.

    θ is the vector of the model's parameters, which must be float32. Buffers (such as BatchNorm's running
    means) are not in it and are not sent. With ``buffers="local"`` every device keeps its own from one
    training to the next, and the model is evaluated with their mean over the devices that have trained; with
    ``"reset"`` every training and every evaluation starts from those of a new model.

    ``workers`` processes of one thread each train devices side by side; with 0 devices train one after the
    other in this process, on PyTorch's own threads. The result is the same bit for bit for any number of
    processes, and for none if ``torch.set_num_threads(1)`` was called. ``multiprocessing_context`` is how
    processes start: "spawn" (functions at the top level of a module, ``if __name__ == "__main__":`` in a
    script), "fork" (Linux; any functions, also in a notebook) or "forkserver". They end with the run; in
    ``with Task(…) as task:`` they serve all runs of the block.

    The random generators of PyTorch, NumPy and Python are seeded for each training from ``seed`` (by default
    the run's, ``run.seed``), the round and the device, so that a run can be repeated; generators of your own
    you must seed likewise.

    >>> task = fedlink.torch.Task(Net, datasets, local_training, evaluate, workers=2)
    >>> fedlink.simulate({"schedule.policy": "bn2", "schedule.k": 5, "run.rounds": 20}, task=task)
    """

    #: How the task is called in records.
    name = "torch"

    def __init__(
        self,
        model_factory: Callable[[], torch.nn.Module],
        datasets: Sequence[Any],
        local_training: Callable[..., Any],
        evaluate: Callable[[torch.nn.Module], tuple[Any, Any] | Mapping[str, Any]],
        *,
        optimizer: Callable[..., torch.optim.Optimizer] | None = None,
        buffers: str = "local",
        workers: int = 0,
        multiprocessing_context: str = "spawn",
        seed: int | None = None,
    ) -> None:
        if len(datasets) == 0:
            raise ValueError("datasets: is empty, but there must be a device to train")
        if isinstance(model_factory, torch.nn.Module):
            kind = type(model_factory).__name__
            raise TypeError(
                f"model_factory: must be a function that makes a model, but is a model itself; "
                f"write lambda: {kind}(…)"
            )
        for name, function in (
            ("model_factory", model_factory),
            ("local_training", local_training),
            ("evaluate", evaluate),
            ("optimizer", optimizer),
        ):
            if not callable(function) and not (name == "optimizer" and function is None):
                raise TypeError(f"{name}: must be a function, but is of type {type(function).__name__}")
        _one_of("buffers", buffers, ("local", "reset"))
        _one_of("multiprocessing_context", multiprocessing_context, _start_methods())
        if not isinstance(workers, int) or isinstance(workers, bool) or not 0 <= workers <= 1024:
            raise ValueError(f"workers: must be a whole number from 0 to 1024, but is {workers!r}")
        self.devices = len(datasets)
        self._functions = Functions(model_factory, datasets, local_training, optimizer)
        self._evaluate, self._buffers, self._given_seed = evaluate, buffers, seed
        self._count, self._context = min(workers, self.devices), multiprocessing_context
        self._workers: Workers | None = None
        #: The settings that the workers were last started with: seed, and whether optimizers are kept.
        self._begun: tuple[int, bool] | None = None
        self._blocks = 0
        self._sizes: list[int] | None = None
        self._start(0 if seed is None else seed, False)
        if buffers == "reset" and any(map(_keeps_statistics, self._trainer.model.modules())):
            warnings.warn(
                'buffers="reset": BatchNorm\'s statistics are those of a new model in every evaluation (mean '
                '0, variance 1); buffers="local" takes the mean of those on the devices',
                RuntimeWarning,
                stacklevel=2,
            )

    def _start(self, seed: int, keeps_optimizer: bool) -> None:
        """A new run: a new model, devices without state."""
        self._seed, self._keeps_optimizer = seed, keeps_optimizer
        with seeded(0):
            self._trainer = Trainer(self._functions, seed, keeps_optimizer)
        #: Latest buffers of the devices that have trained.
        self._device_buffers: dict[int, list[torch.Tensor]] = {}
        #: Optimizers that were restored and are yet to be sent to the workers.
        self._restored: dict[int, Any] | None = None
        self._begun = None
        rows = COHORT_BYTES // (4 * self._trainer.dim)
        self.cohort = min(self.devices, max(rows, 4 * self._count, 1))
        if self._workers is None or self._workers.updates.shape != (self.cohort, self._trainer.dim):
            self._end_workers()

    def _determined_by(self) -> dict[str, Any]:
        """The attributes that determine the result: the number of processes does not."""
        held = {name: value for name, value in vars(self).items() if name not in _OF_A_RUN}
        return {**held, **vars(self._functions)}

    # Methods that `simulate` calls.

    def begin(self, config: Mapping[str, Any]) -> None:
        keeps = self._functions.optimizer is not None and config["learn"]["state"] == "keep"
        self._start(config["run"]["seed"] if self._given_seed is None else self._given_seed, keeps)

    def end(self) -> None:
        if self._blocks == 0:
            self._end_workers()

    @property
    def keeps_state(self) -> bool:  # type: ignore[override]
        return self._keeps_optimizer or self._keeps_buffers

    @property
    def everyone_trains(self) -> bool:  # type: ignore[override]
        return self._keeps_optimizer

    @property
    def theta_buffer(self) -> npt.NDArray[np.float32] | None:  # type: ignore[override]
        if self._count == 0:
            return None
        theta: npt.NDArray[np.float32] = self._running().theta.numpy()
        return theta

    def theta0(self) -> npt.NDArray[np.float32]:
        theta: npt.NDArray[np.float32] = self._trainer.theta0.numpy().copy()
        return theta

    def samples(self, device: int) -> int:
        return len(self._functions.datasets[device])

    def train(
        self, theta: npt.NDArray[np.float32], round: int, device: int, *state: bytes
    ) -> tuple[npt.NDArray[np.float32], float]:
        updates, losses = self.train_cohort(theta, round, [device])
        return updates[0].copy(), losses[0]

    def train_cohort(
        self, theta: npt.NDArray[np.float32], round: int, devices: list[int], *states: list[bytes]
    ) -> tuple[npt.NDArray[np.float32], list[float]]:
        jobs = [Job(row, device, round, self._buffers_of(device)) for row, device in enumerate(devices)]
        start = torch.from_numpy(theta)
        try:
            if self._count == 0:
                updates = torch.empty(len(devices), self._trainer.dim)
                with seeded(0):
                    done = [self._trainer.train(job, start, updates[job.row]) for job in jobs]
            else:
                workers = self._running()
                if start.data_ptr() != workers.theta.data_ptr():
                    workers.theta.copy_(start)
                updates = workers.updates
                done = workers.train(self._shares(jobs))
        except Failure as failure:
            raise _named(failure) from failure.error.__cause__
        losses = [0.0] * len(devices)
        for one in done:
            self._keep(devices[one.row], one)
            losses[one.row] = one.loss
        rows: npt.NDArray[np.float32] = updates.numpy()
        return rows[: len(devices)], losses

    def evaluate(self, theta: npt.NDArray[np.float32]) -> dict[str, float]:
        with seeded(seed_of(self._seed, "evaluate")), torch.no_grad():
            model = self._trainer.evaluated(torch.from_numpy(theta), self._mean_buffers())
            answer = self._evaluate(model)
        if isinstance(answer, Mapping):
            return {name: as_number("evaluate", name, value) for name, value in answer.items()}
        if not (isinstance(answer, (tuple, list)) and len(answer) == 2):
            given = f"{len(answer)} items" if isinstance(answer, (tuple, list)) else type(answer).__name__
            raise TypeError(
                f"evaluate: must return (accuracy, loss) or a dictionary of metrics, but returned {given}"
            )
        accuracy, loss = answer
        return {
            "accuracy": as_number("evaluate", "accuracy", accuracy),
            "loss": as_number("evaluate", "loss", loss),
        }

    def save(self) -> bytes:
        state = {"buffers": dict(sorted(self._device_buffers.items())), "optimizers": self._optimizers()}
        stream = io.BytesIO()
        torch.save(state, stream)
        return stream.getvalue()

    def load(self, state: bytes) -> None:
        try:
            saved = torch.load(io.BytesIO(state), weights_only=False)
            buffers, optimizers = dict(saved["buffers"]), dict(saved["optimizers"])
        except Exception as error:
            raise ValueError(f"the checkpoint's state of the task cannot be read: {error}") from error
        self._device_buffers = buffers
        if self._count == 0:
            self._trainer.load(optimizers)
        else:
            self._restored, self._begun = optimizers, None

    # Buffers.

    @property
    def _keeps_buffers(self) -> bool:
        return self._buffers == "local" and bool(self._trainer.buffer_names)

    def _buffers_of(self, device: int) -> list[torch.Tensor] | None:
        if not self._keeps_buffers:
            return None
        return self._device_buffers.get(device, self._trainer.buffers0)

    def _keep(self, device: int, done: Done) -> None:
        if done.buffers is not None:
            self._device_buffers[device] = done.buffers

    def _mean_buffers(self) -> list[torch.Tensor] | None:
        """The mean of the devices' buffers, where they are real numbers; other buffers are a new model's."""
        trained = [self._device_buffers[device] for device in sorted(self._device_buffers)]
        if not trained:
            return None

        def mean(start: torch.Tensor, values: Iterable[torch.Tensor]) -> torch.Tensor:
            if not start.is_floating_point():
                return start
            middle: torch.Tensor = torch.stack([value.double() for value in values]).mean(0).to(start.dtype)
            return middle

        return [mean(start, values) for start, values in zip(self._trainer.buffers0, zip(*trained))]

    # Worker processes.

    def _running(self) -> Workers:
        """The workers, started for this run."""
        if self._workers is None or self._workers.ended:
            dim, self._begun = self._trainer.dim, None
            self._workers = Workers(self._functions, self._count, self._context, dim, self.cohort)
        if self._begun is None:
            try:
                self._workers.begin(self._seed, self._keeps_optimizer)
                if self._restored is not None:
                    shares = self._owned(range(self.devices))
                    restored = self._restored
                    self._workers.load([{m: restored[m] for m in own if m in restored} for own in shares])
                    self._restored = None
            except Failure as failure:
                raise _named(failure) from failure.error.__cause__
            self._begun = self._seed, self._keeps_optimizer
        return self._workers

    def _shares(self, jobs: list[Job]) -> list[list[Job]]:
        """The jobs of each worker. A device that keeps its optimizer always trains where that is."""
        if self._keeps_optimizer:
            by_device = {job.device: job for job in jobs}
            owned = self._owned(range(self.devices))
            return [[by_device[m] for m in own if m in by_device] for own in owned]
        by_device = {job.device: job for job in jobs}
        return [[by_device[m] for m in share] for share in self._owned(sorted(by_device))]

    def _owned(self, devices: Iterable[int]) -> list[list[int]]:
        """An even split of the devices by their samples: the largest first, each to the lightest worker."""
        if self._sizes is None:
            self._sizes = [self.samples(device) for device in range(self.devices)]
        sizes = self._sizes
        shares: list[list[int]] = [[] for _ in range(self._count)]
        loads = [0] * self._count
        for device in sorted(devices, key=lambda device: (-sizes[device], device)):
            worker = loads.index(min(loads))
            shares[worker].append(device)
            loads[worker] += sizes[device]
        return [sorted(share) for share in shares]

    def _optimizers(self) -> dict[int, Any]:
        if not self._keeps_optimizer:
            return {}
        if self._count == 0:
            return self._trainer.save()
        if self._restored is not None:
            return self._restored
        return self._running().save()

    def _end_workers(self) -> None:
        workers, self._workers, self._begun = self._workers, None, None
        if workers is not None:
            workers.end()

    def __enter__(self) -> Task:
        self._blocks += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._blocks -= 1
        self.end()


def _named(failure: Failure) -> BaseException:
    """The exception, with a note on its origin if its text has none."""
    error = failure.error
    if failure.where not in str(error) and hasattr(error, "add_note"):
        error.add_note(f"raised in {failure.where}")
    return error


def _keeps_statistics(module: torch.nn.Module) -> bool:
    batch_norm = isinstance(module, torch.nn.modules.batchnorm._NormBase)
    return batch_norm and bool(getattr(module, "track_running_stats", False))


def _start_methods() -> list[str]:
    return torch.multiprocessing.get_all_start_methods()


def _one_of(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name}: must be one of {', '.join(map(repr, known))}, but is {value!r}")
