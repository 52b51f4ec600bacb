#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program knows the library's sentences that it adds options to by words of theirs: each of these words
stands in a sentence of the library.

usage: test_advice.py SOURCE_ROOT"""
import re, sys
from pathlib import Path

SOURCES = Path(sys.argv[1]) / "src"
STRING = r'"((?:[^"\\]|\\.)*)"'


def sentences(path):
    """String literals of a file; those that follow each other are one."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    for match in re.finditer(rf"(?:{STRING}\s*)+", text):
        yield "".join(re.findall(STRING, match.group()))


def main():
    table = (SOURCES / "cli" / "advice.c").read_text().split("answers[] = {")[1].split("};")[0]
    known = re.findall(rf"\{{{STRING},", table)
    assert len(known) > 10, known
    folders = (path for path in SOURCES.iterdir() if path.is_dir() and path.name not in ("cli", "viewer"))
    said = [sentence for folder in folders for path in folder.rglob("*.c") for sentence in sentences(path)]
    for words in known:
        assert any(words in sentence for sentence in said), f"no sentence of the library says: {words}"
    print(f"{len(known)} answers")


if __name__ == "__main__":
    main()
