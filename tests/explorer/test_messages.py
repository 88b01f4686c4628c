"""Messages between page and Python: they arrive as they were sent, or are refused."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from manifoldry.explorer.messages import MessageError, assemble, dismantle, pack, unpack

DTYPES = ("u1", "u2", "u4", "i4", "f4", "f8")
COMMON = {"deadline": None, "database": None, "derandomize": True, "max_examples": 80}

finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.none() | st.booleans() | st.integers() | st.text() | finite
numbers = st.sampled_from(DTYPES).flatmap(lambda name: arrays(np.dtype(name), st.integers(0, 9)))
keys = st.text().filter(lambda key: key != "$array")
messages = st.recursive(
    plain | numbers,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def same(a, b):
    """Whether a message has arrived as it was sent."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def frame(header, rest=b""):
    """A frame with any header."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = struct.pack("<I", len(head)) + head
    return start + bytes(-len(start) % 8) + rest


@settings(**COMMON)
@given(messages)
def test_a_message_arrives_as_it_was_sent(message):
    assert same(message, unpack(pack(message)))
    header, buffers = dismantle(message)
    json.dumps(header, allow_nan=False)
    assert same(message, assemble(header, [memoryview(each) for each in buffers]))


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_every_type(name):
    array = np.arange(5).astype(name)
    (found,) = unpack(pack([array]))
    assert found.dtype == np.dtype(name)
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable


def test_the_layout_is_that_of_the_page():
    """Written out by hand from frontend/src/protocol.ts: length, header, buffers at 8 bytes."""
    sent = pack({"a": np.array([1, 2, 3], dtype=np.uint8), "b": np.array([1.5], dtype=np.float32)})
    (length,) = struct.unpack("<I", sent[:4])
    header = json.loads(sent[4 : 4 + length])
    assert header == {
        "message": {"a": {"$array": 0, "dtype": "u1"}, "b": {"$array": 1, "dtype": "f4"}},
        "sizes": [3, 4],
    }
    first = math.ceil((4 + length) / 8) * 8
    assert sent[first : first + 3] == b"\x01\x02\x03"
    assert sent[first + 8 : first + 12] == struct.pack("<f", 1.5)
    assert len(sent) == first + 16


def test_arrays_of_other_byte_order_and_layout():
    swapped = np.arange(6, dtype=">f8").reshape(2, 3).T
    (found,) = unpack(pack([swapped]))
    np.testing.assert_array_equal(found, [0, 3, 1, 4, 2, 5])


def test_numbers_that_json_does_not_have_become_null():
    values = [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), np.int64(3)]
    assert unpack(pack({"values": values})) == {"values": [None] * 5 + [3]}
    array = np.array([np.nan, np.inf])
    np.testing.assert_array_equal(unpack(pack(array)), array)  # arrays keep them


@pytest.mark.parametrize("name", ["i8", "u8", "f2", "c8", "U3", "O", "M8[s]"])
def test_arrays_of_other_types_are_not_sent(name):
    with pytest.raises(TypeError, match="cannot be sent"):
        pack(np.zeros(2, dtype=name))


@pytest.mark.parametrize(
    "array",
    [
        {"$array": 1, "dtype": "u1"},
        {"$array": -1, "dtype": "u1"},
        {"$array": "0", "dtype": "u1"},
        {"$array": None, "dtype": "u1"},
        {"$array": 0},
        {"$array": 0, "dtype": "i8"},
        {"$array": 0, "dtype": "O"},
        {"$array": 0, "dtype": ["u1"]},
        {"$array": 0, "dtype": {}},
        {"$array": 0, "dtype": "f4"},  # of 3 bytes
    ],
)
def test_arrays_that_are_not_there_or_of_the_wrong_type(array):
    with pytest.raises(MessageError, match="an array of the message"):
        unpack(frame({"message": [array], "sizes": [3]}, b"abc"))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x01",
        b"\xff\xff\xff\xff",
        frame(b"not json"),
        frame(b"\xff\xfe"),
        frame([]),
        frame("text"),
        frame({}),
        frame({"message": 1}),
        frame({"sizes": []}),
        frame({"message": 1, "sizes": 3}),
        frame({"message": 1, "sizes": [None]}),
        frame({"message": 1, "sizes": ["x"]}),
        frame(b'{"message": 1, "sizes": [Infinity]}'),
        frame(b'{"message": 1, "sizes": [NaN]}'),
        frame(b'{"message": 1, "sizes": [-1]}'),
        frame({"message": 1, "sizes": [2**63]}),
        frame({"message": 1, "sizes": [10**30]}),
        frame({"message": 1, "sizes": [1]}),
        frame({"message": 1, "sizes": [8, 8]}, bytes(8)),
        frame(b"[" * 100_000),
        frame(b'{"sizes": [], "message": ' + b"[" * 700 + b"]" * 700 + b"}"),
        frame(b'{"sizes": [], "message": ' + b'{"a":' * 400 + b"1" + b"}" * 401),
    ],
)
def test_damaged_frames_are_refused(sent):
    with pytest.raises(MessageError):
        unpack(sent)


def unpacked_or_refused(sent):
    try:
        unpack(sent)
    except MessageError as error:
        return str(error)
    return ""


@settings(**COMMON)
@given(messages, st.data())
def test_a_truncated_frame_is_refused(message, data):
    """Unless only padding is missing."""
    sent = pack(message)
    _, buffers = dismantle(message)
    padding = -len(buffers[-1]) % 8 if buffers else 7
    end = data.draw(st.integers(0, len(sent) - padding - 1))
    if any(buffers):
        with pytest.raises(MessageError):
            unpack(sent[:end] if buffers[-1] else sent[: end - 8])
    else:
        assert len(unpacked_or_refused(sent[:end])) < 100


@settings(**COMMON)
@given(messages, st.data())
def test_changed_bytes_never_do_more_than_be_refused(message, data):
    sent = bytearray(pack(message))
    for _ in range(data.draw(st.integers(1, 4))):
        sent[data.draw(st.integers(0, len(sent) - 1))] = data.draw(st.integers(0, 255))
    assert len(unpacked_or_refused(bytes(sent))) < 200


@settings(**COMMON)
@given(st.binary(max_size=60))
def test_garbage_is_refused(sent):
    """A frame of at most 60 bytes that is accepted has a header, which is not drawn by chance."""
    assert unpacked_or_refused(sent)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$array", "dtype", "message", "sizes"]), inner)
    ),
    max_leaves=8,
)


@settings(**COMMON)
@given(json_values, json_values, st.binary(max_size=40))
def test_any_header_is_read_or_refused(message, sizes, rest):
    text = json.dumps({"message": message, "sizes": sizes}).encode()  # with NaN and Infinity
    assert len(unpacked_or_refused(frame(text, rest))) < 300


def test_a_header_of_many_megabytes_is_refused():
    """Whose JSON would take far more memory than the message; arrays are not in the header."""
    most = 2**22
    around = len(json.dumps({"message": "", "sizes": []}))
    assert unpack(frame({"message": "x" * (most - around), "sizes": []})) == "x" * (most - around)
    with pytest.raises(MessageError, match="has no header"):
        unpack(frame({"message": "x" * (most - around + 1), "sizes": []}))
    large = np.zeros(2 * most, dtype=np.uint8)
    np.testing.assert_array_equal(unpack(pack([large]))[0], large)
