"""The messages of a round, as both sides write and read them.

========================  =====================================================  ===================================
message                   from the server                                        from the node
========================  =====================================================  ===================================
``query.fedlink_hello``   (``measured``)                                         ``device``, and its ``rate``
``train.fedlink_compute`` the model, the app's own config, and ``fedlink``:      ``report``: one number, and its
                          ``round``, ``report``, and ``bits`` or ``seconds``     ``rate`` if it is to be measured
``train.fedlink_upload``  ``round``, ``q``                                       ``payload``: the encoded update,
                                                                                 or ``lost``
========================  =====================================================  ===================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

HELLO, COMPUTE, UPLOAD = "fedlink_hello", "fedlink_compute", "fedlink_upload"

#: The record with our part of a message.
KEY = "fedlink"

#: The record in which a node's training may give its update itself.
UPDATE = "update"

#: What a candidate may be asked to report.
REPORTS = NOTHING, NORM, QUANTISED_NORM = "nothing", "norm", "quantised-norm"


#: The entries of an update.
Update = npt.NDArray[np.float32]

#: Ascending places in it, and what is to be added there.
Step = tuple[npt.NDArray[np.int64], np.float32]


class ProtocolError(ValueError):
    """A message does not say what it should."""


def floating(arrays: ArrayRecord) -> dict[str, npt.NDArray[Any]]:
    """The arrays of real numbers in a model, by name. They are its parameters; counters and the like are not."""
    dense = {name: array.numpy() for name, array in arrays.items()}
    return {name: array for name, array in dense.items() if array.dtype.kind == "f"}


def dimension(arrays: ArrayRecord) -> int:
    """d, the parameters of a model."""
    return sum(array.size for array in floating(arrays).values())


def flat(arrays: Iterable[npt.NDArray[Any]]) -> Update:
    """All entries, one array after the other, in single precision."""
    parts = [np.asarray(array, dtype=np.float32).reshape(-1) for array in arrays]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)


def update_of(before: dict[str, npt.NDArray[Any]], reply: RecordDict) -> Update:
    """Δ by a node's training: what it gives as ``update``, or the model it returns minus the one it got."""
    if UPDATE in reply.array_records:
        update = flat(floating(reply.array_records[UPDATE]).values())
    else:
        records = list(reply.array_records.values())
        if len(records) != 1:
            raise ProtocolError(f"training must reply with one ArrayRecord, its model, not {len(records)}")
        after = floating(records[0])
        shapes = ({name: array.shape for name, array in model.items()} for model in (before, after))
        if next(shapes) != next(shapes):
            raise ProtocolError("training must reply with arrays of the same names and shapes as it got")
        update = flat(after[name] - before[name] for name in before)
    expected = sum(array.size for array in before.values())
    if update.size != expected:
        raise ProtocolError(f"the update has {update.size} entries, but the model {expected}")
    if not np.isfinite(update).all():
        raise ProtocolError("the update is not finite: training diverged")
    return update


def added(arrays: ArrayRecord, updates: Iterable[Step]) -> ArrayRecord:
    """θ plus the updates, in their order. Arrays keep their type; those that are no parameters stay."""
    updates = list(updates)
    result: dict[str, Array] = {}
    start = 0
    for name, array in arrays.items():
        dense = array.numpy()
        if dense.dtype.kind == "f":
            shape, dense = dense.shape, dense.reshape(-1).copy()
            for places, step in updates:
                low, high = np.searchsorted(places, (start, start + dense.size))
                dense[places[low:high] - start] += step.astype(dense.dtype)
            start += dense.size
            result[name] = Array(dense.reshape(shape))
        else:
            result[name] = array
    return ArrayRecord(result)


def one_record(message: Message) -> dict[str, object]:
    """Our part of a message, whatever kind of record it is."""
    content = message.content
    record = content[KEY] if KEY in content else None
    if not isinstance(record, (ConfigRecord, MetricRecord)):
        raise ProtocolError(f"there is no record {KEY!r} of numbers")
    return dict(record)


def whole(record: Mapping[str, object], name: str, low: int, high: int) -> int:
    """The whole number called ``name``, between ``low`` and ``high``."""
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ProtocolError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
    return value


def real(record: Mapping[str, object], name: str, above: float | None = None) -> float:
    """The number called ``name``, finite and at least 0, or above ``above``."""
    value = record.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise ProtocolError(f"{name} must be a finite number, not {value!r}")
    if value < 0 or (above is not None and not value > above):
        raise ProtocolError(f"{name} must not be {value!r}")
    return float(value)
