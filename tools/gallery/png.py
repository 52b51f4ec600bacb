# SPDX-License-Identifier: Apache-2.0
"""Reads and writes 8-bit RGB as PNG files, packed better than the program takes time for:
python3 png.py FILE... packs files anew."""
import itertools
import struct
import sys
import zlib
from pathlib import Path


def read(path, most=None):
    """(width, height, rows of bytes, three a pixel); no more rows than `most` from the top"""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n", path
    at, data, head = 8, b"", None
    while at < len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        body = raw[at + 8:at + 8 + length]
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    assert head[2:4] == (8, 2) and head[6] == 0, head
    width, height = head[:2]
    stream, rows, last = zlib.decompress(data), [], bytes(3 * width)
    for y in range(min(height, most or height)):
        begin = y * (3 * width + 1)
        last = unfilter(stream[begin], stream[begin + 1:begin + 1 + 3 * width], last)
        rows.append(last)
    return width, height, rows


def unfilter(kind, line, above):
    """A row without its filter (W3C, section 9), each of three colours by itself: much in a picture is
    as it is to the left or above, and told without the three distances of Paeth's filter."""
    if kind == 0:
        return line
    if kind == 2:
        return bytes((a + b) & 255 for a, b in zip(line, above))
    out = bytearray(len(line))
    for colour in range(3):
        out[colour::3] = COLOUR_FILTERS[kind](line[colour::3], above[colour::3])
    return bytes(out)


def of_left(line, _):
    return bytes(value & 255 for value in itertools.accumulate(line))


def of_mean(line, above):
    found, left = [], 0
    for add, b in zip(line, above):
        left = (left + b) // 2 + add & 255
        found.append(left)
    return bytes(found)


def of_paeth(line, above):
    found, left, corner = [], 0, 0
    for add, b in zip(line, above):
        if left == corner != b:
            left = b + add & 255
        elif b == corner:
            left = left + add & 255
        else:
            up, along = abs(left - corner), abs(b - corner)
            across = abs(left + b - 2 * corner)
            guess = left if along <= up and along <= across else b if up <= across else corner
            left = guess + add & 255
        found.append(left)
        corner = b
    return bytes(found)


COLOUR_FILTERS = {1: of_left, 3: of_mean, 4: of_paeth}


def pack(rows, kinds):
    stream, last = bytearray(), bytes(len(rows[0]))
    for row in rows:
        lines = {0: row, 2: bytes((a - b) & 255 for a, b in zip(row, last))}
        kind = min(kinds, key=lambda k: sum(min(v, 256 - v) for v in lines[k]))
        stream += bytes([kind]) + lines[kind]
        last = row
    return zlib.compress(bytes(stream), 9)


def write(path, width, height, rows):
    data = min((pack(rows, kinds) for kinds in ([0], [2], [0, 2])), key=len)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(
            ">I", zlib.crc32(kind + body))

    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(name, *read(name))
