"""The seconds and joules of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Costs:
    """Seconds and joules of a run, by its summary. They are counted in ``simulate`` and ``run`` where the
    radio has units (``radio.bandwidth_hz``); otherwise they are None."""

    #: The run in numbers.
    summary: dict[str, Any]

    @property
    def phases(self) -> dict[str, float] | None:
        """Seconds of all rounds by phase: ``down_s``, ``train_s``, ``report_s``, ``up_s``."""
        phases: dict[str, float] | None = self.summary.get("phases")
        return phases

    @property
    def seconds(self) -> float | None:
        """Seconds of all rounds."""
        phases = self.phases
        return None if phases is None else sum(phases.values())

    @property
    def energy(self) -> dict[str, float] | None:
        """Joules of all devices by kind: ``compute_j``, ``report_j``, ``transmit_j``, ``receive_j``,
        ``idle_j``."""
        energy: dict[str, float] | None = self.summary.get("energy")
        return energy

    @property
    def joules(self) -> float | None:
        """Joules of all devices."""
        energy = self.energy
        return None if energy is None else sum(energy.values())

    @property
    def device_energy(self) -> dict[str, npt.NDArray[np.float64]] | None:
        """Joules by kind, an array of all devices each."""
        devices = self.summary.get("device_energy")
        if not devices:
            return None
        import numpy

        return {kind: numpy.array([device[kind] for device in devices]) for kind in devices[0]}

    @property
    def worst_device_joules(self) -> float | None:
        """The joules of the device that spent the most."""
        energy = self.device_energy
        return None if energy is None else float(sum(energy.values()).max())  # type: ignore[union-attr]

    @property
    def outages(self) -> int:
        """Uploads that the channel did not carry."""
        return int(self.summary.get("outages", 0))

    @property
    def late(self) -> int:
        """Uploads that came after the deadline."""
        return int(self.summary.get("late", 0))
