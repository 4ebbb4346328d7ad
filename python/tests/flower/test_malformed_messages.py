"""Messages that no fedlink wrote: each is refused in a few words, by both sides."""

import json
import math

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from fuzz_protocol import ENCODER, fuzz

from fedlink.flower import protocol
from fedlink.flower.protocol import ProtocolError


def test_four_thousand_random_and_mutated_messages_give_a_value_or_a_protocol_error():
    assert fuzz(0, 4000) == 4000


def npy(header: str, content: bytes) -> Array:
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content
    return Array(dtype="float32", shape=(3,), stype="numpy.ndarray", data=data)


@pytest.mark.parametrize(
    "array",
    [
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }", bytes(12)),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", bytes(12)),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -3), }", bytes(12)),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("(" * 200, bytes(12)),
        Array(dtype="float32", shape=(3,), stype="numpy.ndarray", data=b""),
        Array(dtype="float32", shape=(3,), stype="torch.Tensor", data=Array(np.zeros(3)).data),
    ],
)
def test_an_array_whose_header_contradicts_its_bytes_is_refused(array):
    with pytest.raises(ProtocolError, match="an array cannot be read"):
        protocol.floating(ArrayRecord({"0": array}))


@pytest.mark.parametrize(
    "encoder",
    [
        None, 3, b"{}", "", "{", "null", "[]", "[" * 100_000, "{}", '{"compress": {}, "custom": {}}',
        json.dumps({**ENCODER, "custom": []}), json.dumps({**ENCODER, "compress": {"scheme": ["d-sgd"]}}),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_configuration_of_compression_that_cannot_be_one_is_refused(encoder):
    with pytest.raises(ProtocolError, match="encoder must be a configuration"):
        protocol.encoder_of({"encoder": encoder})
    assert protocol.encoder_of({"encoder": json.dumps(ENCODER)})[1] is None


VALUES = [None, True, "1", [1.0], math.nan, math.inf, 2**1030, 10**5000, b"1"]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_that_is_no_finite_number_is_refused_and_named_in_a_few_words(value):
    for read in (protocol.finite, protocol.real):
        with pytest.raises(ProtocolError, match="bits must be a finite number") as refused:
            read({"bits": value}, "bits")
        assert len(str(refused.value)) < 200
    with pytest.raises(ProtocolError):
        protocol.answers({"answers": [value]}, ["norm"])


def test_a_long_value_is_shortened_in_the_refusal():
    for read in (
        lambda: protocol.whole({"device": "x" * 10**6}, "device", 0, 3),
        lambda: protocol.answers({"answers": [1.0] * 10**6}, ["norm"]),
        lambda: protocol.check_version({"version": b"x" * 10**6}, "the node"),
        lambda: protocol.asks_of({"asks": "x" * 10**6}),
    ):
        with pytest.raises(ProtocolError) as refused:
            read()
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("case", [165178])
def test_cases_that_were_findings_are_none(case):
    """165178: a training loss beyond single precision."""
    assert fuzz(case, 1) == 1


def test_an_update_whose_norm_is_no_number_of_32_bits_is_refused():
    largest = float(np.finfo(np.float32).max)
    protocol.check_finite(np.array([largest, 0.0], np.float32))
    for update in ([largest, largest], [math.nan, 0.0], [math.inf, 0.0]):
        with pytest.raises(ProtocolError, match="training diverged"):
            protocol.check_finite(np.array(update, np.float32))


def test_a_model_is_one_record_of_arrays():
    model = ArrayRecord({"0": Array(np.zeros(3, np.float32))})
    assert protocol.only_model(RecordDict({"arrays": model, "config": ConfigRecord()})) == model
    for content in (RecordDict({"metrics": MetricRecord()}), RecordDict({"a": model, "b": model})):
        with pytest.raises(ProtocolError, match="one ArrayRecord"):
            protocol.only_model(content)
