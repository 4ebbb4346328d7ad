"""Channels and rates of other tools as traces that ``radio.fading = "trace"`` reads.

Every function returns a :class:`Trace`, which ``save`` writes as NPZ, NPY or CSV::

    fedlink.trace.mahimahi(["a.up", "b.up"], dt_s=0.5).save("rates.npz")
    fedlink.simulate({"radio.fading": "trace", "radio.trace.file": "rates.npz"})

Measurements that are files can be turned into a trace without a program, too::

    python -m fedlink.trace ghent foot.log bus.log rates.npz --dt-s 0.5

Gains are |h|² with all path loss that the tool has put into them. All measurements but those of UCC
(``UL_bitrate``) and mahimahi's ``.up`` files are of the downlink: say so where you use one for the uplink.
"""

from __future__ import annotations

import argparse
import csv
import os
import pickle
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Union

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = [
    "Trace",
    "deepmimo",
    "fedscale",
    "ghent",
    "hsdpa",
    "lumos5g",
    "mahimahi",
    "matlab",
    "nyusim",
    "quadriga",
    "quadriga_fr",
    "sionna",
    "ucc",
]

KINDS = ("gain", "snr_db", "rate_bps")
#: Bits of one delivery opportunity of mahimahi: a packet of 1500 bytes.
OPPORTUNITY_BITS = 12_000

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Trace:
    """``values`` of one ``kind`` ("gain", "snr_db" or "rate_bps"), rounds × devices (× resource blocks).

    ``dt_s`` is the time between rows in seconds, if there is one.

    >>> fedlink.trace.Trace("gain", [[1.0, 0.5], [0.7, 0.9]]).save("gains.csv")
    """

    kind: str
    values: Any
    dt_s: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind: is {self.kind!r}, but must be one of {', '.join(KINDS)}")
        values = np.ascontiguousarray(self.values, dtype=np.float64)
        if values.ndim not in (2, 3) or values.size == 0:
            raise ValueError(f"values: shape {values.shape} must be rounds × devices (× resource blocks)")
        bad = ~np.isfinite(values) if self.kind == "snr_db" else ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(f"values: entry {index} is {values[index]}, which no {self.kind} can be")
        if self.dt_s is not None and not (np.isfinite(self.dt_s) and self.dt_s > 0):
            raise ValueError(f"dt_s: is {self.dt_s}, but must be a number above 0")
        object.__setattr__(self, "values", values)

    def save(self, path: PathLike) -> Path:
        """Writes the trace as its ending says: ``.npz``, ``.npy`` or ``.csv`` (long, with a header)."""
        path = Path(path)
        if path.suffix == ".npz":
            arrays = {self.kind: self.values}
            if self.dt_s is not None:
                arrays["dt_s"] = np.array([self.dt_s])
            np.savez_compressed(path, **arrays)
        elif path.suffix == ".npy":
            np.save(path, self.values)
        elif path.suffix == ".csv":
            self._save_csv(path)
        else:
            raise ValueError(f"path: {path} must end in .npz, .npy or .csv")
        return path

    def _save_csv(self, path: Path) -> None:
        blocks = self.values.ndim == 3
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            first = "round" if self.dt_s is None else "time_s"
            writer.writerow([first, "device", self.kind] + ["rb"] * blocks)
            for index, value in np.ndenumerate(self.values):
                at = index[0] if self.dt_s is None else repr(float(index[0] * self.dt_s))
                writer.writerow([at, index[1], repr(float(value))] + list(index[2:]))


def sionna(
    a: Any,
    tau: Any,
    frequencies: Any = None,
    *,
    batch: int = 0,
    rx: int = 0,
    tx_antenna: int = 0,
    dt_s: float | None = None,
) -> Trace:
    """Sionna's channel impulse responses: transmitters are devices, receiver ``rx`` is the server.

    ``a`` is [batch, rx, rx_ant, tx, tx_ant, paths, time], complex, and ``tau`` [batch, rx, tx, paths], in
    seconds. H(f) = Σ a·e^(−j2πfτ), and the gain is Σ |H|² over the receiver's antennas: at the carrier, or at
    each of ``frequencies`` (hertz from the carrier), which become resource blocks. Keep ``normalize=False``.
    """
    a, tau = np.asarray(a), np.asarray(tau, dtype=np.float64)
    if a.ndim != 7 or tau.ndim != 4:
        raise ValueError(f"a, tau: have {a.ndim} and {tau.ndim} dimensions, but must have 7 and 4")
    chosen, delays = a[batch, rx, :, :, tx_antenna], tau[batch, rx]
    if delays.shape != (chosen.shape[1], chosen.shape[2]):
        raise ValueError(f"tau: shape {tau.shape} does not go with a's {a.shape}")
    grid = np.zeros(1) if frequencies is None else np.asarray(frequencies, dtype=np.float64)
    turned = np.exp(-2j * np.pi * delays[:, :, None] * grid)
    gains = (np.abs(np.einsum("rmpt,mpk->rtmk", chosen, turned)) ** 2).sum(axis=0)
    return Trace("gain", gains[:, :, 0] if frequencies is None else gains, dt_s)


