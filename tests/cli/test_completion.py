#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion by shells and manual pages, which come from the tables of options as help does."""
import os, re, shutil, subprocess
from pathlib import Path

from program import ProgramTest, main

BENCH = ["bench correspondence", "bench direct", "bench listmode", "bench cluster"]


def options(text):
    return re.findall(r"(?m)^  (-[\w-]+) ", text)


class TableTest(ProgramTest):
    def verbs(self):
        return re.findall(r"(?m)^  ([a-z]+(?: [a-z]+)?)  +[A-Z]", self.good("--help").stdout)

    def offered(self, *words):
        done = self.good("--complete", *words)
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0] for line in done.stdout.splitlines()]


class Completion(TableTest):
    def test_verbs(self):
        verbs = self.verbs()
        self.assertGreater(len(verbs), 25)
        self.assertEqual(set(self.offered("")), {verb.split()[0] for verb in verbs})
        self.assertEqual(len(self.offered("")), len(set(self.offered(""))))
        self.assertEqual(self.offered("re"), ["render", "recon"])
        self.assertEqual(set(self.offered("scanner", "")), {"list", "show", "check", "convert", "compare"})
        self.assertEqual(set(self.offered("bench", "")), {verb.split()[1] for verb in BENCH})
        self.assertEqual(self.offered("matrix", "j"), ["join"])
        self.assertTrue({"join", "verify", "--by"} <= set(self.offered("matrix", "")))
        for words in ([], ["zzz"], ["zzz", ""], ["recon", "--zzz"], ["scanner", "zzz", ""]):
            self.assertEqual(self.offered(*words), [], words)

    def test_options(self):
        for verb in self.verbs():
            with self.subTest(verb):
                known = options(self.good(*verb.split(), "--help").stdout)
                self.assertEqual(self.offered(*verb.split(), "-"), known)
                self.assertEqual(self.offered(*verb.split(), "--quiet", "--js"), ["--json"])

    def test_values(self):
        """The words that an option may have are those that its error names."""
        compared = 0
        # Under sanitizers, which start slowly, those of every fifth verb: all are in tables of one form.
        for verb in self.verbs()[::5 if os.environ.get("LORASTER_SANITIZED") else 1]:
            for option in options(self.good(*verb.split(), "--help").stdout):
                words = self.offered(*verb.split(), option, "")
                if not words or option == "--scanner":
                    continue
                said = re.search(r"must be one of (.*)", self.run_program(*verb.split(), option, "zzz").stderr)
                if said:  # and not that something is missing
                    compared += 1
                    self.assertEqual(said[1].split(", "), words, (verb, option))
        self.assertGreater(compared, 2 if os.environ.get("LORASTER_SANITIZED") else 12)
        self.assertEqual(self.offered("recon", "--mode", "e"), ["exact"])
        self.assertEqual(self.offered("recon", "--mode", "=", "e"), ["exact"])
        self.assertEqual(self.offered("recon", "--mode", "="), self.offered("recon", "--mode", ""))
        self.assertEqual(self.offered("recon", "--data", "-"), [])
        self.assertEqual(self.offered("bench", "direct", "--workload", "c"), ["clinical", "caches"])

    def test_presets(self):
        known = [one["preset"] for one in self.json("scanner", "list")["scanners"]]
        self.assertEqual(self.offered("recon", "--scanner", ""), known)
        self.assertEqual(self.offered("scanner", "show", "siemens-mm"), ["siemens-mmr"])

    def shell(self, shell, script):
        if shutil.which(shell) is None:
            self.skipTest(f"there is no {shell}")
        folder = Path(self.program).resolve().parent
        return subprocess.run([shell, "-c", script], check=True, capture_output=True, text=True, cwd=self.folder,
                              env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}",
                                       COMPLETION=str(self.source_root / "assets/completion"))).stdout

    def test_bash(self):
        done = self.shell("bash", """
            . "$COMPLETION/loraster.bash"
            complete -p loraster
            complete_words() {
                COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
                _loraster loraster; echo "${COMPREPLY[*]}"
            }
            complete_words loraster sc
            complete_words loraster scanner ''
            complete_words loraster recon --algorithm ''
            complete_words loraster recon --algorithm = o
            complete_words loraster recon -o x""")
        self.assertEqual(done.splitlines(), ["complete -o default -F _loraster loraster", "scanner",
                                             "list show check convert compare", "mlem osem ramla bsrem", "osem", ""])

    def test_zsh(self):
        done = self.shell("zsh", """
            _describe() { print -l -- "${(@P)2}" }
            _files() { print files }
            try() { words=("$@"); CURRENT=$#; . "$COMPLETION/_loraster" }
            try loraster scanner l
            try loraster recon --algorithm o
            try loraster recon -o x""").splitlines()
        self.assertRegex(done[0], r"^list:Lists the built-in scanners: ")
        self.assertEqual(done[1:], ["osem:", "files"])

    def test_fish(self):
        done = self.shell("fish", """
            source $COMPLETION/loraster.fish
            complete -C 'loraster scanner l'
            complete -C 'loraster recon --algorithm os'""").splitlines()
        self.assertRegex(done[0], "^list\tLists the built-in scanners: ")
        self.assertEqual(done[1], "osem")


class Manuals(TableTest):
    def test_pages(self):
        self.good("--manuals", "man")
        verbs = [verb for verb in self.verbs() if verb not in BENCH]
        self.assertEqual(sorted(os.listdir(self.path("man"))),
                         sorted(["loraster.1", *(f"loraster-{verb.replace(' ', '-')}.1" for verb in verbs)]))
        top = (self.folder / "man/loraster.1").read_text()
        for verb in self.verbs():
            self.assertIn(f".B {verb}\n", top)
        for verb in verbs:
            page = (self.folder / f"man/loraster-{verb.replace(' ', '-')}.1").read_text()
            help_page = self.good(*verb.split(), "--help").stdout
            self.assertEqual([option.replace("\\", "") for option in re.findall(r"\.TP\n\.B (\S+)", page)],
                             options(help_page))
            plain = page.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
            for sentence in re.findall(r"(?m)^  \S.{24} ?\S* +(\S.*)$", help_page):
                self.assertIn(sentence.split("  ")[-1], plain)
        self.refuse(1, "no/such", "--manuals", "no/such/folder")

    def test_man_reads_them(self):
        if shutil.which("man") is None:
            self.skipTest("there is no man")
        self.good("--manuals", "man")
        for path in sorted((self.folder / "man").iterdir()):
            done = subprocess.run(["man", "--warnings", "-l", path], check=True, capture_output=True, text=True,
                                  env=dict(os.environ, MANWIDTH="100", LC_ALL="C.UTF-8", MAN_KEEP_FORMATTING=""))
            if "system has been minimized" in done.stdout:
                self.skipTest("man is a stand-in that reads nothing")
            self.assertEqual(done.stderr, "", path)
            self.assertRegex(done.stdout, rf"(?m)^ +{path.stem} +- .*\n(.*\n)*SYNOPSIS\n +loraster.* \[options\]$")


main({"completion": Completion, "manuals": Manuals})
