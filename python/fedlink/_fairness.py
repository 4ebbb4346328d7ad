"""Fairness of a model over classes and devices, and the privacy loss of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from . import _fedlink

#: The prefix of columns with the accuracy of a class.
CLASS = "class_"


class Fairness:
    """Accuracy by class and by device of a run with ``run.fairness``, and ε of one with ``privacy.noise``."""

    #: The run in numbers.
    summary: dict[str, Any]
    #: One row for each round, or for each evaluated one.
    rounds: _fedlink.Table

    @property
    def class_accuracy(self) -> npt.NDArray[np.float64] | None:
        """Accuracy of each class: one row for each evaluation, one column for each class, NaN for a class of
        which the test set has nothing. None without ``run.fairness``."""
        import numpy

        numbers = [name[len(CLASS) :] for name in self.rounds.column_names if name.startswith(CLASS)]
        classes = [int(number) for number in numbers if number.isdigit()]
        if not classes:
            return None
        seen = ~numpy.isnan(self.rounds["test_accuracy"])
        table = numpy.full((int(seen.sum()), 1 + max(classes)), numpy.nan)
        for index in classes:
            table[:, index] = self.rounds[f"{CLASS}{index}"][seen]
        return table

    @property
    def device_accuracy(self) -> npt.NDArray[np.float64] | None:
        """Accuracy of each device at the last evaluation, by its mix of classes; NaN for one that has no
        class of the test set. None without ``run.fairness``."""
        import numpy

        devices = self.summary.get("device_accuracy")
        return None if devices is None else numpy.array(devices, dtype=numpy.float64)

    @property
    def epsilon(self) -> float | None:
        """ε of the run; None without ``privacy.noise``, or without a guarantee. ``summary["privacy"]`` has
        the other parameters, and the limits of the guarantee."""
        privacy = self.summary.get("privacy")
        epsilon: float | None = None if privacy is None else privacy.get("epsilon")
        return epsilon