def quadriga(
    coeff: Sequence[Any],
    delay: Sequence[Any] | None = None,
    frequencies: Any = None,
    *,
    tx_antenna: int = 0,
    dt_s: float | None = None,
) -> Trace:
    """QuaDRiGa's coefficients: one array [rx_ant, tx_ant, path, snapshot] for each device.

    The gain is Σ |H|² over the receiver's antennas, at the carrier (Σ over paths), or at ``frequencies``
    (hertz from the carrier) by ``delay`` in seconds, of the shape of ``coeff`` or [path, snapshot].
    """
    if (delay is None) != (frequencies is None):
        raise ValueError("delay, frequencies: give both, or none for the gain at the carrier")
    devices = []
    for m, response in enumerate(coeff):
        h = np.asarray(response)
        if h.ndim != 4:
            raise ValueError(f"coeff: that of device {m} has {h.ndim} dimensions, but must have 4")
        h = h[:, tx_antenna]
        if delay is None:
            devices.append((np.abs(h.sum(axis=1)) ** 2).sum(axis=0))
            continue
        tau = np.asarray(delay[m], dtype=np.float64)
        tau = tau[:, tx_antenna] if tau.ndim == 4 else tau[None]
        turned = np.exp(-2j * np.pi * tau[..., None] * np.asarray(frequencies, dtype=np.float64))
        devices.append((np.abs((h[..., None] * turned).sum(axis=1)) ** 2).sum(axis=0))
    return Trace("gain", _together(devices), dt_s)


def quadriga_fr(responses: Sequence[Any], *, tx_antenna: int = 0, dt_s: float | None = None) -> Trace:
    """The H of QuaDRiGa's ``fr(bandwidth, carriers)``: [rx, tx, carrier, snapshot] for each device."""
    gains = [(np.abs(np.asarray(h)[:, tx_antenna]) ** 2).sum(axis=0).T for h in responses]
    return Trace("gain", _together(gains), dt_s)


def deepmimo(
    dataset: Any, walks: Any = None, *, base_station: int = 0, user_antenna: int = 0, blocks: bool = False
) -> Trace:
    """A DeepMIMO data set (v2, v3): ``dataset[i]["user"]["channel"]`` is [user, rx_ant, tx_ant, subcarrier].

    Users are devices, in one row; or ``walks`` has the users by round and device (rounds × devices), so that
    a walk through the grid is a device. The gain is that of the base station's antennas together. DeepMIMO
    scales paths by √(power/subcarriers), so |H|² is multiplied by the number of subcarriers; a user without a
    path has gain 0. The mean over the subcarriers is taken unless ``blocks``.
    """
    channel = np.asarray(dataset[base_station]["user"]["channel"])
    if channel.ndim != 4:
        raise ValueError(f"dataset: the channel has {channel.ndim} dimensions, but must have 4")
    gains = (np.abs(channel[:, user_antenna]) ** 2).sum(axis=1) * channel.shape[3]
    if not blocks:
        gains = gains.mean(axis=1)
    order = np.arange(len(gains))[None] if walks is None else np.asarray(walks)
    return Trace("gain", gains[order])


def nyusim(path: PathLike, column: str = "Path Loss (dB)", *, devices: int | None = None) -> Trace:
    """A table of NYUSIM with a header, separated by commas or tabs: gain = 10^(−path loss/10).

    Rows are drops: those of ``devices`` devices for each round in turn, or all of one round. Small-scale
    fading is not in it. The names of the columns differ between versions: give that of the path loss.
    """
    text = Path(path).read_text()
    rows = _rows(path, csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in text else ","), column)
    loss = np.array([_number(path, line, row[column]) for line, row in rows])
    count = len(loss) if devices is None else devices
    if count < 1 or len(loss) == 0 or len(loss) % count:
        raise ValueError(f"{path}: {len(loss)} rows cannot be shared among {count} devices")
    return Trace("gain", (10 ** (-loss / 10)).reshape(-1, count))


