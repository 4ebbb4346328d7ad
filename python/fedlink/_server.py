"""Rounds on other people's nodes: the server and a node's half."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _fedlink
from ._config import Config, read
from ._parts import Part, collect

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self


class Server(_fedlink.Server):
    """The server of a run on other people's nodes: policy, radio, decoding, audit and aggregation are those
    of ``simulate``; training and messages are yours.

    A round is ``begin`` (returns the devices that must train and the numbers to report), ``report`` (returns
    the scheduled devices and their bits), ``deliver`` (θ(t) becomes θ(t+1)), and ``evaluated`` in rounds in
    which the model is evaluated. ``Device`` is a node's half. ``settings`` are keys that take precedence over
    ``config``. ``layers`` are the shapes of the arrays that θ is made of, in their order, for schemes that
    use them (``low-rank``, which without them sends the same as ``stc``); the nodes must be given the same.

    >>> config = {"schedule.policy": "bn2", "data.devices": 2}
    >>> server = fedlink.Server(config, numpy.zeros(1000, numpy.float32))
    >>> nodes = [fedlink.Device(server.config) for _ in range(2)]
    >>> update = numpy.ones(1000, numpy.float32)  # both nodes have learned it
    >>> call = server.begin()
    >>> answers = [nodes[m].report(call.asks, update, 0.5, bits, call.t, m).answers
    ...            for m, bits in zip(call.candidates, call.alone_bits)]
    >>> grants = server.report(call.candidates, answers)
    >>> sent = [nodes[g.device].send(g.budget).upload(g.device) for g in grants]
    >>> server.deliver(sent, trained=2, loss=0.5)
    ['used']
    """

    def __new__(
        cls,
        config: Config,
        theta0: npt.ArrayLike,
        samples: Sequence[int] | None = None,
        *,
        layers: Iterable[Sequence[int]] = (),
        policy: Part = None,
        compressor: Part = None,
        fading: Part = None,
        parts: Mapping[str, Part] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Self:
        registered, chosen = collect(policy, compressor, fading, parts=parts)
        config_text = read(config, {**(settings or {}), **chosen})
        return super().__new__(cls, *config_text, theta0, samples, registered, matrices(layers))

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, every default written out."""
        config: dict[str, Any] = json.loads(self.config_json())
        return config


class Device(_fedlink.Device):
    """One device of a run on a node: error feedback, answers to the server, compression.

    A round is ``report`` (adds error feedback to the update and answers the server), ``send`` (compresses it
    within the bits that were granted) and ``settle`` (whether it arrived). A device that is not
    scheduled only reports. Its numbers are those of the same device in ``simulate``, with every rule of
    ``compress.feedback``. ``save`` and ``load`` carry its state from one process to another.

    ``config`` is the server's, seed included: compression that draws at random draws the numbers of
    ``simulate``. ``layers`` are the shapes of the arrays that an update is made of, as the server has them.

    >>> node = fedlink.Device({"compress.scheme": "top-k", "compress.feedback": "scheduled"})
    >>> node.report(["norm"], numpy.float32([3, 4]), 0.5, 1e3, t=0, device=7).answers.tolist()
    [5.0]
    >>> node.send(0.0).payload is None  # too few bits for any entry
    True
    >>> node.settle(True)
    >>> node.report(["norm"], numpy.float32([0, 0]), 0.5, 1e3, t=1, device=7).answers.tolist()
    [5.0]
    """

    def __new__(
        cls,
        config: Config,
        *,
        layers: Iterable[Sequence[int]] = (),
        compressor: Part = None,
        parts: Mapping[str, Part] | None = None,
    ) -> Self:
        registered, settings = collect(compressor=compressor, parts=parts)
        return super().__new__(cls, *read(config, settings), registered, matrices(layers))


class Encoder(_fedlink.Encoder):
    """The compression of a device without its state: the answers to the server for an update, and the message
    that fits into a number of bits. ``Device`` adds error feedback.

    ``config`` is the server's, seed included: compression draws the same random numbers as in ``simulate``.
    ``layers`` are the shapes of the arrays that an update is made of, as the server has them.
    """

    def __new__(
        cls,
        config: Config,
        *,
        layers: Iterable[Sequence[int]] = (),
        compressor: Part = None,
        parts: Mapping[str, Part] | None = None,
    ) -> Self:
        registered, settings = collect(compressor=compressor, parts=parts)
        return super().__new__(cls, *read(config, settings), registered, matrices(layers))


def checked(
    config: Config,
    *,
    policy: Part = None,
    compressor: Part = None,
    fading: Part = None,
    parts: Mapping[str, Part] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The configuration of a run on nodes, checked, every default written out."""
    registered, chosen = collect(policy, compressor, fading, parts=parts)
    config_text = read(config, {**(settings or {}), **chosen})
    resolved: dict[str, Any] = json.loads(_fedlink.check_nodes(*config_text, registered))
    return resolved


def matrices(shapes: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """Shapes of arrays as rows and columns: a vector is one column; of more than two dimensions the first has
    the rows."""

    def matrix(shape: Sequence[int]) -> tuple[int, int]:
        rows, *rest = [*map(int, shape), 1]
        return rows, math.prod(rest)

    return [matrix(shape) for shape in shapes]
