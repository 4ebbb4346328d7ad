"""A progress bar for terminals and notebooks."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

#: Seconds between two lines of the plain bar.
PAUSE = 0.2


def in_notebook() -> bool:
    """Whether output goes to a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


class Progress:
    """``tqdm`` if it is installed, otherwise a line that is overwritten; silent without a terminal."""

    def __init__(self, rounds: int, shown: bool, done: int = 0) -> None:
        self._rounds, self._done, self._next = rounds, done, 0.0
        self._accuracy: float | None = None
        self._bar: Any = None
        self._plain = False
        if not (shown and (in_notebook() or sys.stderr.isatty())):
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._plain = True
        else:
            self._bar = tqdm(total=rounds, initial=done, unit="round", desc="fedlink")

    def update(self, accuracy: float | None) -> None:
        """One more round is done."""
        if accuracy is not None:
            self._accuracy = accuracy
        self.show(self._done + 1, self._rounds)

    def show(self, done: int, rounds: int) -> None:
        """Shows the number of rounds that are done, of all."""
        step, self._done, self._rounds = done - self._done, done, rounds
        if self._bar is not None:
            if self._accuracy is not None:
                self._bar.set_postfix_str(f"accuracy {self._accuracy:.1%}", refresh=False)
            self._bar.total = rounds
            self._bar.update(step)
        elif self._plain and rounds > 0 and (time.monotonic() >= self._next or done == rounds):
            self._next = time.monotonic() + PAUSE
            accuracy = "" if self._accuracy is None else f", accuracy {self._accuracy:.1%}"
            print(f"\rround {done} of {rounds}{accuracy}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._plain:
            print(file=sys.stderr)
