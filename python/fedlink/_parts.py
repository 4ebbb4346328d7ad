"""Custom parts: subclass, and give the class (or a function that makes an object) to ``simulate``, ``run`` or
``Server``.

A part is made anew for every run. Its name is the attribute ``name`` of the class, or otherwise the name of
the class in kebab-case; configurations, labels, records and reports use it. The keys of its own table, as in
``[schedule.proportional-fair]``, are the keyword arguments of its class.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import pickle
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Union

from ._fedlink import task_name
from ._identity import USED, digest, identify, module_name, parameters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._fedlink import Record, Reports, View

    Devices = Union[Sequence[int], npt.NDArray[np.integer[Any]]]
    Weights = Union[Sequence[float], npt.NDArray[np.floating[Any]]]
    Schedule = Union[
        tuple[Devices, Weights],
        tuple[Devices, Weights, Weights],
        Sequence["Pick"],
    ]
    What = Union[None, tuple[Devices, Union[float, npt.NDArray[np.float32]]], npt.NDArray[np.float32]]

#: A part as given: a class, a function that makes an object, or an object for one run.
Part = Any


@dataclass(frozen=True)
class Registered:
    """A part as the library takes it."""

    #: "policy", "compressor", "fading", "trace", "data", "partition" or "task".
    kind: str
    name: str
    #: Where it comes from, with the digest of its texts.
    origin: str
    #: The maker of the part from its own table, or its data.
    make: Any
    #: The keys of its own table, and whether each has a default that a configuration can hold; None: any.
    keys: list[str] | None = field(default_factory=list)
    #: Those defaults.
    defaults: dict[str, Any] = field(default_factory=dict)
    #: The texts that determine its behavior, by the names of files.
    texts: dict[str, str] = field(default_factory=dict)
    #: Whether it is made with the seed of the run, as the keyword ``seed``.
    by_seed: bool = False
    #: Whether all seeds get the same from it.
    ignores_seed: bool = False


@dataclass(frozen=True)
class Pick:
    """A scheduled device, its bit weight, and the weight of its update.

    Bits are granted in proportion to ``bit_weight``. With ``weight=None`` the update counts as
    ``learn.aggregate`` specifies; 1/(M·p) makes a selection with probability p unbiased.
    """

    device: int
    bit_weight: float
    weight: float | None = None


class Policy:
    """A scheduling policy. It is called twice per round: before training, when only the channel is known, and
    after the candidates have reported the numbers of ``asks``.

    >>> class LargestGain(fedlink.Policy):
    ...     def candidates(self, view):
    ...         return numpy.sort(numpy.argsort(-view.gains, kind="stable")[: view.k])
    ...     def select(self, view, reports):
    ...         return reports.devices, numpy.ones(len(reports))
    >>> fedlink.simulate({"run.rounds": 20}, policy=LargestGain)
    """

    def candidates(self, view: View) -> Devices:
        """The devices that must train before selection; by default all that may send."""
        return view.eligible

    def asks(self) -> Sequence[str]:
        """The numbers that every candidate reports: some of "norm" (‖Δ‖₂), "compressed-norm" (‖Δ̂‖₂ as if it
        had all symbols), "loss" (the mean mini-batch loss of its training) and "rms-loss" (the root of the
        mean squared loss of its samples; the loss where a task gives nothing else). By default none. Called
        once, before the first round."""
        return []

    def select(self, view: View, reports: Reports) -> Schedule:
        """Up to ``view.k`` of ``reports.devices`` with their bit weights (finite, at least 0):
        ``(devices, bit_weights)``, ``(devices, bit_weights, weights)`` with the weights of the updates, or
        a list of ``fedlink.Pick``.

        ``reports["norm"][i]`` is the norm that ``reports.devices[i]`` reported.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must select devices: define select(self, view, reports)"
        )

    def round_k(self, view: View) -> int:
        """The number of devices that share the power of this round, 1 to ``view.k``; by default as many as
        may be scheduled. The links of the round and ``view.k`` of the calls that follow are then those of a
        run with this K; ``view.capacity_at(device, k)`` has the capacities to decide by."""
        return view.k

    def receive(self, device: int, update: npt.NDArray[np.float32]) -> None:
        """Called after every round, before ``observe``, with each update that arrived and counts, as it was
        decoded: all its entries."""

    def observe(self, record: Record) -> None:
        """Called after every round with its record: ``record.transmissions`` has a row for each scheduled
        device, ``record.others`` one for each other device, with its link and its report."""

    def save(self) -> bytes:
        """All that the policy keeps from round to round; by default its attributes, pickled."""
        return _save(self)

    def load(self, state: bytes) -> None:
        """Restores the state that ``save`` returned."""
        _load(self, state)


