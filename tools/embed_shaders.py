#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Flattens, validates and embeds shaders.

Follows the rules of src/gl/program.h. A comment line

    // variants: NAME=1 OTHER=4; NAME=2

in a shader asks for validation with each of these sets of defines (separated by `;`) besides
none. Writes a C file that depends on nothing but the shaders' bytes and names.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

MAX_FILES = 32
STAGES = {".vert": "vert", ".frag": "frag", ".comp": "comp"}
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*"([^"]+)"[ \t\r]*(//.*)?$')
LOOKS_LIKE_INCLUDE = re.compile(r"[ \t]*#[ \t]*include")
VARIANTS = re.compile(r"[ \t]*//[ \t]*variants:(.*)$")
MESSAGE = re.compile(r"^(ERROR|WARNING): (\d+):(\d+): (.*)$")


class BadShader(Exception):
    """A sentence with file and line."""


class Flattened:
    """One shader with its includes put in place."""

    def __init__(self, root, name):
        self.root, self.name = root, name
        self.files, self.parts, self.sources = [], [], []
        self._add(name, f"{root}")
        self.text = "".join(self.parts)
        if not re.search(r"^[ \t]*#version", self.text.split("\n#line ")[0], re.M):
            raise BadShader(f"{self._where(0, 1)}: no #version line before the first #include")

    def _where(self, file, line):
        return f"{os.path.join(self.root, self.files[file])}:{line}"

    def _add(self, name, asked_from):
        path = os.path.join(self.root, name)
        try:
            with open(path, encoding="utf-8", newline="") as stream:
                lines = stream.read().removesuffix("\n").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadShader(f"{asked_from}: {path} cannot be read ({error})") from error
        file = len(self.files)
        self.files.append(name)
        self.sources.append(lines)
        if len(self.files) > MAX_FILES:
            raise BadShader(f"{asked_from}: a shader includes at most {MAX_FILES - 1} files")
        for number, line in enumerate(lines, 1):
            self._add_line(file, number, line)

    def _add_line(self, file, number, line):
        found = INCLUDE.match(line)
        if found is None:
            if LOOKS_LIKE_INCLUDE.match(line):
                raise BadShader(f"{self._where(file, number)}: write #include \"common/x.glsl\"")
            if file > 0 and line.lstrip().startswith("#version"):
                raise BadShader(f"{self._where(file, number)}: only the shader has a #version")
            self.parts.append(line + "\n")
            return
        name = found.group(1)
        if name.startswith("/") or ".." in name:
            raise BadShader(f"{self._where(file, number)}: {name} leaves the shader folder")
        if name in self.files:
            self.parts.append("\n")
            return
        self.parts.append(f"#line 1 {len(self.files)}\n")
        self._add(name, self._where(file, number))
        self.parts.append(f"#line {number + 1} {file}\n")

    def with_defines(self, defines):
        """The text with defines right after #version, as the library inserts them."""
        lines = self.text.split("\n")
        at = next(k for k, line in enumerate(lines) if line.lstrip().startswith("#version"))
        inserted = [f"#define {name} {value}" for name, value in defines]
        return "\n".join(lines[: at + 1] + inserted + [f"#line {at + 2} 0"] + lines[at + 1 :])

    def variants(self):
        """Sets of defines to validate; the empty one comes first."""
        sets = [[]]
        for line in self.sources[0]:
            found = VARIANTS.match(line)
            for group in found.group(1).split(";") if found else []:
                pairs = [word.partition("=") for word in group.split()]
                if pairs:
                    sets.append([(name, value or "1") for name, _, value in pairs])
        return sets

    def translate(self, message):
        """A validator's line with file name and line, and the source line."""
        found = MESSAGE.match(message)
        if found is None or int(found.group(2)) >= len(self.files):
            return message
        kind, file, line = found.group(1).lower(), int(found.group(2)), int(found.group(3))
        lines = self.sources[file]
        culprit = f"\n    {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
        return f"{self._where(file, line)}: {kind}: {found.group(4)}{culprit}"


def validate(validator, shader):
    """Raises BadShader with every message when a variant is not valid GLSL."""
    stage = STAGES[os.path.splitext(shader.name)[1]]
    for defines in shader.variants():
        done = subprocess.run(
            [validator, "--stdin", "-S", stage], input=shader.with_defines(defines),
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).splitlines()
            said = [shader.translate(line) for line in lines if line and line != "stdin"]
            words = " ".join(f"{name}={value}" for name, value in defines)
            head = f"{shader.name} is not valid" + (f" with {words}" if words else "")
            raise BadShader("\n".join([head] + said))


def all_are_valid(validator, shaders):
    """Whether every variant is valid GLSL: of one process, which is many times as quick as one
    for each, but whose messages would be hard to tell apart."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for shader in shaders:
            for defines in shader.variants():
                files.append(f"{folder}/{len(files)}{os.path.splitext(shader.name)[1]}")
                with open(files[-1], "w", encoding="utf-8") as stream:
                    stream.write(shader.with_defines(defines))
        return subprocess.run([validator, *files], capture_output=True, check=False).returncode == 0


def find_faults(validator, shaders):
    """What is said of shaders that are not valid."""
    faults = []
    if not shaders or all_are_valid(validator, shaders):
        return faults
    for shader in shaders:
        try:
            validate(validator, shader)
        except BadShader as bad:
            faults.append(str(bad))
    return faults


def c_bytes(text):
    data = text.encode("utf-8") + b"\0"
    rows = [", ".join(str(b) for b in data[k : k + 24]) for k in range(0, len(data), 24)]
    return ",\n    ".join(rows)


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_table(shaders):
    out = ["/* Made by tools/embed_shaders.py from the shaders' files. */",
           '#include "gl/program.h"', ""]
    for k, shader in enumerate(shaders):
        names = ", ".join(c_string(name) for name in shader.files)
        out += [f"static const unsigned char text_{k}[] = {{\n    {c_bytes(shader.text)}}};",
                f"static const char *const files_{k}[] = {{{names}, NULL}};", ""]
    out.append("const struct gl_embedded_shader gl_embedded_shaders[] = {")
    for k, shader in enumerate(shaders):
        out.append(f"    {{{c_string(shader.name)}, (const char *)text_{k}, files_{k}}},")
    out += ["    {NULL, NULL, NULL},", "};", ""]
    return "\n".join(out)


def write_whole(path, text):
    with open(path + ".part", "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--validator", help="glslangValidator; without it nothing is validated")
    parser.add_argument("--output", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    names = sorted(os.path.relpath(file, args.root).replace(os.sep, "/") for file in args.files)
    shaders, failures = [], []
    for name in names:
        try:
            shaders.append(Flattened(args.root, name))
        except BadShader as bad:
            failures.append(str(bad))
    if args.validator:
        failures += find_faults(args.validator, shaders)
    if failures:
        print("\n".join(failures), file=sys.stderr)
        return 1
    write_whole(args.output, write_table(shaders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
