"""The messages of a round, as both sides write and read them.

``query.fedlink_hello``
    The server sends ``declared``: whether the node must give a rate. The node answers with ``version``,
    ``device``, ``evaluates`` and ``rate``.

``train.fedlink_compute``
    The server sends the model, the app's own config, ``round``, ``device``, ``asks``, ``alone_bits`` and
    ``encoder``. The node answers with ``answers``, one number per entry of ``asks``, ``seconds`` of training,
    ``loss`` and ``examples`` if it has them, ``rate``, and the app's metrics of training.

``train.fedlink_upload``
    The server sends ``round``, ``device``, ``budget``, ``limit`` (bytes) and ``encoder``. The node answers
    with ``payload``, ``level``, ``bits`` and ``entries``; or with ``silent``, or ``lost``.

Every request has the ``version`` of these messages, and a node refuses one that is not its own.

Messages come from outside. Each reader here returns a value of its documented type and range, or raises a
:class:`ProtocolError` in a few words, and takes no more memory than a few times the message.
"""

from __future__ import annotations

import io
import json
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, ConfigRecordValues, Message, MetricRecord, RecordDict

#: The version of the messages; that of fedlink 0.1 had no number.
VERSION = 2

HELLO, COMPUTE, UPLOAD = "fedlink_hello", "fedlink_compute", "fedlink_upload"

#: The record with fedlink's part of a message.
KEY = "fedlink"

#: The record with the app's metrics of training, as in ``FedAvg``.
METRICS = "metrics"

#: The record in which a node's training may give its update itself.
UPDATE = "update"

_FLOAT32_MAX = float(np.finfo(np.float32).max)

#: The numbers that a candidate may have to report.
ASKS = ("norm", "compressed-norm", "loss", "rms-loss")

#: Those that are a training loss; a node answers "rms-loss" with its loss.
LOSSES = ("loss", "rms-loss")

#: A device number is below this.
MAX_DEVICES = 2**32
#: Rounds of a run; the first has the number 1.
MAX_ROUNDS = 2**32

#: The entries of an update.
Update = npt.NDArray[np.float32]


class ProtocolError(ValueError):
    """A message breaks the protocol."""


def request(**values: ConfigRecordValues) -> ConfigRecord:
    """The server's part of a message."""
    return ConfigRecord({"version": VERSION, **values})


def record_of(message: Message) -> dict[str, object]:
    """fedlink's part of a message, of either kind of record; empty if there is none."""
    content = message.content
    record = content[KEY] if KEY in content else None
    return dict(record) if isinstance(record, (ConfigRecord, MetricRecord)) else {}


def size_of(message: Message) -> int:
    """The bytes of a message's contents, as Flower counts them; 0 for a record with an empty entry, which it
    cannot count and which no app of ours sends."""
    total = 0
    for record in message.content.values():
        try:
            total += record.count_bytes()
        except (IndexError, ValueError):
            continue
    return total


def checked_request(message: Message) -> dict[str, object]:
    """The server's part of a message, if it is of this version."""
    record = record_of(message)
    check_version(record, "the server")
    return record


def check_version(record: Mapping[str, object], who: str) -> None:
    """Refuses a message of another version."""
    version = record.get("version", 1)
    if version != VERSION:
        raise ProtocolError(
            f"{who} uses version {shown(version)} of fedlink's messages, this side version {VERSION}: "
            "install the same fedlink on the server and on every node"
        )


def layers_of(arrays: ArrayRecord) -> list[tuple[int, ...]]:
    """The shapes of a model's parameters, in the order in which θ has them."""
    return [array.shape for array in floating(arrays).values()]


def encoder_config(config: Mapping[str, Any], layers: Sequence[Sequence[int]] = ()) -> str:
    """The part of the configuration that a node needs to compress as the server decodes; the layers of the
    model for the scheme that uses them."""
    custom = {
        name: origin
        for name, origin in config.get("custom", {}).items()
        if name == config["compress"]["scheme"]
    }
    run = {"seed": config["run"]["seed"]}
    told: dict[str, Any] = {"compress": config["compress"], "run": run, "custom": custom}
    if config["compress"]["scheme"] == "low-rank":
        told["layers"] = [list(shape) for shape in layers]
    return json.dumps(told)


def take_layers(config: dict[str, Any]) -> list[list[int]]:
    """The layers that :func:`encoder_config` wrote, taken out of the configuration; empty if there are
    none."""
    layers = config.pop("layers", [])
    if isinstance(layers, list) and all(_is_shape(shape) for shape in layers):
        return layers
    raise ProtocolError(f"encoder: layers must be lists of whole numbers, not {shown(layers)}")


def _is_shape(shape: object) -> bool:
    def is_length(number: object) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**32

    return isinstance(shape, list) and len(shape) <= 32 and all(map(is_length, shape))


def encoder_of(record: Mapping[str, object]) -> tuple[dict[str, Any], str | None]:
    """The configuration that :func:`encoder_config` wrote, without ``custom``, and the name of its scheme if
    that is a custom one."""
    text = record.get("encoder")
    try:
        config = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        config = None
    if isinstance(config, dict):
        compress, custom = config.get("compress"), config.pop("custom", None)
        if isinstance(compress, dict) and isinstance(custom, dict) and "feedback" in compress:
            scheme = compress.get("scheme")
            if isinstance(scheme, str):
                return config, scheme if scheme in custom else None
    raise ProtocolError(f"encoder must be a configuration of compression as JSON, not {shown(text)}")


