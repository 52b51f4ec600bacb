#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents hold together: links and anchors resolve, paragraphs and table cells are short, each page is found from
docs/README.md, and what sources say of a page is there.

usage: test_pages.py SOURCE_ROOT"""
import re, sys, unittest
from pathlib import Path

ROOT = Path(sys.argv.pop()).resolve()
MOST_WORDS = 80
MOST_CLICKS = 2
FENCED = re.compile(r"^```.*?^```\n?", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
# A page and a "Heading" of it, also over the lines of a comment; yardl has documents of its own.
COMMENT_LINE = re.compile(r"\n[ \t]*(?:\*|//|#)?[ \t]*")
REFERENCE = re.compile(r"(?<!yardl, )\bdocs/[\w./-]+\.md\b(?:, \"([^\"]+)\")?")
SOURCES = ("src", "shaders", "tests", "tools", "examples", "assets")
TEXTS = {".c", ".h", ".cu", ".cuh", ".cpp", ".py", ".sh", ".txt", ".comp", ".frag", ".vert", ".glsl", ".yaml", ".md"}


def pages():
    return sorted(ROOT.glob("docs/**/*.md")) + [ROOT / "README.md", ROOT / "src" / "README.md",
                                                ROOT / "CONTRIBUTING.md"]


def paragraphs(text):
    """(what it is, words) of each paragraph, item of a list and table cell; code is left out."""
    for block in re.split(r"\n\s*\n", FENCED.sub("\n", text)):
        if block.startswith("    "):
            continue
        part = []
        for line in block.strip().split("\n"):
            if line.startswith("|"):
                for cell in re.split(r"(?<!\\)\|", line):
                    yield "cell", cell.split()
                continue
            if re.match(r" *(?:- |\d+\. )", line) and part:
                yield "paragraph", part
                part = []
            part = part + line.split()
        yield "paragraph", part


def too_long(text):
    return [f"a {what} of {len(words)} words: {' '.join(words[:8])} ..."
            for what, words in paragraphs(text) if len(words) > MOST_WORDS]


def anchors(text):
    """As GitHub makes them."""
    found = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading)).lower().replace(" ", "-")
        count = 0
        while (slug if count == 0 else f"{slug}-{count}") in found:
            count += 1
        found.add(slug if count == 0 else f"{slug}-{count}")
    return found


def links(page):
    """(path, anchor) of the relative ones."""
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if not re.match(r"\w+:", target):
            name, _, anchor = target.partition("#")
            yield ((page.parent / name).resolve() if name else page), anchor


def broken(page):
    for path, anchor in links(page):
        if not path.exists():
            yield f"{page.relative_to(ROOT)}: there is no {path}"
        elif anchor and anchor not in anchors(path.read_text()):
            yield f"{page.relative_to(ROOT)}: {path.relative_to(ROOT)} has no heading #{anchor}"


class Planted(unittest.TestCase):
    def test_words(self):
        long = "word " * (MOST_WORDS + 1)
        for text in (long, f"- {'word ' * MOST_WORDS}", f"# A\n\nshort\n\n{long}", f"| a | {long}|"):
            self.assertEqual(len(too_long(text)), 1, text)
        for text in ("word " * MOST_WORDS, f"```\n{long}\n```", f"    {long}",
                     "\n".join(["- " + "word " * 60] * 3), "| " + " | ".join(["word " * 70] * 3)):
            self.assertEqual(too_long(text), [], text)

    def test_anchors(self):
        self.assertEqual(anchors("# A, b\n## `x --y`\n```sh\n# no\n```\n# A b\n"), {"a-b", "x---y", "a-b-1"})


class Pages(unittest.TestCase):
    def test_paragraphs_are_short(self):
        found = [f"{page.relative_to(ROOT)}: {what}" for page in pages() for what in too_long(page.read_text())]
        self.assertEqual(found, [], "\n".join(found))

    def test_links(self):
        found = [what for page in pages() for what in broken(page)]
        self.assertEqual(found, [], "\n".join(found))

    def test_contents(self):
        listed = {path for path, _ in links(ROOT / "docs" / "README.md")}
        for page in sorted(ROOT.glob("docs/**/*.md")):
            if page != ROOT / "docs" / "README.md":
                self.assertIn(page, listed, f"docs/README.md does not list {page}")

    def test_formats_table(self):
        """Each page of formats is found from the one table."""
        listed = {path for path, _ in links(ROOT / "docs" / "formats" / "README.md")}
        for page in ROOT.glob("docs/formats/*.md"):
            self.assertTrue(page.name == "README.md" or page in listed, page)

    def test_scipy_in_two_clicks(self):
        wanted = (ROOT / "docs" / "guide" / "matrix.md", "scipy")
        seen = [ROOT / "README.md"]
        for _ in range(MOST_CLICKS):
            found = [link for page in seen for link in links(page) if link[0].suffix == ".md"]
            seen = [path for path, _ in found]
        self.assertIn(wanted, found)


class References(unittest.TestCase):
    @staticmethod
    def texts():
        files = [ROOT / "CMakeLists.txt", ROOT / "CHANGELOG.md", ROOT / "README.md"]
        for folder in SOURCES:
            files += [path for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
        for path in files:
            yield path, COMMENT_LINE.sub(" ", path.read_text(errors="replace"))

    def test_exist(self):
        count = 0
        for path, text in self.texts():
            for match in REFERENCE.finditer(text):
                count += 1
                page = ROOT / re.match(r"docs/[\w./-]+\.md", match.group(0)).group(0)
                self.assertTrue(page.exists(), f"{path}: {match.group(0)}")
                if match.group(1):
                    headings = HEADING.findall(page.read_text())
                    self.assertIn(match.group(1), headings, f"{path}: {match.group(0)}")
        self.assertGreater(count, 50)

    def test_no_numbers(self):
        """Sections are named, so that they may move."""
        for path, text in self.texts():
            numbered = re.search(r"docs/[\w./-]+\.md,? (?:section )?\d", text)
            self.assertIsNone(numbered, f"{path}: {numbered}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
