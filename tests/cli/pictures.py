# SPDX-License-Identifier: Apache-2.0
"""Reads the pictures that the program writes."""
import struct, sys, zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "gallery"))
from png import unfilter  # noqa: E402

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
    return width, height, without_filters(zlib.decompress(data), min(height, NUM_ROWS), 3 * width)


def without_filters(data, height, stride):
    rows, before = [], bytes(stride)
    for begin in range(0, height * (stride + 1), stride + 1):
        before = unfilter(data[begin], data[begin + 1:begin + 1 + stride], before)
        rows.append(before)
    return rows


def count_ink(rows, top, bottom):
    """Pixels of those rows that are not white."""
    return sum(row[x:x + 3] != b"\xff\xff\xff" for row in rows[top:bottom] for x in range(0, len(row), 3))
