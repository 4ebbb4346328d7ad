"""Worker processes that train devices side by side, one thread each.

θ and the updates are in shared memory: the server's θ is written there once per round, every worker starts
its model from it and writes the update of a device to the device's row. Messages carry only the devices to
train, losses and buffers.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.multiprocessing

from ._sharing import Packed, shared, to_bytes
from ._trainer import Done, Failure, Functions, Job, Trainer

#: Seconds that a worker is given to end by itself.
PATIENCE = 5


@dataclass
class _Setup:
    """The arguments of a worker."""

    functions: Functions | _Pickled
    settings: dict[str, Any]
    theta: torch.Tensor
    updates: torch.Tensor


@dataclass
class _Pickled:
    """``Functions`` for a process that starts empty: functions by their names, data in shared memory."""

    functions: bytes
    datasets: Packed

    @classmethod
    def of(cls, functions: Functions) -> _Pickled:
        named = {name: getattr(functions, name) for name in ("model_factory", "local_training", "optimizer")}
        for name, function in named.items():
            try:
                pickle.dumps(function)
            except Exception as error:
                raise _cannot_be_sent(name, error) from error
        try:
            datasets = Packed(functions.datasets)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise _cannot_be_sent("datasets", error) from error
        return cls(pickle.dumps(named), datasets)

    def functions_here(self) -> Functions:
        try:
            named = pickle.loads(self.functions)
        except Exception as error:
            raise _cannot_be_sent("model_factory, local_training or optimizer", error) from error
        return Functions(datasets=self.datasets.unpack(), **named)


def _cannot_be_sent(name: str, error: BaseException) -> TypeError:
    return TypeError(
        f"{name}: cannot be sent to a worker process ({error}); define it with def at the top level of a "
        f'module, or use multiprocessing_context="fork", or workers=0'
    )


class _Remote(Exception):
    """The traceback of an exception in a worker, as its cause."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


class Workers:
    """Some processes, each with a ``Trainer`` of its own."""

    def __init__(self, functions: Functions, count: int, context: str, dim: int, rows: int) -> None:
        start: Any = torch.multiprocessing.get_context(context)
        self._theta = shared(dim, torch.float32)
        self._updates: torch.Tensor = shared(rows * dim, torch.float32).view(rows, dim)
        given: Functions | _Pickled = functions if context == "fork" else _Pickled.of(functions)
        setup = _Setup(given, _settings(), self._theta, self._updates)
        self._processes: list[Any] = []
        self._connections: list[Connection] = []
        self._end = weakref.finalize(self, _end, self._processes, self._connections)
        for index in range(count):
            ours, theirs = multiprocessing.Pipe()
            self._connections.append(ours)
            # A forked worker has our ends of all pipes; while it holds them, the others see no end.
            inherited = list(self._connections) if context == "fork" else []
            process = start.Process(
                target=_work, args=(theirs, setup, inherited), name=f"fedlink-worker-{index}", daemon=True
            )
            self._processes.append(process)
            process.start()
            theirs.close()

    @property
    def ended(self) -> bool:
        """Whether there are none any more."""
        return not self._end.alive

    @property
    def theta(self) -> torch.Tensor:
        """The array from which θ is read."""
        return self._theta

    @property
    def updates(self) -> torch.Tensor:
        """The array to which updates are written, one row each."""
        return self._updates

    @property
    def process_ids(self) -> list[int]:
        """Of the workers."""
        return [process.pid for process in self._processes]

    def begin(self, seed: int, keeps_optimizer: bool) -> None:
        """A new run."""
        self._ask([("begin", (seed, keeps_optimizer))] * len(self._processes), "the start")

    def train(self, shares: Sequence[list[Job]]) -> list[Done]:
        """Each worker trains its share; their results are in no order. If devices fail, the error of the
        first row is raised, whichever was first in time."""
        devices = ", ".join(str(job.device) for share in shares for job in share[:1])
        first = next((job for share in shares for job in share), None)
        what = f"training (devices {devices}, … in round {first.round + 1})" if first else "training"
        answers = self._ask([("train", share) for share in shares], what)
        done = [one for answer in answers for one in answer]
        failed = [one for one in done if isinstance(one, _Failed)]
        if failed:
            raise min(failed, key=lambda one: one.row).failure()
        return done

    def save(self) -> dict[int, Any]:
        """The state of every device's optimizer that is kept."""
        answers = self._ask([("save", None)] * len(self._processes), "saving")
        states = {device: state for answer in answers for device, state in answer.items()}
        return dict(sorted(states.items()))

    def load(self, states: Sequence[dict[int, Any]]) -> None:
        """Restores the states that ``save`` returned, each worker its devices."""
        self._ask([("load", one) for one in states], "restoring")

    def _ask(self, messages: Sequence[tuple[str, Any]], what: str) -> list[Any]:
        """Sends each worker its message; returns their answers. Any exception here ends all workers, since
        an answer may be outstanding."""
        try:
            for index, message in enumerate(messages):
                try:
                    self._connections[index].send_bytes(to_bytes(message))
                except (BrokenPipeError, ConnectionResetError):
                    raise self._died(index, what) from None
            answers: dict[int, Any] = {}
            while len(answers) < len(messages):
                waiting = {self._connections[i]: i for i in range(len(messages)) if i not in answers}
                for ready in wait(list(waiting)):
                    index = waiting[ready]  # type: ignore[index]
                    try:
                        answers[index] = pickle.loads(self._connections[index].recv_bytes())
                    except (EOFError, ConnectionResetError):
                        raise self._died(index, what) from None
                    if isinstance(answers[index], _Failed):
                        raise answers[index].failure()
            return [answers[index] for index in range(len(messages))]
        except BaseException:
            self.end(now=True)
            raise

    def _died(self, index: int, what: str) -> RuntimeError:
        process = self._processes[index]
        process.join(PATIENCE)
        code = process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            hint = "; perhaps there was not enough memory" if -code == signal.SIGKILL else ""
        else:
            how, hint = f"ended with exit code {code}", "; its own message is above"
            if what == "the start":
                hint += '. A script that uses workers needs `if __name__ == "__main__":` around what it runs'
        return RuntimeError(f"worker process {index} of fedlink.torch.Task {how} during {what}{hint}")

    def end(self, now: bool = False) -> None:
        """Ends the workers; ``now``: without waiting for their work."""
        if now:
            for process in self._processes:
                if process.is_alive():
                    process.terminate()
        self._end()


