"""Federated learning over wireless links.

M devices train locally; a fading uplink carries at most the Shannon capacity; a policy selects up to K of
them by channel and by update; a compressor fits each update into its share.

>>> result = fedlink.simulate({"schedule.policy": "bn2-c", "schedule.k": 5, "run.rounds": 20})
>>> result.summary["final_accuracy"], result.digest

Rounds: an argument or a result that is a round is the t of θ(t), counted from 0; records and tables count
completed rounds, from 1. Devices are counted from 0.
"""

from typing import TYPE_CHECKING

from ._bound_plan import BoundHorizon, BoundPlan, BoundPoint, bound_plan
from ._data import dataset, split
from ._fedlink import (
    Call,
    Dataset,
    DivergedError,
    Encoded,
    Grant,
    Links,
    Record,
    Reports,
    Table,
    Upload,
    View,
    __version__,
    asks,
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
    select,
    split_slots,
)
from ._goals import Comparison, GoalValue
from ._parts import Compressor, Fading, Pick, Policy, Task
from ._plan import Plan, plan
from ._radio import LinkBudget, link_budget
from ._run import Curve, Rerun, Run, Study, Verified, check, merge, run, status, verify
from ._server import Device, Encoder, Server
from ._simulate import Result, simulate
from ._system import System, digest

__all__ = [
    "BoundHorizon",
    "BoundPlan",
    "BoundPoint",
    "Call",
    "Comparison",
    "Compressor",
    "Curve",
    "Dataset",
    "Device",
    "DivergedError",
    "Encoded",
    "Encoder",
    "Fading",
    "GoalValue",
    "Grant",
    "LinkBudget",
    "Links",
    "Pick",
    "Plan",
    "Policy",
    "Record",
    "Reports",
    "Rerun",
    "Result",
    "Run",
    "Server",
    "Study",
    "System",
    "Table",
    "Task",
    "Upload",
    "Verified",
    "View",
    "__version__",
    "asks",
    "audit",
    "bound",
    "bound_plan",
    "candidates",
    "capacity",
    "check",
    "dataset",
    "decode",
    "digest",
    "dsgd",
    "dsgd_bits",
    "dsgd_dense",
    "encode",
    "gains",
    "largest_q",
    "link_budget",
    "merge",
    "norm",
    "plan",
    "run",
    "select",
    "simulate",
    "split",
    "split_slots",
    "status",
    "verify",
]

if not TYPE_CHECKING:  # A type checker must not take any name for one of this module.

    def __getattr__(name: str) -> object:
        former = {"Session": "Server", "radio": "link_budget", "PlanCell": "BoundPoint"}
        former |= {"PlanPoint": "BoundPoint", "PlanHorizon": "BoundHorizon"}
        if name in former:
            raise AttributeError(f"fedlink.{name} is called fedlink.{former[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
