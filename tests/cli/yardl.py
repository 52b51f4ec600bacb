# SPDX-License-Identifier: Apache-2.0
"""yardl's compact binary encoding in a few lines, by the schema that a file carries: a reader and a writer, from the
description of the format and independent of the library."""
import json, struct

FLOATS = {"float32": "<f", "float64": "<d"}
SIGNED = ("int16", "int32", "int64", "date", "time", "datetime")
UNSIGNED = ("uint16", "uint32", "uint64", "size")


class Schema:
    def __init__(self, text):
        model = json.loads(text)
        self.text = text
        self.steps = model["protocol"]["sequence"]
        self.types = {model["protocol"]["name"] + "." + t["name"]: t for t in model["types"]}

    def spell(self, kind, names):
        """(the type behind a name, what the names within it stand for)"""
        while isinstance(kind, str) and kind in names:
            kind, names = names[kind]
        if isinstance(kind, str) and kind in self.types:
            found = self.types[kind]
            return self.spell(found["type"], {}) if "type" in found else (found, {})
        if isinstance(kind, dict) and "name" in kind and "typeArguments" in kind:
            found = self.types[kind["name"]]
            inner = {p: (a, names) for p, a in zip(found["typeParameters"], kind["typeArguments"])}
            return self.spell(found["type"], inner) if "type" in found else (found, inner)
        return kind, names


def list_parts(kind):
    """(items, fixed sizes or None, number of sizes in the file or None)"""
    if "vector" in kind:
        length = kind["vector"].get("length")
        return kind["vector"]["items"], None if length is None else [length], 1
    dims = kind["array"].get("dimensions")
    if isinstance(dims, list) and all(isinstance(d, dict) and "length" in d for d in dims):
        return kind["array"]["items"], [d["length"] for d in dims], len(dims)
    return kind["array"]["items"], None, len(dims) if isinstance(dims, list) else dims


class Reader:
    def __init__(self, raw):
        assert raw[:9] == b"yardl\1\0\0\0", raw[:9]
        self.raw, self.at = raw, 9
        self.schema = Schema(self.text())

    def unsigned(self):
        value = shift = 0
        while True:
            byte = self.raw[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def text(self):
        length = self.unsigned()
        self.at += length
        return self.raw[self.at - length:self.at].decode()

    def scalar(self, form):
        size = struct.calcsize(form)
        self.at += size
        return struct.unpack_from(form, self.raw, self.at - size)[0]

    def value(self, kind, names=None):
        kind, names = self.schema.spell(kind, names or {})
        if isinstance(kind, str):
            if kind in FLOATS:
                return self.scalar(FLOATS[kind])
            if kind in ("bool", "uint8"):
                return self.scalar("<B")
            if kind == "string":
                return self.text()
            return self.signed() if kind in SIGNED else self.unsigned()
        if isinstance(kind, list):
            case = kind[self.unsigned()]
            if case is None:
                return None
            tagged = isinstance(case, dict) and "tag" in case
            inner = self.value(case["type"] if tagged else case, names)
            return (case["tag"], inner) if tagged else inner
        if "fields" in kind:
            return {f["name"]: self.value(f["type"], names) for f in kind["fields"]}
        if "values" in kind:
            return self.signed()
        items, sizes, rank = list_parts(kind)
        if sizes is None:
            sizes = [self.unsigned() for _ in range(self.unsigned() if rank is None else rank)]
        count = 1
        for size in sizes:
            count *= size
        flat = [self.value(items, names) for _ in range(count)]
        return flat if "vector" in kind else (sizes, flat)

    def stream(self, kind):
        found = []
        while (count := self.unsigned()) > 0:
            found += [self.value(kind) for _ in range(count)]
        return found


class Writer:
    def __init__(self, schema_text):
        self.schema = Schema(schema_text)
        self.out = bytearray(b"yardl\1\0\0\0")
        self.text(schema_text)

    def unsigned(self, value):
        while value > 127:
            self.out.append(value & 127 | 128)
            value >>= 7
        self.out.append(value)

    def text(self, value):
        self.unsigned(len(value.encode()))
        self.out += value.encode()

    def scalar(self, kind, value):
        if kind in FLOATS:
            self.out += struct.pack(FLOATS[kind], value)
        elif kind in ("bool", "uint8"):
            self.out.append(value)
        elif kind == "string":
            self.text(value)
        else:
            self.unsigned(value if kind in UNSIGNED else 2 * value if value >= 0 else -2 * value - 1)

    def union(self, kind, value, names):
        for index, case in enumerate(kind):
            tagged = isinstance(case, dict) and "tag" in case
            if case is None and value is None:
                return self.unsigned(index)
            if case is not None and value is not None and (not tagged or case["tag"] == value[0]):
                self.unsigned(index)
                return self.value(case["type"] if tagged else case, value[1] if tagged else value, names)
        raise ValueError(value)

    def value(self, kind, value, names=None):
        kind, names = self.schema.spell(kind, names or {})
        if isinstance(kind, str):
            self.scalar(kind, value)
        elif isinstance(kind, list):
            self.union(kind, value, names)
        elif "fields" in kind:
            for field in kind["fields"]:
                self.value(field["type"], value[field["name"]], names)
        elif "values" in kind:
            self.scalar("int32", value)
        else:
            items, fixed, rank = list_parts(kind)
            sizes, flat = ([len(value)], value) if "vector" in kind else value
            if fixed is None and rank is None:
                self.unsigned(len(sizes))
            for size in sizes if fixed is None else []:
                self.unsigned(size)
            for item in flat:
                self.value(items, item, names)

    def stream(self, kind, values):
        for value in values:
            self.unsigned(1)
            self.value(kind, value)
        self.unsigned(0)


def read_file(path):
    """(schema text, header, time blocks); every byte must be used."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    header = reader.value(reader.schema.steps[0]["type"])
    blocks = reader.stream(reader.schema.steps[1]["type"]["stream"]["items"])
    assert reader.at == len(reader.raw), (reader.at, len(reader.raw))
    return reader.schema.text, header, blocks


def write_file(path, schema_text, header, blocks):
    writer = Writer(schema_text)
    writer.value(writer.schema.steps[0]["type"], header)
    writer.stream(writer.schema.steps[1]["type"]["stream"]["items"], blocks)
    with open(path, "wb") as file:
        file.write(bytes(writer.out))
