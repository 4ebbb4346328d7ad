"""Devices that are bound to keys: a second claimant is rejected by name."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fake_grid import FakeGrid
from test_failures import grid_of, mean_of, outcomes, run

from fedlink.flower import Outcome, strategy
from fedlink.flower.identity import Identities, fingerprint
from fedlink.flower.protocol import payload_limit


def key(encoding: Encoding = Encoding.PEM, secret: int = 1) -> bytes:
    """The public key of a secret, in PEM or in OpenSSH's form."""
    form = PublicFormat.OpenSSH if encoding is Encoding.OpenSSH else PublicFormat.SubjectPublicKeyInfo
    return ec.derive_private_key(secret, ec.SECP384R1()).public_key().public_bytes(encoding, form)


def keyed(grid: FakeGrid) -> FakeGrid:
    """Node 100 + m has the key of secret 1 + m."""
    grid.keys = {node: key(secret=node - 99) for node in grid.nodes}
    return grid


TABLE = {device: key(Encoding.OpenSSH, device + 1).decode() for device in range(5)}


def test_a_fingerprint_does_not_depend_on_the_form_of_the_key(tmp_path):
    assert fingerprint(key()) == fingerprint(key(Encoding.OpenSSH))
    assert fingerprint(key()) != fingerprint(key(secret=2))
    (tmp_path / "0.pub").write_bytes(key(Encoding.OpenSSH))
    assert Identities.read({0: tmp_path / "0.pub"}, 1).of_device == {0: fingerprint(key())}


@pytest.mark.parametrize("keys", [TABLE, "first-come"])
def test_every_device_takes_part_with_its_own_key(keys):
    _, theta, _ = run(keyed(grid_of()), keys=keys)
    assert (theta == mean_of(3, 4)).all()


def test_a_node_with_the_key_of_another_device_is_rejected_by_a_table():
    grid = keyed(grid_of())
    # A registered node says that it is device 4, beside the real one.
    grid.add(200, grid.nodes[104].app, partition_id=4)
    grid.keys[200] = key(secret=2)
    strategy, theta, _ = run(grid, keys=TABLE, rounds=2)
    claimant = next(node for node in strategy.records[0].nodes if node.node_id == 200)
    assert claimant.outcome is Outcome.REJECTED and "device 4 is bound to the key" in claimant.reason
    assert (theta == 2 * mean_of(3, 4)).all()
    assert [node.node_id for node in strategy.records[1].nodes if node.device == 4] == [104]


def test_the_first_node_binds_its_device_and_a_second_claimant_is_logged_and_rejected(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr("fedlink.flower.nodes.log", lambda level, text, *values: lines.append(text % values))
    grid = keyed(grid_of())
    grid.between = lambda: grid.nodes.get(200) or claim()

    def claim() -> None:
        grid.add(200, grid.nodes[104].app, partition_id=4)
        grid.keys[200] = key(secret=77)

    strategy, theta, _ = run(grid, rounds=3, keys="first-come")
    assert (theta == 3 * mean_of(3, 4)).all()
    assert len([line for line in lines if line.startswith("node 200 is rejected: device 4 is bound")]) == 1


def test_without_keys_a_restarted_node_with_a_new_key_is_its_device_again():
    grid = keyed(grid_of())

    def restart() -> None:
        if 200 not in grid.nodes:
            old = grid.nodes.pop(104)
            grid.add(200, old.app, partition_id=4)
            grid.keys[200] = key(secret=77)

    grid.between = restart
    strategy, _, _ = run(grid, rounds=2)
    assert outcomes(strategy, 2)[100] is Outcome.SENT


def test_a_node_that_has_no_key_is_rejected_where_devices_are_bound():
    grid = keyed(grid_of())
    del grid.keys[104]
    strategy, _, _ = run(grid, keys="first-come")
    node = next(node for node in strategy.records[0].nodes if node.node_id == 104)
    assert node.outcome is Outcome.REJECTED and "knows no key of it" in node.reason


def test_one_key_is_one_device():
    grid = keyed(grid_of())
    grid.keys[104] = grid.keys[103]
    strategy, _, _ = run(grid, keys="first-come")
    node = next(node for node in strategy.records[0].nodes if node.node_id == 104)
    assert "is that of device 3, and it claims to be device 4" in node.reason


def test_a_resumed_run_keeps_the_keys_of_its_devices(tmp_path):
    grid = keyed(grid_of())
    rounds: list[int] = []
    grid.between = lambda: rounds.append(1) or (len(rounds) == 2 and stop())

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(grid, rounds=3, keys="first-come", records=tmp_path)
    written = json.loads((tmp_path / "keys.json").read_text())
    assert written == {str(m): fingerprint(key(secret=m + 1)) for m in range(5)}
    grid = keyed(grid_of())
    grid.keys[104] = key(secret=77)
    strategy, _, _ = run(grid, rounds=3, keys="first-come", records=tmp_path, resume=True)
    assert "device 4 is bound to the key" in strategy.nodes.problems[104]


@pytest.mark.parametrize(
    "keys, problem",
    [
        ("both", 'must be "first-come" or a table'),
        ({5: TABLE[0]}, "there is no device 5; devices are 0 to 4"),
        ({0: "ssh-rsa nonsense"}, "device 0: it is no public key"),
        ({0: TABLE[0], 1: TABLE[0]}, "device 1 has the key of another device"),
    ],
)
def test_a_table_of_keys_that_cannot_hold_is_refused(keys, problem):
    with pytest.raises(ValueError, match=problem):
        run(grid_of(), keys=keys)


def test_the_log_states_the_worth_of_reports(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(strategy, "log", lambda level, text, *values: lines.append(text % values))
    for policy, words in [("bn2", "the norm is a claim"), ("bn2-c", "is checked against the sent update")]:
        lines.clear()
        run(grid_of(), policy=policy)
        assert any(line.startswith("reports: ") and words in line for line in lines)


def test_a_payload_beyond_the_announced_limit_is_rejected():
    from test_failures import UPLOAD, payload, replaced

    grid = grid_of()
    grid.nodes[104].on_reply[UPLOAD] = replaced(payload(b"\0" * (payload_limit(40) + 1)))
    strategy, _, _ = run(grid)
    node = next(node for node in strategy.records[0].nodes if node.device == 4)
    assert (
        node.outcome is Outcome.REJECTED
        and "its payload has 4417 bytes, and 4416 are the most" in node.reason
    )
