"""Federated learning over wireless links.

M devices train locally; a fading uplink carries only what Shannon capacity allows; a policy picks K of them by their
channel and by how much their update matters; a quantiser squeezes each update into its share.

>>> result = fedlink.simulate({"schedule.policy": "bn2-c", "schedule.k": 5, "run.rounds": 20})
>>> result.summary["final_accuracy"], result.digest

Rounds: wherever a function takes a round it is the t of θ(t), counted from 0; records and tables count rounds that are
done, from 1. Devices are counted from 0.
"""

from ._fedlink import (
    DivergedError,
    Table,
    __version__,
    audit,
    bound,
    candidates,
    capacity,
    decode,
    dsgd,
    dsgd_bits,
    dsgd_dense,
    encode,
    gains,
    largest_q,
    norm,
    report_kind,
    select,
    split_slots,
)
from ._parts import Channels, Compressor, Policy, Task
from ._plan import Plan, PlanCell, PlanHorizon, plan
from ._simulate import Result, simulate
from ._system import System, digest

__all__ = [
    "Channels",
    "Compressor",
    "DivergedError",
    "Plan",
    "PlanCell",
    "PlanHorizon",
    "Policy",
    "Result",
    "System",
    "Table",
    "Task",
    "__version__",
    "audit",
    "bound",
    "candidates",
    "capacity",
    "decode",
    "digest",
    "dsgd",
    "dsgd_bits",
    "dsgd_dense",
    "encode",
    "gains",
    "largest_q",
    "norm",
    "plan",
    "report_kind",
    "select",
    "simulate",
    "split_slots",
]
