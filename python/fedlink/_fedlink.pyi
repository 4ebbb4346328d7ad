from typing import Any, Literal, SupportsIndex, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, disjoint_base

__all__ = [
    "DivergedError",
    "Channels",
    "candidates",
    "capacity",
    "decode",
    "dsgd",
    "dsgd_bits",
    "dsgd_dense",
    "encode",
    "largest_q",
    "report_kind",
    "select",
    "split_slots",
    "Simulation",
    "System",
    "Table",
    "audit",
    "gains",
    "norm",
    "bound",
    "plan",
    "__version__",
]

__version__: str

_Places = npt.NDArray[np.int64]
_Reals = npt.NDArray[np.float64]
_Update = npt.NDArray[np.float32]
_Whole = SupportsIndex
_PerRound = float | npt.ArrayLike
_Policy = Literal["bc", "bn2", "bc-bn2", "bn2-c"] | str

class DivergedError(ArithmeticError): ...

@final
class Channels:
    @property
    def gains(self) -> _Reals: ...
    @property
    def capacities(self) -> _Reals: ...
    @property
    def devices(self) -> int: ...

@final
class Table:
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> npt.NDArray[Any]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_arrow(self) -> Any: ...
    def to_pandas(self) -> Any: ...

@final
class Simulation:
    def __new__(
        cls,
        name: str,
        text: str,
        settings: dict[str, Any],
        policy: object | None = None,
        compressor: object | None = None,
        task: object | None = None,
    ) -> Simulation: ...
    def step(self) -> float | None: ...
    @property
    def rounds_to_do(self) -> int: ...
    @property
    def rounds_done(self) -> int: ...
    def theta(self) -> _Update: ...
    def outcome_json(self) -> str: ...
    def config_json(self) -> str: ...
    def rounds(self) -> Table: ...
    def transmissions(self) -> Table: ...

@disjoint_base
class System:
    def __new__(cls, name: str, text: str, settings: dict[str, Any]) -> Self: ...
    @property
    def dim(self) -> int: ...
    @property
    def devices(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def symbols(self) -> int: ...
    @property
    def power(self) -> float: ...
    def config_json(self) -> str: ...
    def theta0(self) -> _Update: ...
    def gains(self, round: _Whole) -> _Reals: ...
    def capacities(self, round: _Whole) -> _Reals: ...
    def train(self, theta: npt.ArrayLike, round: _Whole, device: _Whole) -> _Update: ...
    def report(self, kind: str, update: npt.ArrayLike, round: _Whole, device: _Whole) -> float: ...
    def compress(
        self, update: npt.ArrayLike, bits: float, round: _Whole, device: _Whole
    ) -> tuple[int, _Places, float | _Update]: ...
    def aggregate(
        self, theta: npt.ArrayLike, devices: npt.ArrayLike, sent: list[tuple[Any, Any]]
    ) -> _Update: ...
    def evaluate(self, theta: npt.ArrayLike) -> tuple[float, float]: ...

def dsgd(update: npt.ArrayLike, q: _Whole) -> tuple[_Places, float]: ...
def dsgd_dense(update: npt.ArrayLike, q: _Whole) -> _Update: ...
def dsgd_bits(dim: _Whole, q: _Whole) -> float: ...
def largest_q(dim: _Whole, bits: float, scheme: str = "d-sgd") -> int: ...
def audit(
    report: str,
    reported: float,
    indices: npt.ArrayLike,
    value: float,
    dim: _Whole,
    q: _Whole,
    q_alone: _Whole,
) -> str | None: ...
def norm(update: npt.ArrayLike) -> float: ...
def gains(
    devices: _Whole, round: _Whole, seed: _Whole | None = None, channel: str = "rayleigh"
) -> _Reals: ...
def capacity(gains: npt.ArrayLike, power: float, noise: float) -> _Reals: ...
def split_slots(
    weights: npt.ArrayLike, capacities: npt.ArrayLike, symbols: _Whole, whole: bool = False
) -> _Reals: ...
def candidates(policy: _Policy, k: _Whole, gains: npt.ArrayLike, kc: _Whole | None = None) -> _Places: ...
def report_kind(policy: _Policy) -> str: ...
def select(
    policy: _Policy,
    k: _Whole,
    gains: npt.ArrayLike,
    norms: npt.ArrayLike | None = None,
    kc: _Whole | None = None,
) -> tuple[_Places, _Reals]: ...
def encode(update: npt.ArrayLike, q: _Whole) -> bytes: ...
def decode(payload: bytes, dim: _Whole, q: _Whole) -> tuple[_Places, float]: ...
def bound(
    *,
    k: _Whole | None = None,
    tau: _Whole | None = None,
    devices: _Whole | None = None,
    rounds: _Whole | None = None,
    mu: float = 1.0,
    l: float = 5.0,
    g: float = 1.0,
    gamma: float = 1.0,
    distance0: float = 500.0,
    rate: str | _PerRound | None = None,
    rho: _PerRound | None = None,
    dim: _Whole | None = None,
    symbols: _Whole | None = None,
    power: float = 1.0,
    noise: float = 1.0,
    choice: str = "best",
    draws: _Whole | None = None,
    seed: _Whole | None = None,
) -> _Reals: ...
def plan(
    *,
    ks: tuple[_Whole, _Whole] | None = None,
    taus: tuple[_Whole, _Whole] | None = None,
    devices: _Whole | None = None,
    rounds: _Whole | None = None,
    mu: float = 0.25,
    l: float = 5.0,
    g: float = 1.0,
    gamma: float = 1.0,
    distance0: float = 500.0,
    rate: str | _PerRound | None = None,
    dim: _Whole | None = None,
    symbols: _Whole | None = None,
    power: float = 1.0,
    noise: float = 1.0,
    choice: str = "best",
    target: float | None = None,
    samples: _Whole | None = None,
    seed: _Whole | None = None,
) -> str: ...
