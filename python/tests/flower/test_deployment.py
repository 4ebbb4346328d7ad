"""Real federated learning: a SuperLink, four SuperNodes, TLS, separate processes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import ssl
import sys

from pathlib import Path

import numpy as np
import pytest
import tomli
from federation import ADDRESS, Federation, Process, free_port, offline, wait_for

import fedlink

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[2] / "examples" / "flower-mnist"
PAGE = HERE.parents[2] / "docs" / "flower.md"
sys.path.append(str(EXAMPLE))
import task  # noqa: E402

NODES = 4
ROUNDS = 3

#: An evaluation by the nodes, for an app that has none.
EVALUATION = """

@app.evaluate()
def evaluate(message, context):
    from flwr.app import MetricRecord, RecordDict

    metrics = MetricRecord({"num-examples": 1, "own": float(context.node_config["partition-id"])})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
"""
STATED_ACCURACY = 0.7


@pytest.fixture(scope="module")
def hold(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("hold")


@pytest.fixture(scope="module")
def federation(tmp_path_factory, hold):
    federation = Federation(tmp_path_factory.mktemp("federation"), NODES, FEDLINK_TEST_HOLD=str(hold))
    yield federation
    federation.end()


def simulated(rounds: int, **change) -> fedlink.Result:
    """The run of the example in one process."""
    settings = tomli.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    return fedlink.simulate(task.config(settings | {"rounds": rounds} | change), progress=False)


def check_that_it_equals_simulate(out: Path, result: dict, rounds: int, **change) -> None:
    reference = simulated(rounds, **change)
    scheduled = [
        (record["round"], node["device"])
        for record in result["rounds"]
        for node in record["nodes"]
        if node["outcome"] == "sent"
    ]
    sent = reference.transmissions
    assert scheduled == sorted(zip(sent["round"].tolist(), sent["device"].tolist()))
    assert fedlink.digest(np.load(out / "theta.npy")) == reference.theta_digest
    assert result["digest"] == reference.digest
    assert result["accuracy"][str(rounds)] == reference.summary["final_accuracy"]


def test_training_over_tls_reaches_the_stated_accuracy_and_the_model_of_simulate_to_the_bit(
    federation, tmp_path
):
    out = tmp_path / "out"
    result = federation.result(
        federation.run(EXAMPLE, "train", rounds=ROUNDS, timeout=600, out=str(out)), out
    )
    check_that_it_equals_simulate(out, result, ROUNDS)
    assert result["accuracy"][str(ROUNDS)] >= STATED_ACCURACY

    # The uploads of each node, by the nodes' own logs: a hello and a report are a few numbers, payloads are
    # those of the record.
    payloads = [[] for _ in range(NODES)]
    for record in result["rounds"]:
        for node in record["nodes"]:
            if node["payload_bytes"] is not None:
                payloads[node["device"]].append(node["payload_bytes"])

    def size_of(*names: str) -> int:
        return sum(len(name) + 8 for name in names)

    hello = size_of("version", "device", "evaluates")
    report = size_of("answers", "seconds", "loss", "examples") + size_of("train_loss", "num-examples")
    around = len("payload") + size_of("level", "bits", "entries")
    for number, node in enumerate(federation.nodes):
        outgoing = [int(size) for size in re.findall(r"Outgoing message size: (\d+) bytes", node.log)]
        expected = [hello] + [report] * ROUNDS + [around + size for size in payloads[number]]
        assert sorted(outgoing) == sorted(expected), number


def test_only_the_right_certificate_is_accepted(federation):
    def talk(context: ssl.SSLContext) -> str:
        with socket.create_connection((ADDRESS, federation.port), 10) as plain:
            with context.wrap_socket(plain, server_hostname=ADDRESS) as secure:
                return secure.version()

    assert talk(ssl.create_default_context(cafile=federation.authority)).startswith("TLSv1.")
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(ssl.create_default_context())
    with socket.create_connection((ADDRESS, federation.port), 10) as plain:
        plain.settimeout(10)
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert not plain.recv(64).startswith(b"HTTP/1.1 200")
        except ConnectionResetError:
            pass


def test_a_node_that_is_killed_between_the_phases_is_left_out_and_the_run_continues(
    federation, hold, tmp_path
):
    app, out = tmp_path / "app", tmp_path / "out"
    shutil.copytree(EXAMPLE, app)
    with (app / "client_app.py").open("a") as client:
        client.write(EVALUATION)
    shutil.copy(HERE / "held_server_app.py", app)
    project = app / "pyproject.toml"
    project.write_text(project.read_text().replace('"server_app:app"', '"held_server_app:app"'))
    process = federation.run(app, "killed", rounds=2, timeout=600, out=str(out))

    def held() -> bool:
        if process.popen.poll() is not None:
            pytest.fail(f"the run ended before its first upload\n{federation.logs()}")
        return (hold / "scheduled.json").exists()

    wait_for("the first upload", held)
    victim, survivor = json.loads((hold / "scheduled.json").read_text())
    federation.nodes[victim].signal(signal.SIGKILL)
    federation.nodes[victim].popen.wait(10)
    (hold / "go-on").touch()
    first, second = federation.result(process, out)["rounds"]

    outcomes = {node["device"]: (node["phase"], node["outcome"]) for node in first["nodes"]}
    assert outcomes[victim] == ("upload", "absent") and outcomes[survivor] == ("upload", "sent")
    # A node that had trained sent in its place, and the log names the device that the server waited for.
    (substitute,) = [node for node in first["nodes"] if node["substitute_for"] is not None]
    assert substitute["substitute_for"] == victim and substitute["outcome"] == "sent"
    assert f"waiting for device {victim} (" in process.log
    # Evaluation uses the nodes that are there, too.
    assert f"configure_evaluate: {NODES - 1} of {NODES - 1} nodes" in process.log
    sent = [node["device"] for node in second["nodes"] if node["outcome"] == "sent"]
    assert len(sent) == 2 and victim not in sent
    assert np.isfinite(np.load(out / "theta.npy")).all()


@pytest.fixture(scope="module")
def simulation(tmp_path_factory):
    federation = Federation(tmp_path_factory.mktemp("simulation"), 0, "--simulation")
    yield federation
    federation.end()


@pytest.mark.parametrize(
    "policy, scheme, budget",
    [("bn2-c", "d-sgd", "formula"), ("round-robin", "stc", "formula"), ("random", "d-sgd", "wire")],
)
def test_flowers_simulation_runtime_computes_the_same(simulation, tmp_path, policy, scheme, budget):
    out, change = tmp_path / "out", {"policy": policy, "scheme": scheme, "budget": budget}
    nodes = f"num-supernodes={NODES} client-resources-num-cpus=1"
    process = simulation.run(
        EXAMPLE,
        f"simulation-{policy}",
        "--federation-config",
        nodes,
        rounds=3,
        timeout=600,
        out=str(out),
        **change,
    )
    check_that_it_equals_simulate(out, simulation.result(process, out), 3, **change)


def test_the_quick_start_runs_as_printed_in_the_page(tmp_path):
    section = PAGE.read_text(encoding="utf-8").split("## Quick start")[1].split("\n## ")[0]
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S))
    # Only the ports, which may be taken, the number of rounds and the patience are others.
    for port in ("8000", "9094"):
        assert port in script
        script = script.replace(port, str(free_port()))
    app = tmp_path / "examples" / "flower-mnist"
    shutil.copytree(EXAMPLE, app)
    project = app / "pyproject.toml"
    short = project.read_text().replace("rounds = 10", "rounds = 1").replace("timeout = 60", "timeout = 600")
    project.write_text(short)
    home = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    process = Process("quick-start", ["bash", "-euc", f"cd {tmp_path}\n{script}"], offline() | home, tmp_path)
    try:
        wait_for("the end of the quick start", lambda: process.popen.poll() is not None)
    finally:
        process.end()
    assert process.popen.returncode == 0, process.log[-4000:]
    accuracy = simulated(1).summary["final_accuracy"]
    assert f"MetricRecord: {{'accuracy': {accuracy}, " in process.log, process.log[-4000:]
    assert not (tmp_path / ".flwr").exists()
