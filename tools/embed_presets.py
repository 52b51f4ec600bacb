#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Writes the C file that holds the scanner presets (declared in src/io/presets.h).

usage: embed_presets.py --output FILE preset.yaml...

A preset's name is its file's stem. The output depends on the files' names and bytes alone: presets
are sorted by name, and neither times nor folders enter it.
"""
import argparse
import os
import re
import sys

BYTES_PER_LINE = 20


def fail(sentence):
    sys.exit(f"embed_presets: {sentence}")


def read_preset(path):
    """Name and bytes of one preset; its text has to be ASCII, so that C needs no escapes."""
    name, ending = os.path.splitext(os.path.basename(path))
    if ending != ".yaml" or not re.fullmatch(r"[a-z0-9-]+", name):
        fail(f"{path}: a preset is named by lower-case letters, digits and '-', with .yaml behind")
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


def c_file(presets):
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0",
        " * Copyright The LORaster authors",
        " *",
        " * Written by tools/embed_presets.py from assets/scanners; do not edit. */",
        '#include "io/presets.h"',
        "",
        "#include <stddef.h>",
        "",
    ]
    for index, (_, text) in enumerate(presets):
        lines += array_lines(index, text)
        lines.append("")
    lines.append("const struct lr_preset lr_preset_table[] = {")
    lines += [f'    {{"{name}", text_{index}}},' for index, (name, _) in enumerate(presets)]
    lines += ["    {NULL, NULL},", "};", "", "const char *const lr_preset_names[] = {"]
    lines += [f'    "{name}",' for name, _ in presets]
    lines += ["    NULL,", "};", "", f"const int lr_num_presets = {len(presets)};"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="the C file to write")
    parser.add_argument("presets", nargs="*", help="YAML files")
    arguments = parser.parse_args()
    presets = sorted(read_preset(path) for path in arguments.presets)
    for (name, _), (after, _) in zip(presets, presets[1:]):
        if name == after:
            fail(f"two presets are named {name}")
    beside = arguments.output + ".part"
    with open(beside, "w", encoding="ascii", newline="\n") as file:
        file.write(c_file(presets))
    os.replace(beside, arguments.output)


if __name__ == "__main__":
    main()
