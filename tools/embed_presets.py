#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Writes the C file that holds the scanner presets, or other texts (declared in src/io/scanners/scanner_formats.h).

usage: embed_presets.py --output FILE preset.yaml...
       embed_presets.py --output FILE --kind petsird schema_v0.9.1.json...

A preset's name is its file's stem. The output depends on the files' names and bytes alone: presets
are sorted by name, and neither times nor folders enter it.
"""
import argparse
import os
import re
import sys

BYTES_PER_LINE = 20
# Kind: ending of the files, their names, and of the C names lr_..._table, lr_..._names, lr_num_...
KINDS = {
    "presets": (".yaml", r"[a-z0-9-]+", "preset", "presets", "assets/scanners"),
    "petsird": (".json", r"[a-z0-9._-]+", "petsird", "petsird", "assets/petsird"),
}


def fail(sentence):
    sys.exit(f"embed_presets: {sentence}")


def read_preset(path, kind):
    """Name and bytes of one preset; its text has to be ASCII, so that C needs no escapes."""
    name, ending = os.path.splitext(os.path.basename(path))
    wanted, pattern = KINDS[kind][:2]
    if ending != wanted or not re.fullmatch(pattern, name):
        fail(f"{path}: a name must match {pattern}, with {wanted} behind")
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}")
    for number, line in enumerate(text.splitlines(), 1):
        if any(byte > 126 or (byte < 32 and byte != 9) for byte in line):
            fail(f"{path}:{number}: only ASCII text can be embedded")
    return name, text


def array_lines(index, text):
    """A zero-terminated array; a string literal of that length would not be ISO C."""
    yield f"static const char text_{index}[] = {{"
    numbers = list(text) + [0]
    for start in range(0, len(numbers), BYTES_PER_LINE):
        yield "    " + ", ".join(str(n) for n in numbers[start : start + BYTES_PER_LINE]) + ","
    yield "};"


def c_file(presets, kind):
    _, _, one, many, folder = KINDS[kind]
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0",
        " * Copyright The LORaster authors",
        " *",
        f" * Written by tools/embed_presets.py from {folder}; do not edit. */",
        '#include "io/scanners/scanner_formats.h"',
        "",
        "#include <stddef.h>",
        "",
    ]
    for index, (_, text) in enumerate(presets):
        lines += array_lines(index, text)
        lines.append("")
    lines.append(f"const struct lr_preset lr_{one}_table[] = {{")
    lines += [f'    {{"{name}", text_{index}}},' for index, (name, _) in enumerate(presets)]
    lines += ["    {NULL, NULL},", "};", "", f"const char *const lr_{one}_names[] = {{"]
    lines += [f'    "{name}",' for name, _ in presets]
    lines += ["    NULL,", "};", "", f"const int lr_num_{many} = {len(presets)};"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="the C file to write")
    parser.add_argument("--kind", choices=sorted(KINDS), default="presets")
    parser.add_argument("presets", nargs="*", help="YAML files, or JSON files of another kind")
    arguments = parser.parse_args()
    presets = sorted(read_preset(path, arguments.kind) for path in arguments.presets)
    for (name, _), (after, _) in zip(presets, presets[1:]):
        if name == after:
            fail(f"two presets are named {name}")
    beside = arguments.output + ".part"
    with open(beside, "w", encoding="ascii", newline="\n") as file:
        file.write(c_file(presets, arguments.kind))
    os.replace(beside, arguments.output)


if __name__ == "__main__":
    main()
