"""The ``fedlink`` command, with custom parts from Python files."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from types import ModuleType

from . import _fedlink
from ._identity import PREFIX
from ._parts import KINDS, Registered, collect, part_name


def main() -> int:
    """Runs the command with the arguments of this process."""
    # Ctrl-C is the command's, which saves and stops; Python's handler would raise an exception beside it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The command writes past Python's buffers.
    sys.stdout.flush()
    return _fedlink.command(["fedlink", *sys.argv[1:]], parts_of)


def parts_of(files: list[str | os.PathLike[str]]) -> list[Registered]:
    """The parts that Python files define: every subclass of Policy, Compressor and Fading."""
    registered: list[Registered] = []
    names: dict[str, str] = {}
    for file in files:
        path = os.fspath(file)
        module = _load(path)
        found = list(_classes(module))
        if not found:
            raise ValueError(
                f"--parts {path}: defines no subclass of fedlink.Policy, fedlink.Compressor or fedlink.Fading"
            )
        for cls in found:
            name = part_name(cls)
            if name in names:
                raise ValueError(
                    f"--parts {path}: {cls.__name__} is called {name!r}, and so is {names[name]}"
                )
            names[name] = f"{cls.__name__} of {path}"
            registered.extend(collect(parts={name: cls}, strict=True)[0])
    return registered


def _load(path: str) -> ModuleType:
    """A Python file as a module; its imports are also looked for beside it."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"--parts {path}: there is no such file")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(f"{PREFIX}{name}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"--parts {path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Pickled state of a policy refers to its module by name.
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _classes(module: ModuleType) -> list[type]:
    bases = tuple(base for base, _ in KINDS.values())
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, bases) and value.__module__ == module.__name__
    ]
