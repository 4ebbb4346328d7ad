"""A configuration: a dictionary, TOML text, or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Union

Config = Union[Mapping[str, Any], str, "os.PathLike[str]"]


def read(config: Config, settings: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Name for messages, TOML text, and settings that go before it."""
    if isinstance(config, Mapping):
        return "config", "", {**config, **settings}
    if isinstance(config, str) and not is_path(config):
        return "config", config, dict(settings)
    if isinstance(config, (str, os.PathLike)):
        path = os.fspath(config)
        with open(path, encoding="utf-8") as file:
            return os.path.basename(path), file.read(), dict(settings)
    kind = type(config).__name__
    raise TypeError(f"config: must be a dictionary, TOML text or the path of a file, but is of type {kind}")


def is_path(text: str) -> bool:
    """Whether text names a file: it ends in .toml, or there is such a file."""
    if text.endswith(".toml"):
        return True
    try:
        return os.path.isfile(text)
    except (OSError, ValueError):
        return False
