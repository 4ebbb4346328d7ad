"""Local training of one device after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ._rng import seed_all, seed_of


@dataclass
class Functions:
    """The parts of a task, in any process."""

    model_factory: Callable[[], torch.nn.Module]
    datasets: Sequence[Any]
    local_training: Callable[..., Any]
    optimizer: Callable[..., torch.optim.Optimizer] | None


@dataclass
class Job:
    """One device's training in one round, counted from 0."""

    row: int
    device: int
    round: int
    #: Buffers that the model starts from; none: those of a new model.
    buffers: list[torch.Tensor] | None


@dataclass
class Done:
    """The results of a training beside its update."""

    row: int
    loss: float
    buffers: list[torch.Tensor] | None


class Failure(Exception):
    """An exception in a function that was given, and where it was raised."""

    def __init__(self, where: str, error: BaseException) -> None:
        super().__init__(where, error)
        self.where, self.error = where, error


class Trainer:
    """A model with its parameters in one vector, which serves all devices in turn.

    Nothing of one training reaches another, except by intention: parameters are those of θ, gradients and
    buffers start anew, random generators are seeded by (seed, round, device).
    """

    def __init__(self, functions: Functions, seed: int, keeps_optimizer: bool) -> None:
        self._functions, self._seed = functions, seed
        self._optimizers: dict[int, torch.optim.Optimizer] | None = {} if keeps_optimizer else None
        seed_all(seed_of(seed, "init"))
        self.model = functions.model_factory()
        check_model(self.model)
        self._parameters = list(self.model.parameters())
        self._trainable = [parameter.requires_grad for parameter in self._parameters]
        with torch.no_grad():
            vector = torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters])
        #: θ(0).
        self.theta0 = vector.cpu().clone()
        self._vector = vector
        parts = vector.split([parameter.numel() for parameter in self._parameters])
        self._views = [part.view_as(own) for part, own in zip(parts, self._parameters)]
        kept = self.model.state_dict()
        #: Names of the buffers that belong to the state of the model, such as running means.
        self.buffer_names = [name for name, _ in self.model.named_buffers() if name in kept]
        self.buffers0 = self.buffers()
        self._load(self.theta0, None)

    @property
    def dim(self) -> int:
        """d."""
        return int(self._vector.numel())

    def buffers(self) -> list[torch.Tensor]:
        """The model's buffers now."""
        own = dict(self.model.named_buffers())
        return [own[name].detach().clone() for name in self.buffer_names]

    def _load(self, theta: torch.Tensor, buffers: list[torch.Tensor] | None) -> None:
        """The model with parameters ``theta``, no gradients, and these buffers or those of a new model."""
        with torch.no_grad():
            self._vector.copy_(theta)
            for parameter, view, trainable in zip(self._parameters, self._views, self._trainable):
                # `model.to(…)` in a training function gives parameters memory of their own.
                if parameter.data_ptr() != view.data_ptr() or parameter.dtype != view.dtype:
                    parameter.data = view
                parameter.grad = None
                parameter.requires_grad_(trainable)
            own = dict(self.model.named_buffers())
            for name, value in zip(self.buffer_names, self.buffers0 if buffers is None else buffers):
                own[name].copy_(value)

    def train(self, job: Job, theta: torch.Tensor, update: torch.Tensor) -> Done:
        """Trains one device from ``theta`` and writes Δ = θ_m − θ to ``update``."""
        functions, device = self._functions, job.device
        where = f"local_training of device {device} in round {job.round + 1}"
        seed_all(seed_of(self._seed, job.round, device))
        self._load(theta, job.buffers)
        self.model.train()
        arguments = [self.model, functions.datasets[device]]
        if functions.optimizer is not None:
            arguments.append(self._optimizer(device))
        try:
            answer = functions.local_training(*arguments)
            loss = as_number(where, "the mean loss", answer)
        except Exception as error:
            raise Failure(where, error) from error
        with torch.no_grad():
            for parameter, view in zip(self._parameters, self._views):
                if parameter.data_ptr() != view.data_ptr():
                    view.copy_(parameter)
            if self._vector.device.type == "cpu":
                torch.sub(self._vector, theta, out=update)
            else:
                update.copy_(self._vector).sub_(theta)
        return Done(job.row, loss, self.buffers() if job.buffers is not None else None)

    def evaluated(self, theta: torch.Tensor, buffers: list[torch.Tensor] | None) -> torch.nn.Module:
        """The model with these parameters and buffers, ready to be evaluated."""
        self._load(theta, buffers)
        return self.model.eval()

    def _optimizer(self, device: int) -> torch.optim.Optimizer:
        kept = self._optimizers
        if kept is not None and device in kept:
            return kept[device]
        optimizer = self._functions.optimizer(self.model.parameters())  # type: ignore[misc]
        if not isinstance(optimizer, torch.optim.Optimizer):
            made = type(optimizer).__name__
            raise Failure(
                "optimizer",
                TypeError(f"optimizer: must make a torch.optim.Optimizer, but made an object of type {made}"),
            )
        if kept is not None:
            kept[device] = optimizer
        return optimizer

    def save(self) -> dict[int, Any]:
        """The state of every device's optimizer that is kept."""
        return {device: optimizer.state_dict() for device, optimizer in (self._optimizers or {}).items()}

    def load(self, states: dict[int, Any]) -> None:
        """Restores the states that ``save`` returned."""
        if self._optimizers is not None:
            self._optimizers.clear()
            for device, state in states.items():
                self._optimizer(device).load_state_dict(state)


def check_model(model: Any) -> None:
    """An exception unless ``model`` is one that can be trained."""
    if not isinstance(model, torch.nn.Module):
        made = type(model).__name__
        raise TypeError(f"model_factory: must make a torch.nn.Module, but made an object of type {made}")
    parameters = list(model.named_parameters())
    if not parameters:
        raise ValueError("model_factory: the model has no parameters to train")
    for name, parameter in parameters:
        if parameter.dtype != torch.float32:
            raise TypeError(f"model_factory: parameter {name} must be float32, but is {parameter.dtype}")
        if parameter.device != parameters[0][1].device:
            raise ValueError(
                f"model_factory: parameters must be on one device, but {parameters[0][0]} is on "
                f"{parameters[0][1].device} and {name} on {parameter.device}"
            )


def as_number(function: str, what: str, value: Any) -> float:
    """``value`` as a number, or an exception that names the function that returned it."""
    try:
        return float(value.detach() if isinstance(value, torch.Tensor) else value)
    except (TypeError, ValueError, RuntimeError):
        given = type(value).__name__
        raise TypeError(f"{function}: {what} must be a number, but a {given} was returned") from None
