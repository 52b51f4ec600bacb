#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of docs/performance.md and docs/notes can be taken again: each names a commit of the history and a command
that the program accepts, or says that one of them is not known.

usage: test_performance.py PROGRAM SOURCE_ROOT TOPIC

topics: commits (77 where there is no history), commands"""
import re, shlex, shutil, subprocess, sys, unittest
from pathlib import Path

TOPIC = sys.argv.pop()
ROOT = Path(sys.argv.pop()).resolve()
PROGRAM = sys.argv.pop()
PAGES = {path.relative_to(ROOT): path.read_text()
         for path in [ROOT / "docs" / "performance.md", *sorted(ROOT.glob("docs/notes/*.md"))]}
PAGE = "\n".join(PAGES.values())

# Seven to forty digits of a hexadecimal number, letters among them.
COMMIT = re.compile(r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
COMMAND = re.compile(r"`((?:loraster|cmake|ctest|tools/\S+\.sh)(?: [^`]*)?)`")
# A time, a rate, or a table's column of them.
FIGURE = re.compile(r"\d (?:ms|us|s|min|ns|\w*/s)\b|\| *(?:ms|us|ns a LOR|forward|wall clock|in all) *\|")
# Sentences of a section in which one of them is not known.
UNKNOWN = {"commit": "The commit is not known", "command": "The command is not kept"}
# Figures of others, quoted beside ours.
QUOTED = re.compile(r"^The paper's own figures .*$", re.M)
PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9]*(?:\.\.\.)?$")


def sections():
    """(page and title, text with that of the sections it stands in, own text)."""
    for name, page in PAGES.items():
        parents = []
        for part in re.split(r"^(?=#+ )", page, flags=re.M)[1:]:
            head, own = part.split("\n", 1)
            level = len(head) - len(head.lstrip("#"))
            parents = [(n, text) for n, text in parents if n < level]
            above = "".join(text for n, text in parents if n > 1)
            parents.append((level, own))
            yield f"{name}, {head.lstrip('# ')}", above + own, QUOTED.sub("", own)


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def history():
    """The commits, or exits with 77 and why there are none."""
    why = None
    if not (ROOT / ".git").exists():
        why = "this tree is no clone: there is no .git"
    elif shutil.which("git") is None:
        why = "there is no git"
    elif git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        why = "this clone is shallow, or not git's to read here: git fetch --unshallow brings the history"
    if why is not None:
        print(f"skipped: {why}")
        sys.exit(77)
    return git("rev-list", "HEAD").stdout.split()


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class Commits(unittest.TestCase):
    @staticmethod
    def page_of(name):
        return next(page for page, text in PAGES.items() if name in text)

    def test_exist(self):
        known = history()
        for name in sorted(set(COMMIT.findall(PAGE))):
            self.assertTrue(any(commit.startswith(name) for commit in known),
                            f"{self.page_of(name)} names {name}, which is no commit of this history")

    def test_every_section(self):
        for title, text, own in sections():
            if FIGURE.search(own) and UNKNOWN["commit"] not in own:
                self.assertTrue(COMMIT.search(text), f"{title}: figures of no commit")


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        verbs = re.findall(r"^  ([a-z0-9]+(?: [a-z0-9]+)?) +[A-Z]", run("--help").stdout, flags=re.M)
        cls.pages = {verb: run(*verb.split(), "--help").stdout for verb in verbs}

    def find_verb(self, words):
        for count in (2, 1):
            if " ".join(words[:count]) in self.pages:
                return " ".join(words[:count]), words[count:]
        self.fail(f"loraster has no verb {' '.join(words[:2])}")

    def check_option(self, command, verb, word, value):
        page = self.pages[verb]
        line = re.search(rf"^  {re.escape(word)}(?: .*)?$", page, flags=re.M)
        self.assertTrue(line, f"{command}: {verb} has no option {word}")
        takes = re.match(rf"^  {re.escape(word)} [^\s]", line.group(0)) is not None
        if not takes:
            return False
        self.assertIsNotNone(value, f"{command}: {word} without what it takes")
        # Names that the help lists are among those given; files and numbers are not listed.
        if re.search(rf"{re.escape(word)} NAME(?:\[|\s)", line.group(0)):
            for name in re.split(r"[,|]", value):
                if not PLACEHOLDER.match(name):
                    self.assertTrue(re.search(rf"\b{re.escape(name)}\b", line.group(0)),
                                    f"{command}: {word} knows no {name}")
        return True

    def check_loraster(self, command):
        verb, rest = self.find_verb(shlex.split(command)[1:])
        while rest:
            word = rest.pop(0)
            if word.startswith("-"):
                if self.check_option(command, verb, word, rest[0] if rest else None):
                    rest.pop(0)
            else:  # files by themselves
                self.assertEqual(verb, "matrix verify", f"{command}: {word}")

    def check_other(self, command):
        words = shlex.split(command)
        if words[0] == "cmake":
            target = words[words.index("--target") + 1]
            self.assertIn(f"add_executable({target} ", (ROOT / "CMakeLists.txt").read_text())
        elif words[0] == "ctest":
            listed = subprocess.run(["ctest", "-N", *words[1:]], cwd=Path(PROGRAM).parent,
                                    capture_output=True, text=True, check=False).stdout
            self.assertRegex(listed, r"Total Tests: [1-9]", command)
        else:
            self.assertTrue((ROOT / words[0]).is_file(), command)

    def test_are_accepted(self):
        commands = COMMAND.findall(PAGE)
        self.assertGreater(len(commands), 8)
        self.assertGreater(len(PAGES), 3)
        for command in commands:
            with self.subTest(command=command):
                first = re.split(r" && | ; ", command)[0].split(" ... ")[0]
                (self.check_loraster if first.startswith("loraster") else self.check_other)(first)

    def test_every_section(self):
        for title, text, own in sections():
            if FIGURE.search(own) and UNKNOWN["command"] not in own:
                self.assertTrue(COMMAND.search(text), f"{title}: figures of no command")

    def test_options_alone(self):
        """Where a table's row adds options to its section's command."""
        options = set(re.findall(r"`(--[a-z-]+)", PAGE))
        known = "".join(self.pages.values())
        for option in sorted(options):
            self.assertTrue(re.search(rf"^  {option}\b", known, flags=re.M), f"{option} is no option of any verb")


if __name__ == "__main__":
    if TOPIC == "commits":
        history()
    unittest.main(argv=sys.argv, defaultTest={"commits": "Commits", "commands": "Commands"}[TOPIC])
