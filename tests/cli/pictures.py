# SPDX-License-Identifier: Apache-2.0
"""Reads the pictures that the program writes."""
import struct
import zlib
from pathlib import Path

NUM_ROWS = 90  # that are read: the title, and some of what is below it


def read_png(path):
    """(width, height, first rows of RGB) of an 8-bit PNG."""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n", path
    width, height, depth, kind = struct.unpack(">2I2B", raw[16:26])
    assert (depth, kind) == (8, 2), (depth, kind)
    data, at = b"", 8
    while at < len(raw):
        length, name = struct.unpack(">I4s", raw[at:at + 8])
        data += raw[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    return width, height, unfilter(zlib.decompress(data), min(height, NUM_ROWS), 3 * width)


def unfilter(data, height, stride):
    """Rows without the filters of PNG (W3C, section 9)."""
    rows, before = [], bytes(stride)
    for y in range(height):
        kind, line = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride if kind else 0):
            left = line[x - 3] if x >= 3 else 0
            corner = before[x - 3] if x >= 3 else 0
            guess = [0, left, before[x], (left + before[x]) // 2,
                     min((left, before[x], corner), key=lambda v: abs(left + before[x] - corner - v))]
            line[x] = (line[x] + guess[kind]) & 255
        rows.append(bytes(line))
        before = rows[-1]
    return rows


def count_ink(rows, top, bottom):
    """Pixels of those rows that are not white."""
    return sum(row[x:x + 3] != b"\xff\xff\xff" for row in rows[top:bottom]
               for x in range(0, len(row), 3))