class Compressor:
    """A compression scheme. It may be called from several threads at once, and must depend on its arguments
    alone.

    >>> class Signs(fedlink.Compressor):
    ...     "The first entries by their signs, one bit each, and 32 for the common magnitude."
    ...     def encode(self, update, budget, rng):
    ...         q = min(int(budget) - 32, update.size)
    ...         if q < 1:
    ...             return None, 0
    ...         kept = update[:q]
    ...         return (numpy.arange(q), numpy.abs(kept).mean() * numpy.sign(kept)), q + 32
    >>> fedlink.simulate({"run.rounds": 20}, compressor=Signs)
    """

    def encode(
        self, update: npt.NDArray[np.float32], budget: float, rng: np.random.Generator
    ) -> tuple[What, float | None]:
        """The transmitted part of ``update`` within ``budget`` bits, and the bits that it costs.

        The transmitted part is None (nothing fits), ``(indices, values)`` with ascending indices and a
        float32 array or one number for all, or a float32 array of all entries. The bits must not exceed the
        budget; if they are None, the library counts them: log2 C(d, q) for q indices and 33 for every value.
        ``rng`` belongs to this device and round.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must compress: define encode(self, update, budget, rng)"
        )


class Fading:
    """A fading law. A gain may depend on the arguments alone.

    >>> class Even(fedlink.Fading):
    ...     def gain(self, t, device):
    ...         return 1.0 if (t + device) % 2 == 0 else 0.1
    >>> fedlink.simulate({"run.rounds": 20}, fading=Even)

    Mean gains, a cell, powers and channel estimates work on it as on the library's laws; a downlink
    (``clock.downlink``) has the same gains.
    """

    #: Antennas of the server, whose gains are summed: with ``radio.csi_error`` the estimates spread less with
    #: more antennas.
    antennas: int = 1

    def gain(self, t: int, device: int, *rng: np.random.Generator) -> float:
        """The power gain of a device's link in round ``t`` (from 0): finite, at least 0. Define it as
        ``gain(self, t, device, rng)`` to draw it: ``rng`` belongs to the run's seed, the round and the
        device. Without it, all seeds have the same channel, unless the class has an argument ``seed``."""
        raise NotImplementedError(f"{type(self).__name__} must give gains: define gain(self, t, device)")


class Task:
    """A learning task: the model of the devices and the training of one device. ``fedlink.torch.Task`` is one
    for PyTorch.

    The result of ``train`` may depend on nothing but its arguments: an update that was not kept is computed
    again. Devices train one after the other, or ``cohort`` at a time if there is ``train_cohort``.
    """

    #: M, the number of devices; it takes precedence over ``data.devices``.
    devices: int

    #: Devices that ``train_cohort`` takes at a time.
    cohort: int = 16

    #: Whether ``train`` takes and returns the state of a device, as bytes; they are empty before its first
    #: training. A task that defines ``save`` and ``load`` keeps the states itself instead.
    keeps_state: bool = False

    #: Whether a device trains in every round, scheduled or not; None: where devices keep state.
    everyone_trains: bool | None = None

    #: The number of test samples and of classes, if there are any. ``fedlink.run`` records them, and decides
    #: no claim by accuracies that a model without learning reaches.
    test_samples: int | None = None
    classes: int | None = None

    #: An array of d float32 into which θ is written for ``train_cohort``, such as shared memory; None: a new
    #: array.
    theta_buffer: npt.NDArray[np.float32] | None = None

    def begin(self, config: Mapping[str, Any]) -> None:
        """Called before a run, with its configuration: ``config["run"]["seed"]``, …. A run starts without any
        state of devices."""

    def end(self) -> None:
        """Called when a run has ended, by an exception too."""

    def save(self) -> bytes:
        """The states of all devices, where the task keeps them itself; checkpoints have them."""
        return b""

    def load(self, state: bytes) -> None:
        """Restores the state that ``save`` returned."""

    def theta0(self) -> npt.NDArray[np.float32]:
        """θ(0). Its length is d."""
        raise NotImplementedError(f"{type(self).__name__} must have a first model: define theta0(self)")

    def samples(self, device: int) -> int:
        """The number of samples of a device, at least 1; its weight under ``learn.aggregate = "by-size"``."""
        return 1

    def train(
        self, theta: npt.NDArray[np.float32], round: int, device: int, *state: bytes
    ) -> tuple[Any, ...]:
        """Local training from ``theta``: Δ = θ_m − θ, and the training loss; with ``keeps_state`` it is
        called with the device's state as a fourth argument and returns its new one third. Rounds are counted
        from 0."""
        raise NotImplementedError(
            f"{type(self).__name__} must train: define train(self, theta, round, device)"
        )

    def train_cohort(
        self, theta: npt.NDArray[np.float32], round: int, devices: list[int], *states: list[bytes]
    ) -> tuple[Any, ...]:
        """Optional: several devices at once. Returns a float32 array with a row for each, and their losses;
        with ``keeps_state`` also their states."""
        raise NotImplementedError

    def evaluate(self, theta: npt.NDArray[np.float32]) -> tuple[float, float] | Mapping[str, float]:
        """Accuracy (a share) and loss of ``theta``, or a dictionary of both and any other metrics by name."""
        raise NotImplementedError(f"{type(self).__name__} must judge a model: define evaluate(self, theta)")


#: The kinds of parts, and the keys that choose them.
KINDS: dict[str, tuple[type, str]] = {
    "policy": (Policy, "schedule.policy"),
    "compressor": (Compressor, "compress.scheme"),
    "fading": (Fading, "radio.fading"),
}


def part_name(cls: type) -> str:
    """The name of a class as a part: its attribute ``name``, or its name in kebab-case."""
    name = getattr(cls, "name", None)
    if isinstance(name, str):
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__)
    return words.replace("_", "-").strip("-").lower()


def collect(
    policy: Part = None,
    compressor: Part = None,
    fading: Part = None,
    partition: Any = None,
    parts: Mapping[str, Part] | None = None,
    strict: bool = False,
) -> tuple[list[Registered], dict[str, Any]]:
    """The parts for the library, and the settings that choose those that were given by their kind.

    If ``strict``, as for a folder of results, it is an error if the texts that determine a part are unknown.
    """
    registered: list[Registered] = []
    settings: dict[str, Any] = {}
    for kind, part in (("policy", policy), ("compressor", compressor), ("fading", fading)):
        if part is None:
            continue
        key = KINDS[kind][1]
        if isinstance(part, str):
            settings[key] = part
            continue
        is_trace = kind == "fading" and _is_array(part)
        one = _trace(part) if is_trace else _registered(kind, part, kind, strict=strict)
        registered.append(one)
        settings[key] = one.name
    if partition is not None:
        registered.append(_partition(partition))
        settings["data.partition"] = "indices"
        settings["data.devices"] = len(partition)
        sizes = [len(samples) for samples in partition]
        settings["data.samples_per_device"] = max(1, round(sum(sizes) / max(1, len(sizes))))
    for name, part in (parts or {}).items():
        if not isinstance(name, str):
            raise TypeError(f"parts: keys must be text, but one is {name!r}")
        if _is_array(part):
            registered.append(_trace(part, name))
        elif isinstance(part, Identified):
            one = _registered(_kind_of(name, part.part), part.part, f"parts[{name!r}]", name)
            registered.append(replace(one, origin=part.origin, texts=part.texts))
        else:
            kind = _kind_of(name, part)
            registered.append(_registered(kind, part, f"parts[{name!r}]", name, strict))
    return registered, settings


@dataclass(frozen=True)
class Identified:
    """A part with its identity, for another process: a class that is sent by value has lost its source."""

    part: Part
    origin: str
    texts: dict[str, str]


def identified(parts: Mapping[str, Part] | None) -> dict[str, Part]:
    """The same parts, each with its identity; arrays have theirs in their numbers."""
    registered, _ = collect(parts=parts, strict=True)
    known = {one.name: one for one in registered}
    return {
        name: part if _is_array(part) else Identified(part, known[name].origin, known[name].texts)
        for name, part in (parts or {}).items()
    }


def _kind_of(name: str, part: Part) -> str:
    made = part
    if not isinstance(part, type) and not isinstance(part, (Policy, Compressor, Fading)) and callable(part):
        made = part(seed=0) if _takes_seed(part) else part()
    for kind, (base, _) in KINDS.items():
        if isinstance(made, base) or (isinstance(made, type) and issubclass(made, base)):
            return kind
    raise TypeError(
        f"parts[{name!r}]: must be a subclass of fedlink.Policy, fedlink.Compressor or fedlink.Fading, or "
        f"make an object of one, but is {_described(made)}"
    )


def _registered(
    kind: str, part: Part, argument: str, name: str | None = None, strict: bool = False
) -> Registered:
    base = KINDS[kind][0]
    wanted = f"a subclass of fedlink.{base.__name__}, or a function that makes an object of one"
    is_object = isinstance(part, base)
    if is_object:
        cls = type(part)
        make = _pure(part, argument) if kind == "fading" else _once(part, argument)
    elif isinstance(part, type):
        cls, make = part, _checked(part, base, argument)
        if not issubclass(cls, base):
            raise TypeError(f"{argument}: must be {wanted}, but is {_described(part)}")
    elif callable(part):
        make = _checked(part, base, argument)
        cls = type(make({"seed": 0} if _takes_seed(part) else {}))
    else:
        raise TypeError(f"{argument}: must be {wanted}, but is {_described(part)}")
    check_methods(cls, base)
    texts = identify(part, cls, argument, strict)
    own = [] if is_object else parameters(part)
    by_seed = not is_object and _takes_seed(part)
    if own is not None:
        own = [parameter for parameter in own if not (by_seed and parameter.name == "seed")]
    return Registered(
        kind,
        name or part_name(cls),
        f"{module_name(cls.__module__)}.{cls.__qualname__}, identity {digest(texts)}",
        make,
        None if own is None else [parameter.name for parameter in own],
        {parameter.name: parameter.default for parameter in own or [] if _is_value(parameter.default)},
        texts,
        by_seed,
        kind == "fading" and not by_seed and not draws(cls),
    )


#: The keys that name a task in place of the data, the split, the model and the optimizer.
TASK_KEYS = ("data.dataset", "data.partition", "learn.model", "learn.optimizer")


def check_task(task: Any, data: Any, partition: Any) -> None:
    """An error if a task is given together with data, or if a method of it is misspelled."""
    if task is None:
        return
    if data is not None or partition is not None:
        raise ValueError("task: a task has its own data; leave data= and partition= out")
    if isinstance(task, Task):
        check_methods(type(task), Task)


def task_sizes(task: Task) -> dict[str, Any]:
    """The number of devices of a task and the mean of their numbers of samples, as settings."""
    sizes = [task.samples(device) for device in range(task.devices)]
    return {
        "data.devices": task.devices,
        "data.samples_per_device": max(1, round(sum(sizes) / max(1, len(sizes)))),
    }


def register_task(task: Any) -> tuple[Registered, dict[str, Any]]:
    """A task, or what makes one for each run, for a folder of results, and the settings that choose it."""
    is_object = isinstance(task, Task)
    wanted = "a subclass of fedlink.Task, a function that makes an object of one, or such an object"
    is_other = isinstance(task, type) and not issubclass(task, Task)
    if is_other or not (is_object or callable(task)):
        raise TypeError(f"task: must be {wanted}, but is {_described(task)}")
    make = (lambda own: task) if is_object else _checked(task, Task, "task")
    by_seed = not is_object and _takes_seed(task)
    one = make({"seed": 0} if by_seed else {})
    cls = type(one)
    check_methods(cls, Task)
    texts = identify(task, cls, "task", strict=True)
    name = task_name(part_name(cls))
    origin = f"task {module_name(cls.__module__)}.{cls.__qualname__}, identity {digest(texts)}"
    settings = {**task_sizes(one), **dict.fromkeys(TASK_KEYS, name)}
    if not is_object:
        one.end()
    # An object has what an earlier run left in it: it serves one run.
    return Registered("task", name, origin, make, [], {}, texts, by_seed, ignores_seed=is_object), settings


def _takes_seed(part: Part) -> bool:
    """Whether what makes a part needs the seed of the run: an argument ``seed`` without a default."""
    return any(p.name == "seed" and p.default is p.empty for p in parameters(part) or [])


def draws(fading: Any) -> bool:
    """Whether the gains of a fading law, a class or an object, are drawn: ``gain(t, device, rng)``."""
    law: Any = fading if isinstance(fading, type) else type(fading)
    gain = law.gain
    found = list(inspect.signature(gain).parameters.values())
    return len([p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]) > 3


def _is_value(value: Any) -> bool:
    """Whether a configuration can hold a value."""
    if type(value) is list:
        return len({type(item) for item in value}) <= 1 and all(map(_is_value, value))
    if type(value) is int:
        return bool(-(2**63) <= value < 2**63)
    return type(value) in (bool, float, str)


def check_methods(cls: type, base: type) -> None:
    """An error if a method has nearly the name of one that the library calls: it would never be called."""
    known = [name for name in vars(base) if not name.startswith("_")]
    for owner in cls.__mro__[: cls.__mro__.index(base)]:
        for name, value in vars(owner).items():
            if name.startswith("_") or name in known or not callable(value):
                continue
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            if near:
                raise TypeError(
                    f"{cls.__name__}.{name}: fedlink calls no method of this name; did you mean {near[0]}? "
                    f"If it is a method of your own, call it _{name}"
                )


def _described(part: Part) -> str:
    return f"the class {part.__name__}" if isinstance(part, type) else f"of type {type(part).__name__}"


def _checked(make: Callable[..., Any], base: type, argument: str) -> Callable[[dict[str, Any]], Any]:
    """Makes a part, and checks that it is one."""

    def made(own: dict[str, Any]) -> Any:
        part = make(**own)
        if not isinstance(part, base):
            raise TypeError(
                f"{argument}: must make an object of fedlink.{base.__name__}, but made {_described(part)}"
            )
        return part

    return made


def _pure(part: Any, argument: str) -> Callable[[dict[str, Any]], Any]:
    """A fading law has no state: one object serves any number of runs, and both directions of a link."""

    def made(own: dict[str, Any]) -> Any:
        if own:
            raise ValueError(f"{argument}: an object takes no keys ({', '.join(own)}); give the class")
        return part

    return made


def _once(part: Any, argument: str) -> Callable[[dict[str, Any]], Any]:
    """An object serves one run: its state must not reach the next."""
    if getattr(part, USED, False):
        raise ValueError(_used(part, argument))
    given = False

    def made(own: dict[str, Any]) -> Any:
        nonlocal given
        if given:
            raise ValueError(_used(part, argument))
        if own:
            raise ValueError(f"{argument}: an object takes no keys ({', '.join(own)}); give the class")
        given = True
        setattr(part, USED, True)
        return part

    return made


def _used(part: Any, argument: str) -> str:
    cls = type(part).__name__
    return (
        f"{argument}: this {cls} object has served a run and may have kept something of it; give the "
        f"class {cls}, or a function that makes a new object (lambda: {cls}(…)), and every run gets its own"
    )


def _is_array(part: Part) -> bool:
    import numpy

    return isinstance(part, (numpy.ndarray, list))


def _trace(part: Any, name: str = "array") -> Registered:
    import numpy

    gains = numpy.ascontiguousarray(part, dtype=numpy.float64)
    if gains.ndim not in (2, 3):
        shape = "M × T, or M × T × seeds"
        raise ValueError(f"fading: an array of gains must be {shape}, but has {gains.ndim} dimensions")
    sha256 = hashlib.sha256(gains.astype("<f8", copy=False).tobytes()).hexdigest()[:12]
    origin = f"an array of {' × '.join(map(str, gains.shape))} gains, sha256 {sha256}"
    return Registered("trace", name, origin, gains, ignores_seed=gains.ndim == 2)


def _partition(partition: Iterable[Any]) -> Registered:
    import numpy

    lists = [numpy.asarray(samples) for samples in partition]
    first: dict[bytes, int] = {}
    for device, samples in enumerate(lists):
        other = first.setdefault(numpy.sort(samples).tobytes(), device)
        if other != device and len(samples) > 0:
            warnings.warn(
                f"partition: devices {other} and {device} have the same samples", RuntimeWarning, stacklevel=4
            )
            break
    sha256 = hashlib.sha256()
    for samples in lists:
        sha256.update(f"{samples.tolist()}".encode())
    origin = f"lists of {len(lists)} devices, sha256 {sha256.hexdigest()[:12]}"
    return Registered("partition", "indices", origin, lists)


def _save(part: Any) -> bytes:
    state = {name: value for name, value in vars(part).items() if name != USED}
    if not state:
        return b""
    try:
        return pickle.dumps(state, protocol=4)
    except Exception as error:
        cls = type(part).__name__
        raise TypeError(
            f"{cls} keeps a value that cannot be pickled ({error}); define save(self) and load(self, state)"
        ) from error


def _load(part: Any, state: bytes) -> None:
    kept = pickle.loads(state) if state else {}
    for name in [name for name in vars(part) if name != USED]:
        delattr(part, name)
    vars(part).update(kept)