def ghent(paths: Iterable[PathLike], dt_s: float = 1.0) -> Trace:
    """Logs of the Ghent 4G/LTE set (2016), one for each device, as rates every ``dt_s`` seconds.

    Columns: ms since the epoch, ms since the start, latitude, longitude, bytes and ms since the row before.
    The rate of a row, 8·bytes/ms, holds in the interval that ends with it. All devices end with the shortest.
    """
    return Trace("rate_bps", _together([_log(path, dt_s) for path in paths]), dt_s)


def hsdpa(paths: Iterable[PathLike], dt_s: float = 1.0) -> Trace:
    """Logs of the Norwegian HSDPA set (Riiser et al., 2011): as :func:`ghent`, the first column in
    seconds."""
    return ghent(paths, dt_s)


def ucc(paths: Iterable[PathLike], column: str = "UL_bitrate", *, active: bool = False) -> Trace:
    """CSV files of University College Cork (4G 2018, 5G 2020), one for each device, one row per second.

    ``column`` is "UL_bitrate" or "DL_bitrate" (kbit/s) or "SNR" (dB). A missing value ("-") is the one
    before. ``active``: only rows in which data was sent (State D). All devices end with the shortest.
    """
    is_rate = column.endswith("_bitrate")
    devices = []
    for path in paths:
        with Path(path).open(newline="") as file:
            rows = _rows(path, csv.DictReader(file), column)
        values: list[float] = []
        for line, row in rows:
            if active and row.get("State") != "D":
                continue
            if row[column] != "-":
                values.append(_number(path, line, row[column]) * (1e3 if is_rate else 1.0))
            elif values:
                values.append(values[-1])
        devices.append(np.array(values))
    return Trace("rate_bps" if is_rate else "snr_db", _together(devices), 1.0)


def lumos5g(path: PathLike, column: str = "Throughput") -> Trace:
    """The CSV file of Lumos5G: runs (``run_num``) are devices, one row per second; throughput in Mbit/s.

    Throughput is TCP in the downlink; that it is in Mbit/s is our reading. All runs end with the shortest.
    """
    runs: dict[str, list[tuple[float, float]]] = {}
    with Path(path).open(newline="") as file:
        rows = _rows(path, csv.DictReader(file), column, "run_num", "seq_num")
    for line, row in rows:
        at, value = _number(path, line, row["seq_num"]), _number(path, line, row[column])
        runs.setdefault(row["run_num"], []).append((at, value * 1e6))
    devices = [np.array([rate for _, rate in sorted(run)]) for run in runs.values()]
    return Trace("rate_bps", _together(devices), 1.0)


def mahimahi(paths: Iterable[PathLike], dt_s: float = 1.0) -> Trace:
    """Traces of mahimahi, one for each device: a line is the millisecond at which 1500 bytes may be sent.

    The rate is that of the opportunities in each interval of ``dt_s`` seconds. A file ends with its last
    line, whose interval counts if it is complete; all devices end with the shortest.
    """
    devices = []
    for path in paths:
        lines = Path(path).read_text().split()
        times = np.array([_number(path, line, text) for line, text in enumerate(lines, 1)])
        if len(times) == 0 or (np.diff(times) < 0).any():
            raise ValueError(f"{path}: must hold times in ms that do not fall")
        count = max(int(times[-1] / (1e3 * dt_s)), 1)
        opportunities, _ = np.histogram(times, bins=np.arange(count + 1) * 1e3 * dt_s)
        # The last interval of a histogram includes its end, which is the start of the next.
        opportunities[-1] -= int((times == count * 1e3 * dt_s).sum())
        devices.append(opportunities * (OPPORTUNITY_BITS / dt_s))
    return Trace("rate_bps", _together(devices), dt_s)


def fedscale(capacities: Mapping[Any, Mapping[str, Any]] | PathLike) -> Trace:
    """FedScale's ``client_device_capacity``: one constant rate for each device, in the order of the keys.

    ``capacities`` is {id: {"computation": ms a sample, "communication": kbit/s}} or the path of its pickle,
    of which nothing but plain containers and numbers is loaded.
    """
    if not isinstance(capacities, Mapping):
        with Path(capacities).open("rb") as file:
            loaded = _Plain(file).load()
        if not isinstance(loaded, Mapping):
            raise ValueError(f"{capacities}: holds a {type(loaded).__name__}, but must hold a dictionary")
        capacities = loaded
    rates = [float(capacities[key]["communication"]) * 1e3 for key in sorted(capacities)]
    return Trace("rate_bps", [rates])


