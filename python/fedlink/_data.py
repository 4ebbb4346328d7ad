"""Data as arrays, in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _fedlink
from ._config import Config, read
from ._parts import collect

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ARRAYS = ("x_train", "y_train", "x_test", "y_test")

#: A name of the catalog or a path, a data set, four arrays, or a dictionary of them.
Data = Union[str, _fedlink.Dataset, "tuple[Any, Any, Any, Any]", Mapping[str, Any]]


def as_dataset(data: Data, name: str = "arrays") -> _fedlink.Dataset:
    """A data set of four arrays, in this order or by these names: x_train, y_train, x_test, y_test."""
    if isinstance(data, _fedlink.Dataset):
        return data
    if isinstance(data, Mapping):
        missing = [array for array in ARRAYS if array not in data]
        if missing:
            raise ValueError(f"data: has no {', '.join(missing)}; a dictionary must have {', '.join(ARRAYS)}")
        return _fedlink.Dataset(name, *(data[array] for array in ARRAYS))
    if isinstance(data, (tuple, list)) and len(data) == len(ARRAYS):
        return _fedlink.Dataset(name, *data)
    given = f"{len(data)} items" if isinstance(data, (tuple, list)) else f"of type {type(data).__name__}"
    raise TypeError(
        f"data: must be ({', '.join(ARRAYS)}), a dictionary of them, a fedlink.Dataset or a name, "
        f"but is {given}"
    )


def dataset(name: Data) -> _fedlink.Dataset:
    """A data set with its samples as arrays: one of ``fedlink list datasets``, a path, or your own arrays.

    >>> digits = fedlink.dataset("digits")
    >>> digits.x_train.shape, digits.y_train.dtype
    """
    if isinstance(name, str):
        return _fedlink.dataset("dataset", "", {"data.dataset": name})
    return as_dataset(name)


def split(config: Config, *, data: Data | None = None, partition: Any = None) -> list[npt.NDArray[np.int64]]:
    """The training samples of every device, as ``simulate`` splits them: a list of indices for each.

    >>> mine = fedlink.split({"data.partition": "classes", "data.classes.per_device": 2})
    >>> digits.y_train[mine[0]]  # the classes of device 0
    """
    registered, chosen = collect(partition=partition)
    settings: dict[str, Any] = dict(chosen)
    given = None
    if isinstance(data, str):
        settings["data.dataset"] = data
    elif data is not None:
        given = as_dataset(data)
    return _fedlink.split(*read(config, settings), registered, given)
