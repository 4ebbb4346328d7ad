"""A second decoder of the wire format, written from docs/wire-format.md alone.

    python3 decode.py VECTORS.json

decodes every payload in a file of test vectors and compares.
"""

import json
import math
import struct
import sys

SLOTS = 2**32
ONE = 2**63


class Invalid(Exception):
    """The payload is no update of its format."""


class Stack:
    """The number that a payload is, through its window."""

    def __init__(self, payload):
        if not payload:
            raise Invalid("empty")
        if payload[0] == 0:
            raise Invalid("padded")
        top = len(payload) if len(payload) < 8 else 8 - len(payload) % 2
        self.x = int.from_bytes(payload[:top], "big")
        rest = payload[top:]
        self.words = [int.from_bytes(rest[i : i + 2], "big") for i in range(0, len(rest), 2)]
        self.words.reverse()

    @property
    def slot(self):
        return self.x % SLOTS

    def take(self, start, end):
        assert 0 <= start <= self.slot < end <= SLOTS
        self.x = (end - start) * (self.x // SLOTS) + self.slot - start
        while self.x < 2**48 and self.words:
            self.x = 2**16 * self.x + self.words.pop()

    def ask(self, y):
        yes = self.slot < y
        self.take(*((0, y) if yes else (y, SLOTS)))
        return yes


def missing(stack, layout, d, q):
    if layout == "each":
        y = w = 2**24
    else:
        code = {"shared": 0, "signs": 1, **{name: b for name, (b, _) in CODED.items()}}[layout]
        theta = SLOTS * q // (2**code * (d - q + 1)) + 1
        y = min(theta, 2**31)
        w = min(theta, SLOTS - SLOTS // (math.isqrt(d) + 1))
    if not stack.ask(y):
        return 0
    m, u = 1, w
    for digit in range((q - 1).bit_length()):
        m += stack.ask(SLOTS * u // (SLOTS + u) + 1) << digit
        u = u * u // SLOTS + 1
    if m > q:
        raise Invalid("more entries are missing than there can be")
    return m


def indices(stack, d, k):
    if k == 0:
        return []
    exact = min(d, max(1024, -(-d // 64)))
    stride = 8
    while stride < 4 * (d // k) and stride < 1024:
        stride *= 2

    plain = [ONE]
    for _ in range(stride):
        plain.append(plain[-1] * (ONE * (d - k) // d) // ONE)

    found, p, r = [], 0, k
    while r > 0:
        n = d - p
        if r == n:
            found.extend(range(p, d))
            break
        h = min(stride, n - r)
        if p < d - exact:
            h = min(h, d - exact - p)
            empty = plain
        else:
            empty = exact_law(n, r)
        starts = (g + (SLOTS - stride - 1) * (ONE - f) // ONE for g, f in enumerate(empty))
        start = next(starts)
        for g in range(h + 1):
            end = next(starts) if g < h else SLOTS
            if stack.slot < end:
                break
            start = end
        stack.take(start, end)
        p += g
        if g < h:
            found.append(p)
            p += 1
            r -= 1
    return found


def exact_law(n, r):
    f = ONE
    while True:
        yield f
        f = f * (ONE - r * (ONE // n)) // ONE
        n -= 1


def signs(stack, count):
    """For each of so many entries, whether it is negative."""
    negative = []
    while len(negative) < count:
        n = min(32, count - len(negative))
        slot = stack.slot
        width = 2 ** (32 - n)
        stack.take(slot // width * width, (slot // width + 1) * width)
        negative.extend(slot >> (31 - i) & 1 == 1 for i in range(n))
    return negative


def decode(layout, d, q, payload):
    """The indices and the bits of the values of an update."""
    if q == 0:
        if payload:
            raise Invalid("there is nothing to send")
        return [], ([0] if layout == "shared" else [])
    stack = Stack(payload)
    if not stack.ask(SLOTS - 2**24):
        raise Invalid("another version")
    k = q - missing(stack, layout, d, q)
    found = indices(stack, d, k)
    values = []
    if layout == "each":
        for _ in range(k - 1):
            values.append(stack.slot)
            stack.take(stack.slot, stack.slot + 1)
    negative = signs(stack, k - 1) if layout == "signs" else []
    if stack.words or not SLOTS <= stack.x < 2 * SLOTS:
        raise Invalid("the payload and its update do not end together")
    first = stack.x - SLOTS
    if layout == "shared" or k > 0:
        values.insert(0, first)
    elif first != 0:
        raise Invalid("a value without an entry")
    if layout == "signs" and k > 0:
        magnitude = first % 2**31
        if magnitude == 0:
            raise Invalid("a magnitude of zero")
        values.extend(magnitude + (2**31 if minus else 0) for minus in negative)
    for bits in values:
        if not math.isfinite(struct.unpack(">f", bits.to_bytes(4, "big"))[0]):
            raise Invalid("a value is not finite")
    return found, values


# Of coded layouts: the bits of a code and those that are fixed.
CODED = {"half": (16, 9), "exponent": (9, 0), "levels-2": (2, 64), "levels-4": (3, 128)}


def f32(value):
    return int.from_bytes(struct.pack(">f", value), "big")


def real(bits):
    return struct.unpack(">f", bits.to_bytes(4, "big"))[0]


def end(stack):
    if stack.words or not SLOTS <= stack.x < 2 * SLOTS:
        raise Invalid("the payload and its update do not end together")
    return stack.x - SLOTS


def digits(stack, count):
    """So many bits, 32 to a symbol, as a string."""
    return "".join("1" if one else "0" for one in signs(stack, count))


def decode_packed(layout, payload):
    text = bin(int.from_bytes(payload, "big"))[3:]
    if layout == "rand-k":
        return [int(text[i : i + 32], 2) for i in range(0, len(text), 32)]
    first = int(text[:32], 2)
    return [first] + [first % 2**31 + 2**31 * int(bit) for bit in text[32:]]


def decode_coded(layout, d, q, payload):
    stack = Stack(payload)
    assert stack.ask(SLOTS - 2**24)
    k = q - missing(stack, layout, d, q)
    found = indices(stack, d, k)
    width, fixed = CODED[layout]
    length = fixed + width * k
    text = digits(stack, max(0, length - 32))
    text = f"{end(stack):032b}"[: min(32, length)] + text
    assert len(text) == length
    codes = [int(text[i : i + width], 2) for i in range(fixed, length, width)]
    if layout == "exponent":
        return found, [code << 23 for code in codes]
    if layout == "half":
        e = int(text[:9], 2) - 200
        return found, [
            f32(math.ldexp(struct.unpack(">e", code.to_bytes(2, "big"))[0], e)) for code in codes
        ]
    levels = [int(text[i : i + 32], 2) for i in range(0, fixed, 32)]
    assert levels == sorted(levels)
    return found, [levels[code % len(levels)] + (code // len(levels) << 31) for code in codes]


def decode_grid(d, payload):
    stack = Stack(payload)
    assert stack.ask(SLOTS - 2**24)
    k = next(k for k in range(d + 1) if stack.slot < SLOTS * (k + 1) // (d + 1))
    stack.take(SLOTS * k // (d + 1), SLOTS * (k + 1) // (d + 1))
    found = indices(stack, d, k)
    # Whole roots: 2**(i/4) rounded down is the whole fourth root of 2**i.
    steps = sorted({math.isqrt(math.isqrt(2**i)) for i in range(61)})[int(digits(stack, 6), 2)]
    a = int(digits(stack, 8), 2)
    negative = signs(stack, k)
    # 2**(32 - i/16) rounded down, by four roots of a whole number.
    root = 2 ** (32 * 16 - a % 16)
    for _ in range(4):
        root = math.isqrt(root)
    values = []
    for minus in negative:
        u, level = SLOTS - root // 2 ** (a // 16), 1
        for digit in range((steps - 1).bit_length()):
            level += stack.ask(SLOTS * u // (SLOTS + u) + 1) << digit
            u = u * u // SLOTS + 1
        if level > steps:
            raise Invalid("a level above s")
        values.append(-level if minus else level)
    unit = real(end(stack))
    return found, [f32(unit * level) for level in values]


def check_scheme(case):
    layout, payload = case["layout"], bytes.fromhex(case["payload"])
    # The indices of packed entries are not sent.
    if layout in ("rand-k", "sign"):
        found, values = case["indices"], decode_packed(layout, payload)
    elif layout == "grid":
        found, values = decode_grid(case["d"], payload)
    else:
        found, values = decode_coded(layout, case["d"], case["q"], payload)
    assert found == case["indices"], case["name"]
    assert values == [int(bits, 16) for bits in case["values"]], case["name"]
    assert int.from_bytes(payload, "big").bit_length() == case["bits"], case["name"]


def main(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    assert vectors["version"] == 1
    assert len(vectors["valid"]) > 0 and len(vectors["invalid"]) > 0
    for case in vectors["valid"]:
        payload = bytes.fromhex(case["payload"])
        found, values = decode(case["layout"], case["d"], case["q"], payload)
        assert found == case["indices"], case["name"]
        assert values == [int(bits, 16) for bits in case["values"]], case["name"]
        assert int.from_bytes(payload, "big").bit_length() == case["bits"], case["name"]
    for case in vectors["invalid"]:
        try:
            decode(case["layout"], case["d"], case["q"], bytes.fromhex(case["payload"]))
        except Invalid:
            continue
        raise AssertionError(f"{case['name']} was accepted")
    for case in vectors["schemes"]:
        check_scheme(case)
    print(
        f"{len(vectors['valid'])} valid and {len(vectors['invalid'])} invalid payloads, "
        f"{len(vectors['schemes'])} of other layouts: all as they should be"
    )


if __name__ == "__main__":
    main(sys.argv[1])
