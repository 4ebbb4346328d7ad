"""PyTorch models as fedlink tasks: you train, fedlink does radio, scheduling, compression and aggregation."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import torch
    from torch.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
except ImportError as error:
    raise ImportError("fedlink.torch needs PyTorch: pip install 'fedlink[torch]'") from error

from ._parts import Task as BaseTask

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Task"]


class Task(BaseTask):
    """A ``torch.nn.Module`` trained on one data set for each device.

    ``model_factory()`` makes a model. ``datasets[m]`` is the data of device m, with a length.
    ``local_training(model, dataset)`` trains the model in place and returns its mean loss.
    ``evaluate(model)`` returns accuracy (a share) and loss, or a dictionary of both and any other metrics by
    name.

    θ is the vector of the model's parameters, which must be float32. Buffers (such as running means) are no
    part of it: every training starts from those of a new model. PyTorch's random generator is seeded for each
    training from ``seed``, the round and the device, so that a run can be repeated; generators of your own
    you must seed likewise.

    >>> task = fedlink.torch.Task(lambda: torch.nn.Linear(784, 10), datasets, local_training, evaluate)
    >>> fedlink.simulate({"schedule.policy": "bn2", "schedule.k": 5, "run.rounds": 20}, task=task)
    """

    #: How the task is called in records.
    name = "torch"

    def __init__(
        self,
        model_factory: Callable[[], torch.nn.Module],
        datasets: Sequence[Any],
        local_training: Callable[[torch.nn.Module, Any], Any],
        evaluate: Callable[[torch.nn.Module], tuple[Any, Any] | Mapping[str, Any]],
        *,
        seed: int = 0,
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
        ):
            if not callable(function):
                raise TypeError(f"{name}: must be a function, but is of type {type(function).__name__}")
        self.devices = len(datasets)
        self._datasets, self._local_training, self._evaluate = datasets, local_training, evaluate
        self._seed = seed
        with self._seeded("init"):
            self._model = model_factory()
        if not isinstance(self._model, torch.nn.Module):
            made = type(self._model).__name__
            raise TypeError(f"model_factory: must make a torch.nn.Module, but made an object of type {made}")
        for name, parameter in self._model.named_parameters():
            if parameter.dtype != torch.float32:
                raise TypeError(f"model_factory: parameter {name} must be float32, but is {parameter.dtype}")
        self._start = copy.deepcopy(self._model.state_dict())

    def _seeded(self, *key: object) -> _Seeded:
        text = "/".join(str(part) for part in (self._seed, *key))
        return _Seeded(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))

    def _load(self, theta: npt.NDArray[np.float32]) -> torch.nn.Module:
        self._model.load_state_dict(self._start)
        device = next(self._model.parameters()).device
        # A copy: the parameters become views of it, and training writes to them.
        vector_to_parameters(torch.tensor(theta, device=device), self._model.parameters())
        return self._model

    def _vector(self) -> npt.NDArray[np.float32]:
        vector: npt.NDArray[np.float32] = (
            parameters_to_vector(self._model.parameters()).detach().cpu().numpy()
        )
        return vector

    def theta0(self) -> npt.NDArray[np.float32]:
        self._model.load_state_dict(self._start)
        return self._vector()

    def samples(self, device: int) -> int:
        return len(self._datasets[device])

    def train(
        self, theta: npt.NDArray[np.float32], round: int, device: int, *state: bytes
    ) -> tuple[npt.NDArray[np.float32], float]:
        with self._seeded(round, device):
            model = self._load(theta)
            model.train()
            loss = _number(
                "local_training", "the mean loss", self._local_training(model, self._datasets[device])
            )
            return self._vector() - theta, loss

    def evaluate(self, theta: npt.NDArray[np.float32]) -> dict[str, float]:
        model = self._load(theta)
        model.eval()
        with self._seeded("evaluate"), torch.no_grad():
            answer = self._evaluate(model)
        if isinstance(answer, Mapping):
            return {name: _number("evaluate", name, value) for name, value in answer.items()}
        if not (isinstance(answer, (tuple, list)) and len(answer) == 2):
            given = f"{len(answer)} items" if isinstance(answer, (tuple, list)) else type(answer).__name__
            raise TypeError(
                f"evaluate: must return (accuracy, loss) or a dictionary of metrics, but returned {given}"
            )
        accuracy, loss = answer
        return {
            "accuracy": _number("evaluate", "accuracy", accuracy),
            "loss": _number("evaluate", "loss", loss),
        }


def _number(function: str, what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        given = type(value).__name__
        raise TypeError(f"{function}: {what} must be a number, but a {given} was returned") from None


class _Seeded:
    """PyTorch's random generator seeded, and put back as it was."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._fork = torch.random.fork_rng()
        self._fork.__enter__()
        torch.manual_seed(self._seed)

    def __exit__(self, *error: Any) -> None:
        self._fork.__exit__(*error)
