"""The link budget of a configuration, before anything is trained."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _fedlink
from ._parts import Part, collect
from ._run import Experiment, _path, _read

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The scalar numbers of a link budget.
NUMBERS = (
    "rounds",
    "policy_rounds",
    "dim",
    "symbols",
    "average_power",
    "noise",
    "smallest_bits",
    "bandwidth_hz",
    "uplink_s",
)


@dataclass(frozen=True, repr=False)
class LinkBudget:
    """The radio of a configuration in numbers: by device, and by policy."""

    #: The configuration, every default written out.
    config: dict[str, Any]
    #: The values that were taken of the keys that the experiment sweeps.
    keys: dict[str, str]
    #: Rounds that the means of links are taken over, and those that every policy schedules.
    rounds: int
    policy_rounds: int
    #: d, entries of an update.
    dim: int
    #: n, symbols in a round; those of a second where payloads are of fixed size.
    symbols: int
    #: P̄, and σ² with the interference: watts if there is a bandwidth.
    average_power: float
    noise: float
    #: Bits of the smallest update that can be sent; None if no budget holds one.
    smallest_bits: float | None
    #: W in hertz; None: no units.
    bandwidth_hz: float | None
    #: Seconds of a round's uplink; None without units, or where payloads are of fixed size.
    uplink_s: float | None
    #: One row for each device, means over rounds: in a cell its position in the first of them,
    #: ``path_loss_db`` and ``shadowing_db``; the transmit ``power``; ``snr_db`` of its mean SNR, by the true
    #: channel; ``capacity`` in bits per symbol and ``rate_bps`` if it has the whole band; ``bits_alone`` and
    #: ``bits_shared``, bits of all symbols and of a K-th of them; ``silent`` and ``lost``, shares of rounds
    #: in which the latter hold no update, or are lost on the way.
    devices: _fedlink.Table
    #: One row for each policy, means over rounds: devices ``trained``, devices ``heard`` at least once,
    #: ``bits`` of all that are scheduled, the shares of those that are ``silent``, ``lost`` or ``late``, and
    #: with units seconds by phase and joules by kind. Where devices are in groups, ``uploads_1`` and
    #: ``airtime_1`` are the shares of the first group, up to the fourth. ``refused`` is the reason why a
    #: policy cannot be run.
    policies: _fedlink.Table
    #: One row for each policy and each number that differs from seed to seed: ``mean``, ``low`` and ``high``
    #: over the seeds, a 95 % interval; no rows for one seed.
    spread: _fedlink.Table
    #: The number of times that each policy scheduled each device in ``policy_rounds``, by its name.
    scheduled: dict[str, npt.NDArray[np.int64]]

    def __repr__(self) -> str:
        words = [f"{self.symbols} symbols per round"]
        if self.bandwidth_hz is None:
            words += [f"P̄ = {self.average_power:g}", f"σ² = {self.noise:g}"]
        else:
            words.insert(0, f"{self.bandwidth_hz / 1e6:g} MHz")
            if self.uplink_s is not None:
                words.append(f"{1e3 * self.uplink_s:g} ms")
            words += [f"P̄ = {_dbm(self.average_power):.1f} dBm", f"σ² = {_dbm(self.noise):.1f} dBm"]
        words.append(f"means over {self.rounds} rounds")
        lines = [f"<fedlink.LinkBudget: {', '.join(words)}>"]
        if self.keys:
            lines.append("values of swept keys: " + ", ".join(f"{k} = {v}" for k, v in self.keys.items()))
        return "\n".join([*lines, repr(self.devices), repr(self.policies)])

    def _repr_html_(self) -> str:
        return self.devices._repr_html_() + self.policies._repr_html_()


def link_budget(
    experiment: Experiment,
    *,
    rounds: int | None = None,
    policies: Sequence[str] | None = None,
    seeds: int | None = None,
    fading: Part = None,
    parts: Mapping[str, Part] | None = None,
    settings: Mapping[str, Any] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> LinkBudget:
    """The link budget, as ``fedlink link-budget`` shows it: distance, path loss, SNR, rate and bits of every
    device, and the seconds and joules per round for each policy. Nothing is trained.

    ``experiment`` is a preset, the path of a file, TOML text, or a dictionary of keys; where it sweeps, the
    first value of every key is taken. ``policies`` are compared; without them those of the paper and the
    configured one. Means are over the channels of the first ``rounds`` rounds; the default number depends on
    the size of the system. With ``seeds`` the costs are computed for this number of seeds from ``run.seed``
    on, and ``spread`` has their means with 95 % intervals.

    For policies that select by reports, norms are drawn at random, with the same distribution for all
    devices: the cost of a policy follows from the radio and from the devices that must train.

    >>> budget = fedlink.link_budget({"radio.snr_db": [20, 0], "data.devices": 4})
    >>> budget.devices["snr_db"].round().tolist()
    [20.0, 20.0, 0.0, 0.0]
    """
    registered, chosen = collect(fading=fading, parts=parts)
    name, text, given = _read(experiment)
    found = _fedlink.link_budget(
        name,
        text,
        {**given, **(settings or {}), **chosen},
        registered,
        rounds,
        _path(data_dir),
        _names(policies),
        seeds,
    )
    for warning in found.warnings:
        warnings.warn(warning, RuntimeWarning, stacklevel=2)
    numbers = json.loads(found.numbers)
    return LinkBudget(
        config=json.loads(found.config),
        keys=dict(found.keys),
        devices=found.devices,
        policies=found.policies,
        spread=found.spread,
        scheduled=dict(found.scheduled),
        **{name: numbers[name] for name in NUMBERS},
    )


def _names(policies: Sequence[str] | None) -> list[str]:
    if isinstance(policies, str):
        raise TypeError(f"policies: must be a list of names, such as [{policies!r}]")
    return list(policies or ())


def _dbm(watts: float) -> float:
    return 10 * math.log10(watts) + 30 if watts > 0 else -math.inf
