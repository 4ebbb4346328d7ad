"""The strategy without scheduling and compression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fedlink

from . import protocol
from .strategy import UpdateAwareStrategy
from .uplink import SimulatedUplink


class Reference(UpdateAwareStrategy):
    """Every node is scheduled, and its update arrives whole."""

    #: Whether the links are those that carry everything yet, and not those of the configuration.
    _carries_all = False

    def __init__(
        self,
        policy: Any = None,
        k: int | None = None,
        *,
        compressor: Any = None,
        fading: Any = None,
        **options: Any,
    ) -> None:
        super().__init__("bc", 1, **options)
        self._carries_all = True
        # Nothing of the configured radio is left: no units, cell, estimates or losses.
        self._config = {
            section: keys
            for section, keys in self.config.items()
            if section not in ("radio", "cell", "clock", "energy")
        }
        # Equal links that carry every entry of every update: 33 bits for each, over links of one bit a
        # symbol.
        self._settings |= {
            "schedule.k": self.devices,
            "compress.scheme": "random-sparse",
            "compress.feedback": "off",
            "compress.budget": "formula",
            "radio.fading": "static",
            "radio.mean_gains": "",
            "radio.power": 1.0,
            "radio.noise": 1.0,
        }
        self.uplink = SimulatedUplink(self.devices)
        self._parts["policy"] = "bc"
        self.config = self._resolved()
        self.policy, self.k = "reference", self.devices

    def _new_server(
        self, theta: protocol.Update, rounds: int | None = None, layers: Sequence[Sequence[int]] = ()
    ) -> fedlink.Server:
        if self._carries_all:
            self._settings["radio.symbols"] = 40 * max(theta.size, 2) * self._settings["schedule.k"]
        return super()._new_server(theta, rounds, layers)
