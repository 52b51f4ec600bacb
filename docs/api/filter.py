#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""filter.py HEADER: prints a public header as Doxygen reads it: comments before a declaration and behind a field are
its documentation, and words such as "errors:" at the beginning of a line are headings."""
import re
import sys

COMMENT = re.compile(r"([ \t]*)([^\n]*?)/\*(.*?)\*/", re.S)


def document(found):
    indent, code, text = found.groups()
    if "SPDX" in text or text.startswith((" ---", "*")):
        return found.group(0)
    text = re.sub(r"^([ \t]*\*[ \t]+|[ \t])([a-z_, ]{2,30}):(?=\s)", r"\1@par \2\n", text, flags=re.M)
    text = re.sub(r"(?<=[.]) (errors):(?=\s)", r"\n @par \1\n", text)
    text = re.sub(r"([<>#%@\\])(?!par )", r"\\\1", text)
    return f"{indent}{code}/**{'<' if code.strip() else ''}{text}*/"


def refer(found):
    """A declaration right below another one is described by the comment above both."""
    return f"{found.group(1)}/** See {found.group(2)}(). */ {found.group(3)}"


with open(sys.argv[1], encoding="utf-8") as file:
    header = file.read()
header = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", lambda found: "\n" * found.group(0).count("\n"), header,
                flags=re.M | re.S)
header = COMMENT.sub(document, header)
above = re.compile(r"(^(?:/[*]{2} See [^\n]*?[*]/ )?LR_(?:API[^;]*?|SIZED\(\w+,[^,]*?,? ?)\b(lr_\w+)(?:\(|, )[^;]*;[^\n]*\n)(LR_)", re.M)
while above.search(header):
    header = above.sub(refer, header)
sys.stdout.write("/** @file */ " + header)
