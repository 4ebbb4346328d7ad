"""Importers of channels and rates of other tools, each on a small file or array in its format."""

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest

from fedlink import trace


def test_a_trace_is_saved_in_three_formats(tmp_path):
    saved = trace.Trace("gain", [[1.0, 0.5], [0.25, 2.0]], dt_s=0.5)
    with np.load(saved.save(tmp_path / "t.npz")) as archive:
        assert archive["gain"].tolist() == [[1.0, 0.5], [0.25, 2.0]] and archive["dt_s"].tolist() == [0.5]
    assert np.load(saved.save(tmp_path / "t.npy")).tolist() == [[1.0, 0.5], [0.25, 2.0]]
    text = saved.save(tmp_path / "t.csv").read_text()
    assert text == "time_s,device,gain\n0.0,0,1.0\n0.0,1,0.5\n0.5,0,0.25\n0.5,1,2.0\n"
    text = trace.Trace("snr_db", [[[-1.0, 2.0]]]).save(tmp_path / "b.csv").read_text()
    assert text == "round,device,snr_db,rb\n0,0,-1.0,0\n0,0,2.0,1\n"
    with pytest.raises(ValueError, match="must end in .npz, .npy or .csv"):
        saved.save(tmp_path / "t.txt")


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        ("gain", [[-1.0]], r"entry \(0, 0\) is -1.0, which no gain can be"),
        ("rate_bps", [[1.0, np.nan]], r"entry \(0, 1\) is nan"),
        ("snr_db", [[np.inf]], "which no snr_db can be"),
        ("gain", [1.0], "must be rounds × devices"),
        ("power", [[1.0]], "kind: is 'power', but must be one of gain, snr_db, rate_bps"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(kind, values, problem):
    with pytest.raises(ValueError, match=problem):
        trace.Trace(kind, values)


def test_sionna():
    # One receiver of two antennas, two devices, two paths, one time; delays 0 and 1/4 s.
    a = np.zeros((1, 1, 2, 2, 1, 2, 1), dtype=complex)
    a[0, 0, :, 0, 0, :, 0] = [[1, 1], [1j, -1j]]
    a[0, 0, :, 1, 0, :, 0] = [[2, 0], [0, 3]]
    tau = np.array([0.0, 0.25]).reshape(1, 1, 1, 2).repeat(2, axis=2)
    # At the carrier: |1+1|² + |j−j|² = 4; 2² + 3² = 13.
    assert trace.sionna(a, tau).values == pytest.approx(np.array([[4.0, 13.0]]))
    # At 1 Hz the second path turns by −90°: |1−j|² + |j−1|² = 4; at 2 Hz by 180°: |0|² + |2j|² = 4.
    blocks = trace.sionna(a, tau, [1.0, 2.0]).values
    assert blocks == pytest.approx(np.array([[[4.0, 4.0], [13.0, 13.0]]]))
    with pytest.raises(ValueError, match="must have 7 and 4"):
        trace.sionna(a[0], tau)


def test_quadriga():
    # Two receive antennas, one transmit antenna, two paths, two snapshots.
    h = np.zeros((2, 1, 2, 2), dtype=complex)
    h[:, 0, :, 0] = [[1, 1], [0, 1j]]
    h[:, 0, :, 1] = [[1, -1], [2, 0]]
    assert trace.quadriga([h, 2 * h]).values == pytest.approx(np.array([[5.0, 20.0], [4.0, 16.0]]))
    # Half a turn for the second path: |1−1|² + |−j|² = 1 and |1+1|² + |2|² = 8.
    delay = np.array([[0.0, 0.0], [0.5, 0.5]])
    assert trace.quadriga([h], [delay], [1.0]).values[..., 0] == pytest.approx(np.array([[1.0], [8.0]]))
    full = np.broadcast_to(delay, (2, 1, 2, 2))
    assert trace.quadriga([h], [full], [1.0]).values[..., 0] == pytest.approx(np.array([[1.0], [8.0]]))
    # [rx, tx, carrier, snapshot]: one carrier with the sums over paths.
    fr = h.sum(axis=2, keepdims=True)
    assert trace.quadriga_fr([fr]).values[..., 0] == pytest.approx(np.array([[5.0], [4.0]]))


def test_deepmimo():
    # Three users, one antenna each, two at the base station, two subcarriers; user 2 has no path.
    channel = np.zeros((3, 1, 2, 2), dtype=np.complex64)
    channel[0, 0] = [[1, 1], [0, 1j]]
    channel[1, 0] = [[2, 0], [0, 0]]
    dataset = [{"user": {"channel": channel}}]
    # User 0: subcarriers 2·1 = 2 and 2·(1+1) = 4, mean 3; user 1: 2·4 = 8 and 0, mean 4.
    assert trace.deepmimo(dataset).values == pytest.approx(np.array([[3.0, 4.0, 0.0]]))
    assert trace.deepmimo(dataset, [[0], [1], [2]]).values == pytest.approx(np.array([[3.0], [4.0], [0.0]]))
    assert trace.deepmimo(dataset, blocks=True).values[0, 0] == pytest.approx([2.0, 4.0])


def test_nyusim(tmp_path):
    path = tmp_path / "drops.txt"
    path.write_text("T-R Separation (m)\tPath Loss (dB)\n10\t100\n20\t110\n30\t120\n40\t130\n")
    assert trace.nyusim(path).values == pytest.approx(np.array([[1e-10, 1e-11, 1e-12, 1e-13]]))
    assert trace.nyusim(path, devices=2).values == pytest.approx(np.array([[1e-10, 1e-11], [1e-12, 1e-13]]))
    with pytest.raises(ValueError, match="4 rows cannot be shared among 3 devices"):
        trace.nyusim(path, devices=3)
    with pytest.raises(ValueError, match="line 1: has no column 'PL'"):
        trace.nyusim(path, "PL")


def test_ghent_and_hsdpa(tmp_path):
    path = tmp_path / "report_foot_0001.log"
    # Intervals of 1, 2 and 1 s with 1000, 4000 and 500 bytes: 8, 16 and 4 kbit/s.
    path.write_text(
        "1453120809000 1000 51.03 3.71 1000 1000\n"
        "1453120811000 3000 51.03 3.71 4000 2000\n"
        "1453120812000 4000 51.03 3.71 500 1000\n"
    )
    got = trace.ghent([path])
    assert got.kind == "rate_bps" and got.dt_s == 1.0
    assert got.values.tolist() == [[8e3], [16e3], [16e3], [4e3]]
    assert trace.hsdpa([path], dt_s=2.0).values.tolist() == [[8e3], [16e3]]
    path.write_text("0 1000 0 0 5 1000\n0 900 0 0 5 1000\n")
    with pytest.raises(ValueError, match="row 2: its time is not above the one before"):
        trace.ghent([path])
    path.write_text("0 1000 0 0 5\n")
    with pytest.raises(ValueError, match="line 1: has 5 columns, but must have 6"):
        trace.ghent([path])


def test_ucc(tmp_path):
    header = "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,"
    header += "DL_bitrate,UL_bitrate,State\n"
    row = "2018.02.12_16.14.0{},-8.4,51.8,0,A,2,LTE,-95,-13,{},10,-,100,{},{}\n"
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    lines = [row.format(0, 1.0, 5, "D"), row.format(1, "-", "-", "I"), row.format(2, -3.0, 9, "D")]
    one.write_text(header + "".join(lines))
    two.write_text(header + "".join(lines[::2]))
    assert trace.ucc([one]).values.tolist() == [[5e3], [5e3], [9e3]]
    assert trace.ucc([one, two]).values.tolist() == [[5e3, 5e3], [5e3, 9e3]]
    assert trace.ucc([one], active=True).values.tolist() == [[5e3], [9e3]]
    snr = trace.ucc([one], "SNR")
    assert snr.kind == "snr_db" and snr.values.tolist() == [[1.0], [1.0], [-3.0]]
    one.write_text(header + row.format(0, 1.0, "x", "D"))
    with pytest.raises(ValueError, match="line 2: 'x' must be a number"):
        trace.ucc([one])


def test_lumos5g(tmp_path):
    path = tmp_path / "Lumos5G-v1.0.csv"
    path.write_text(
        "run_num,seq_num,latitude,longitude,Throughput,mobility_mode\n"
        "1,2,44.9,-93.2,20.5,walking\n1,1,44.9,-93.2,10,walking\n2,1,44.9,-93.2,300,driving\n"
        "2,2,44.9,-93.2,0,driving\n2,3,44.9,-93.2,7,driving\n"
    )
    assert trace.lumos5g(path).values.tolist() == [[10e6, 300e6], [20.5e6, 0.0]]


def test_mahimahi(tmp_path):
    path = tmp_path / "cell.up"
    # Opportunities in [0, 1) s: 3, in [1, 2) s: 1; that of 2000 ms is in an incomplete interval.
    path.write_text("0\n10\n999\n1000\n2000\n")
    assert trace.mahimahi([path]).values.tolist() == [[36e3], [12e3]]
    assert trace.mahimahi([path], dt_s=2.0).values.tolist() == [[24e3]]
    path.write_text("5\n4\n")
    with pytest.raises(ValueError, match="that do not fall"):
        trace.mahimahi([path])


def test_fedscale(tmp_path):
    capacities = {
        2: {"computation": 30.0, "communication": 100.0},
        1: {"computation": 162.0, "communication": 5648.1},
    }
    assert trace.fedscale(capacities).values == pytest.approx(np.array([[5648.1e3, 100e3]]))
    path = tmp_path / "client_device_capacity"
    path.write_bytes(pickle.dumps(capacities))
    assert trace.fedscale(path).values == pytest.approx(np.array([[5648.1e3, 100e3]]))
    path.write_bytes(pickle.dumps(Path("x")))
    with pytest.raises(pickle.UnpicklingError, match="must hold plain numbers alone"):
        trace.fedscale(path)


def test_a_matlab_file_names_the_package_that_it_needs(tmp_path):
    path = tmp_path / "coeff.mat"
    for version, package in (("5.0", "scipy"), ("7.3", "h5py")):
        path.write_bytes(f"MATLAB {version} MAT-file".encode().ljust(128))
        if importlib.util.find_spec(package) is None:
            with pytest.raises(ImportError, match=f"pip install {package}"):
                trace.matlab(path, "coeff")
    if importlib.util.find_spec("scipy") is not None:
        importlib.import_module("scipy.io").savemat(path, {"coeff": np.array([[1 + 2j, 3]])})
        assert trace.matlab(path, "coeff").tolist() == [[1 + 2j, 3]]


def test_files_become_a_trace_by_the_command(tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("a.up", "b.up")]
    (tmp_path / "a.up").write_text("0\n100\n600\n1000\n")
    (tmp_path / "b.up").write_text("300\n999\n1000\n")
    out = str(tmp_path / "rates.npz")
    assert trace.main(["mahimahi", *files, out, "--dt-s", "0.5"]) == 0
    assert capsys.readouterr().out == f"{out}: rate_bps, 2 rows of 2 devices\n"
    with np.load(out) as archive:
        # 1500 bytes in half a second are 24 kbit/s.
        assert archive["rate_bps"].tolist() == [[48_000, 24_000], [24_000, 24_000]]
    assert trace.main(["ghent", files[0], str(tmp_path / "x.npz")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    for wrong in (
        ["nyusim", *files, out],
        ["ucc", files[0], out, "--dt-s", "2"],
        ["mahimahi", files[0], out, "--dt-s", "0"],
    ):
        with pytest.raises(SystemExit) as stop:
            trace.main(wrong)
        assert stop.value.code == 2
