"""Payloads for RESTORE: values put together by hand, whole ones and damaged ones."""
import struct


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def sealed(body, version=10):
    body += struct.pack("<H", version)
    return body + struct.pack("<Q", crc64(body))


def text(value):
    if value.isdigit() and len(value) < 3 and (value == b"0" or value[0] != ord("0")):
        return b"\xc0" + bytes([int(value)])
    return struct.pack(">H", 0x4000 | len(value)) + value if len(value) >= 64 else bytes([len(value)]) + value


def listpack(values):
    """Of short texts and numbers below 128."""
    body = b""
    for value in values:
        element = bytes([value]) if isinstance(value, int) else bytes([0x80 | len(value)]) + value
        body += element + bytes([len(element)])
    return struct.pack("<IH", 7 + len(body), len(values)) + body + b"\xff"


MEMBERS = [b"m%d" % number for number in range(7)]
BODIES = [
    b"\x00" + text(b"hello world"), b"\x00" + text(b""), b"\x00" + text(b"77"), b"\x00\xc1\x39\x30",
    b"\x00\xc2\x00\x00\x00\x80", b"\x00" + text(b"x" * 100), b"\x00" + b"\xc3\x05\x0a\x00a\xe0\x00\x00",
    b"\x01\x03" + text(b"a") + text(b"7") + text(b"a"),
    b"\x02\x03" + b"".join(map(text, MEMBERS[:3])),
    b"\x02\x02" + text(b"12") + text(b"5"),
    b"\x0b\x0c" + struct.pack("<IIhh", 2, 2, -2, 7),
    b"\x04\x02" + text(b"m1") + text(b"v") + text(b"m2") + text(b""),
    b"\x05\x02" + text(b"m1") + struct.pack("<d", 1.5) + text(b"m0") + struct.pack("<d", float("-inf")),
    b"\x03\x02" + text(b"m1") + b"\x031.5" + text(b"m0") + b"\xff",
    b"\x10" + text(listpack([b"m1", b"v", b"m2", 5])),
    b"\x11" + text(listpack([b"m2", 1, b"m1", 5])),
    b"\x12\x01\x02" + text(listpack([b"a", 5])),
]
# What the other server notices, too: it looks only at the outside of packed values, and reads on into the tail.
DAMAGED = [b"\x00\x30abc", b"\x01\x00", b"\x01\x3f\x01a", b"\x02\x02\x01a\x01a", b"\x04\x3f\x01a", b"\x08\x00",
           b"\xc8\x00", b"\x00\xc4abc", b"\x10" + text(listpack([b"a"])), b"", b"\x0a\x30abc"]
PAYLOADS = [sealed(body, version) for body in BODIES for version in (6, 9, 10)]
BROKEN = [sealed(body) for body in DAMAGED]
BROKEN += [sealed(BODIES[0], 1000), sealed(BODIES[0])[:-1] + b"\x00", b"", b"123456789", b"\x01" * 10]


def payload(random):
    return random.choice(PAYLOADS if random.random() < 0.85 else BROKEN)
