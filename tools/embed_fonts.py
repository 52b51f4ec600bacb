#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Writes the C file that holds the fonts of pictures, byte for byte (declared in src/picture/font.h).

usage: embed_fonts.py --output FILE REGULAR.ttf BOLD.ttf
"""
import argparse
import os
import sys

BYTES_PER_LINE = 32


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="the C file to write")
    parser.add_argument("fonts", nargs=2, help="TrueType files: regular and bold")
    arguments = parser.parse_args()
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0",
        " * Copyright The LORaster authors",
        " *",
        " * Written by tools/embed_fonts.py; do not edit. */",
        '#include "picture/font.h"',
    ]
    for name, path in zip(("regular", "bold"), arguments.fonts):
        with open(path, "rb") as file:
            font = file.read()
        if font[:4] != b"\0\1\0\0":
            sys.exit(f"embed_fonts: {path} is no TrueType file")
        lines += ["", f"static const unsigned char {name}[] = {{"]
        for start in range(0, len(font), BYTES_PER_LINE):
            lines.append(",".join(map(str, font[start : start + BYTES_PER_LINE])) + ",")
        lines.append("};")
    lines += ["", "const struct lr_font_file lr_font_files[2] = {{regular, sizeof(regular)}, {bold, sizeof(bold)}};"]
    beside = arguments.output + ".part"
    with open(beside, "w", encoding="ascii", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(beside, arguments.output)


if __name__ == "__main__":
    main()
