"""Rounds on other people's nodes: the server's half and a node's half."""

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


class Session(_fedlink.Session):
    """The server of a run on other people's nodes: policy, radio, decoding, audit and aggregation are those
    of ``simulate``; training and messages are yours.

    A round is ``begin`` (who must train and report what), ``report`` (who may send how many bits),
    ``deliver`` (θ(t) becomes θ(t+1)), and ``evaluated`` in rounds in which the model is evaluated.
    ``Encoder`` is a node's half. ``settings`` are keys that go before ``config``. ``layers`` are the shapes
    of the arrays that θ is made of, in their order, for schemes that use them (``low-rank``, which without
    them sends what ``stc`` does); the nodes must be given the same.

    >>> config = {"schedule.policy": "bn2", "data.devices": 2}
    >>> session = fedlink.Session(config, numpy.zeros(1000, numpy.float32))
    >>> node = fedlink.Encoder(session.config)
    >>> update = numpy.ones(1000, numpy.float32)  # what both nodes have learned
    >>> call = session.begin()
    >>> answers = [node.report(call.asks, update, 0.5, bits, call.t, m)
    ...            for m, bits in zip(call.candidates, call.alone_bits)]
    >>> grants = session.report(call.candidates, answers)
    >>> sent = [node.encode(update, g.budget, call.t, g.device).upload(g.device) for g in grants]
    >>> session.deliver(sent, trained=2, loss=0.5)
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


class Encoder(_fedlink.Encoder):
    """The sending half of a node: what it answers to the server, and what it sends of its update within its
    bits.

    ``config`` is the server's, seed included: compression that draws at random draws what ``simulate`` does.
    ``layers`` are the shapes of the arrays that an update is made of, as the session has them.
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


def matrices(shapes: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """Shapes of arrays as rows and columns: a vector is one column, and what has more than two dimensions has
    its first as rows."""

    def matrix(shape: Sequence[int]) -> tuple[int, int]:
        rows, *rest = [*map(int, shape), 1]
        return rows, math.prod(rest)

    return [matrix(shape) for shape in shapes]