def asks_of(record: Mapping[str, object]) -> list[str]:
    """The numbers that a candidate must report, by name."""
    text = record.get("asks", "")
    names = text.split() if isinstance(text, str) else None
    if names is None or any(name not in ASKS for name in names):
        raise ProtocolError(f"asks must be names from {', '.join(ASKS)}, not {shown(text)}")
    return names


def only_model(content: RecordDict) -> ArrayRecord:
    """The model in a message's content."""
    records = list(content.array_records.values())
    if len(records) != 1:
        raise ProtocolError(f"a message with a model must have one ArrayRecord, not {len(records)}")
    return records[0]


def dense(array: Array) -> npt.NDArray[Any]:
    """The numbers of an array. Its header is held against its bytes before memory is taken for it."""
    try:
        if array.stype != "numpy.ndarray":
            raise ValueError(f"it is of type {shown(array.stype)}")
        stream = io.BytesIO(array.data)
        npy: Any = np.lib.format
        version = npy.read_magic(stream)
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        if version not in header:
            raise ValueError(f"it is of version {version} of NumPy's format")
        shape, _, dtype = header[version](stream)
        size, there = math.prod(shape) * dtype.itemsize, len(array.data) - stream.tell()
        if min(shape, default=0) < 0 or size != there:
            raise ValueError(f"its header speaks of {size} bytes, and {there} are there")
        return array.numpy()
    # The exceptions of NumPy for bytes that are no array are not listed anywhere.
    except Exception as problem:
        raise ProtocolError(f"an array cannot be read: {shown(str(problem))}") from problem


def floating(arrays: ArrayRecord) -> dict[str, npt.NDArray[Any]]:
    """The arrays of real numbers in a model, by name. They are its parameters; counters and the like are
    not."""
    numbers = {name: dense(array) for name, array in arrays.items()}
    return {name: array for name, array in numbers.items() if array.dtype.kind == "f"}


def flat(arrays: Iterable[npt.NDArray[Any]]) -> Update:
    """All entries, one array after the other, in single precision."""
    parts = [np.asarray(array, dtype=np.float32).reshape(-1) for array in arrays]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)


def theta_of(arrays: ArrayRecord) -> Update:
    """θ of a model: its parameters as one vector."""
    return flat(floating(arrays).values())


def model_of(theta: Update, like: ArrayRecord) -> ArrayRecord:
    """The model with parameters θ. Arrays keep the type that they have in ``like``; those that are no
    parameters stay."""
    result: dict[str, Array] = {}
    start = 0
    for name, array in like.items():
        numbers = dense(array)
        if numbers.dtype.kind == "f":
            part = theta[start : start + numbers.size]
            start += numbers.size
            array = Array(part.astype(numbers.dtype).reshape(numbers.shape))
        result[name] = array
    return ArrayRecord(result)


def holds(arrays: ArrayRecord, theta: Update) -> bool:
    """Whether θ are the parameters of a model, in the precision of its arrays."""
    start = 0
    for array in floating(arrays).values():
        part = theta[start : start + array.size].astype(array.dtype)
        if not np.array_equal(flat([array]), flat([part])):
            return False
        start += array.size
    return start == theta.size


def update_of(before: dict[str, npt.NDArray[Any]], reply: RecordDict) -> Update:
    """Δ of a node's training: its ``update``, or the model that it returns minus the one it received."""
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
    check_finite(update)
    return update


def check_finite(update: Update) -> None:
    """Refuses an update with entries that are no numbers, or whose norm exceeds single precision."""
    exact = update.astype(np.float64)
    if not math.sqrt(float(exact @ exact)) <= _FLOAT32_MAX:
        raise ProtocolError("the update is not finite: training diverged")


def whole(record: Mapping[str, object], name: str, low: int, high: int) -> int:
    """The whole number called ``name``, between ``low`` and ``high``."""
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ProtocolError(f"{name} must be a whole number from {low} to {high}, not {shown(value)}")
    return value


def real(record: Mapping[str, object], name: str, above: float | None = None) -> float:
    """The number called ``name``, finite and at least 0, or above ``above``."""
    value = finite(record, name)
    if value < 0 or (above is not None and not value > above):
        raise ProtocolError(f"{name} must not be {value!r}")
    return value


def finite(record: Mapping[str, object], name: str) -> float:
    """The number called ``name``, finite and of any sign."""
    value = record.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise ProtocolError(f"{name} must be a finite number, not {shown(value)}")


def shown(value: object) -> str:
    """The text of a value in messages, shortened: it may be any value of a record."""
    try:
        return reprlib.repr(value)
    except ValueError:
        # Python does not print whole numbers of thousands of digits.
        return "a number of too many digits"


def payload_limit(entries: int) -> int:
    """The most bytes of an update of so many entries: twice those of its numbers, and a few."""
    return 8 * entries + 4096


#: The most characters of a text of others in a log or a record.
MAX_TEXT = 300


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """A text of others on one line: without control characters, and cut off after ``limit`` characters."""
    cut = text[: limit + 1].strip()
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)
    return shown if len(shown) <= limit and len(text) <= limit + 1 else f"{shown[: limit - 1]}…"


def answers(record: Mapping[str, object], asks: list[str]) -> list[float]:
    """The numbers that a candidate reports: norms are at least 0."""
    values = record.get("answers", [])
    if not isinstance(values, list) or len(values) != len(asks):
        raise ProtocolError(f"answers must be a list of {len(asks)} numbers, not {shown(values)}")
    numbers = [(finite if ask in LOSSES else real)({ask: value}, ask) for ask, value in zip(asks, values)]
    for ask, value in zip(asks, numbers):
        if abs(value) > _FLOAT32_MAX:
            raise ProtocolError(f"{ask} must be a number of 32 bits, not {value!r}")
    return numbers