def matlab(path: PathLike, name: str) -> Any:
    """The array ``name`` of a MATLAB file: by SciPy up to version 7.2, by h5py from 7.3 on (HDF5).

    MATLAB's dimensions come out of HDF5 in reverse order; they are turned back. Complex numbers are joined.
    """
    with Path(path).open("rb") as file:
        is_hdf5 = b"MATLAB 7.3" in file.read(128)
    if not is_hdf5:
        try:
            import scipy.io
        except ImportError as error:
            raise ImportError("fedlink.trace.matlab needs SciPy for this file: pip install scipy") from error
        return scipy.io.loadmat(path, variable_names=[name])[name]
    try:
        import h5py
    except ImportError as error:
        raise ImportError("fedlink.trace.matlab needs h5py for this file: pip install h5py") from error
    with h5py.File(path, "r") as archive:
        array = archive[name][()]
    if array.dtype.names == ("real", "imag"):
        array = array["real"] + 1j * array["imag"]
    return array.T


class _Plain(pickle.Unpickler):
    """Loads containers and numbers, and nothing that could run."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"holds a {module}.{name}, but must hold plain numbers alone")


def _rows(path: PathLike, reader: csv.DictReader[str], *columns: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a table with their lines; it must have these columns."""
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        there = ", ".join(reader.fieldnames or ())
        raise ValueError(f"{path}: line 1: has no column {missing[0]!r}, but {there}")
    return [(reader.line_num, row) for row in reader]


def _number(path: PathLike, line: int, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise ValueError(f"{path}: line {line}: {text!r} must be a number") from None


def _log(path: PathLike, dt_s: float) -> Floats:
    """The rates of a log of six columns, every ``dt_s`` seconds from the start of its first interval."""
    table = []
    for line, text in enumerate(Path(path).read_text().splitlines(), 1):
        if not text.strip():
            continue
        fields = text.replace(",", " ").split()
        if len(fields) != 6:
            raise ValueError(f"{path}: line {line}: has {len(fields)} columns, but must have 6")
        table.append([_number(path, line, field) for field in (fields[1], fields[4], fields[5])])
        if table[-1][2] <= 0:
            raise ValueError(f"{path}: line {line}: {fields[5]} ms since the row before must be above 0")
    if not table:
        raise ValueError(f"{path}: is empty")
    ends, sent, took = np.array(table).T
    falls = np.diff(ends) <= 0
    if falls.any():
        raise ValueError(f"{path}: row {int(np.argmax(falls)) + 2}: its time is not above the one before")
    start = ends[0] - took[0]
    count = max(int((ends[-1] - start) / (1e3 * dt_s)), 1)
    at = np.searchsorted(ends, start + np.arange(count) * 1e3 * dt_s, side="right")
    rates: Floats = (8e3 * sent / took)[at]
    return rates


def _together(devices: Sequence[Any]) -> Floats:
    """Devices side by side, cut to the shortest: rounds × devices (× resource blocks)."""
    if not devices:
        raise ValueError("there is no device: give at least one")
    rows = min(len(device) for device in devices)
    if rows == 0:
        raise ValueError("a device has no row")
    table: Floats = np.stack([np.asarray(device, dtype=np.float64)[:rows] for device in devices], axis=1)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Turns files of measurements into a trace: a format, the files of the devices, and the file to write."""
    several = {"ghent": ghent, "hsdpa": hsdpa, "mahimahi": mahimahi, "ucc": ucc}
    single = {"fedscale": fedscale, "lumos5g": lumos5g, "nyusim": nyusim}
    parser = argparse.ArgumentParser(prog="python -m fedlink.trace", description=main.__doc__)
    parser.add_argument("format", choices=sorted([*several, *single]))
    parser.add_argument("files", nargs="+", metavar="FILE", help="one for each device, or the file of all")
    parser.add_argument("out", help="the trace to write, which ends in .npz, .npy or .csv")
    parser.add_argument("--dt-s", type=float, help="seconds between rows (ghent, hsdpa, mahimahi; 1)")
    given = parser.parse_args(arguments)
    if given.format in single and len(given.files) > 1:
        parser.error(f"{given.format} has all devices in one file, but {len(given.files)} are given")
    if given.dt_s is not None and given.format not in ("ghent", "hsdpa", "mahimahi"):
        parser.error(f"--dt-s has no effect on {given.format}, whose rows have their own time")
    if given.dt_s is not None and not given.dt_s > 0:
        parser.error(f"--dt-s is {given.dt_s}, but must be above 0")
    step = {} if given.dt_s is None else {"dt_s": given.dt_s}
    try:
        read: Any = several.get(given.format) or single[given.format]
        made = read(given.files if given.format in several else given.files[0], **step)
        made.save(given.out)
    except (ValueError, OSError, KeyError, TypeError, pickle.UnpicklingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows, devices = made.values.shape[:2]
    print(f"{given.out}: {made.kind}, {rows} rows of {devices} devices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
