"""Update-aware scheduling between real nodes, on Flower.

A round has two phases. In the first the candidates train, keep their update and report the numbers that the
policy needs. In the second the scheduled devices send their update, compressed to the bits that their link
carries. No other device uploads anything.

On the server, in place of ``FedAvg``::

    strategy = UpdateAwareStrategy(policy="bn2-c", k=2, uplink=SimulatedUplink(devices=4))

On the nodes, in place of ``flwr.clientapp.ClientApp``::

    app = UpdateAwareClientApp()
"""

try:
    import flwr as _flwr  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("fedlink.flower needs Flower: pip install 'flwr>=1.41,<2'") from error

from .client import UpdateAwareClientApp, update_reply
from .meeting import NobodyTakesPart
from .record import NodeRecord, Outcome, RoundRecord
from .strategy import Diverged, UpdateAwareStrategy
from .uplink import DeclaredUplink, SimulatedUplink

__all__ = [
    "DeclaredUplink",
    "Diverged",
    "NobodyTakesPart",
    "NodeRecord",
    "Outcome",
    "RoundRecord",
    "SimulatedUplink",
    "UpdateAwareClientApp",
    "UpdateAwareStrategy",
    "update_reply",
]