def _end(processes: list[Any], connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()
    for process in processes:
        if process.pid is None:
            continue
        process.join(PATIENCE)
        if process.is_alive():
            process.terminate()
            process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


def _settings() -> dict[str, Any]:
    """The settings of PyTorch that change results."""
    return {
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "precision": torch.get_float32_matmul_precision(),
    }


# In a worker.


class _Failed:
    """An exception on its way to the server's process."""

    def __init__(self, row: int, where: str, error: BaseException) -> None:
        self.row, self.where = row, where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.summary = f"{type(error).__name__}: {error}"
        self.error: bytes | None
        try:
            self.error = pickle.dumps(error)
            pickle.loads(self.error)
        except Exception:
            self.error = None

    def failure(self) -> Failure:
        """The exception as it was, or if it cannot be sent, one with its text."""
        error: BaseException = RuntimeError(f"{self.where}: {self.summary}")
        if self.error is not None:
            try:
                error = pickle.loads(self.error)
            except Exception:
                pass
        error.__cause__ = _Remote(self.text)
        return Failure(self.where, error)


def _work(connection: Connection, setup: _Setup, inherited: list[Connection]) -> None:
    for other in inherited:
        other.close()
    # Ctrl-C reaches all processes of a terminal; the server's process decides the end of the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_follow, daemon=True).start()
    torch.set_num_threads(1)
    torch.set_default_dtype(setup.settings["dtype"])
    torch.use_deterministic_algorithms(
        setup.settings["deterministic"], warn_only=setup.settings["warn_only"]
    )
    torch.set_float32_matmul_precision(setup.settings["precision"])
    functions: Functions | None = None
    trainer: Any = None
    while True:
        try:
            message, content = pickle.loads(connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            return
        try:
            answer: Any = None
            if message == "begin":
                if functions is None:
                    given = setup.functions
                    functions = given if isinstance(given, Functions) else given.functions_here()
                trainer = Trainer(functions, *content)
            elif message == "train":
                answer = _train(trainer, content, setup)
            elif message == "save":
                answer = trainer.save()
            elif message == "load":
                trainer.load(content)
        except Failure as failure:
            answer = _Failed(-1, failure.where, failure.error)
        except Exception as error:
            answer = _Failed(-1, f"a worker process ({message})", error)
        try:
            connection.send_bytes(to_bytes(answer))
        except (BrokenPipeError, ConnectionResetError):
            return


def _train(trainer: Trainer, jobs: list[Job], setup: _Setup) -> list[Any]:
    done: list[Any] = []
    for job in jobs:
        try:
            done.append(trainer.train(job, setup.theta, setup.updates[job.row]))
        except Failure as failure:
            return [*done, _Failed(job.row, failure.where, failure.error)]
    return done


def _follow() -> None:
    """Ends this process with the one that started it, in whatever way that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
