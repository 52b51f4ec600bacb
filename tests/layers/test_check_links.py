#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The build keeps to its own rules on who calls whom, and the check finds calls planted among objects that do.

usage: test_check_links.py SOURCE_ROOT BUILD COMPILER"""
import subprocess, sys, tempfile, unittest
from pathlib import Path

COMPILER = sys.argv.pop(3)
BUILD = Path(sys.argv.pop(2))
CHECK = Path(sys.argv.pop(1)) / "tools" / "check_links.py"


def run_check(build):
    done = subprocess.run([sys.executable, CHECK, build], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="loraster-test-")
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "folders.txt").write_text("low: \nhigh: low special_table\nspecial: \n")
        self.compile("low", "low_add", "int low_add(void); int low_add(void) { return 1; }")
        self.compile("special", "special", "int special_table(void); int special_table(void) { return 1; } "
                     "int special_other(void); int special_other(void) { return 2; }")

    def compile(self, folder, name, text):
        objects = self.build / "src" / "CMakeFiles" / f"lr_{folder}.dir" / folder
        (objects / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([COMPILER, "-c", "-x", "c", "-", "-o", objects / f"{name}.c.o"], input=text,
                       text=True, check=True)

    def high_calls(self, name):
        self.compile("high", "high", f"int {name}(void); int high(void); int high(void) {{ return {name}(); }}")
        return run_check(self.build)

    def fails(self, words):
        code, output = run_check(self.build)
        self.assertEqual(code, 1, output)
        self.assertIn(words, output)

    def test_this_build(self):
        code, output = run_check(BUILD)
        self.assertEqual(code, 0, output)

    def test_what_is_allowed(self):
        for name in ("low_add", "special_table", "puts"):
            code, output = self.high_calls(name)
            self.assertEqual(code, 0, output)

    def test_a_folder_that_is_not_named(self):
        self.high_calls("special_other")
        self.fails("src/high/high.c: calls special_other of special/")

    def test_upward(self):
        self.high_calls("low_add")
        self.compile("low", "low_up", "int high(void); int low_up(void); int low_up(void) { return high(); }")
        self.fails("src/low/low_up.c: calls high of high/")

    def check_a_circle(self, where, shown):
        self.high_calls("low_add")
        objects = self.build / where
        objects.mkdir(parents=True)
        for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
            subprocess.run([COMPILER, "-c", "-x", "c", "-", "-o", objects / f"{name}.c.o"], text=True,
                           input=f"int {name}(void); int {other}(void); int {name}(void) "
                           f"{{ return {other}(); }}", check=True)
        self.fails(f"in a circle: {shown}/one.c -> {shown}/two.c")

    def test_a_circle_of_the_viewers(self):
        self.check_a_circle("CMakeFiles/lr_viewer.dir/src/viewer/tools", "src/viewer/tools")

    def test_a_circle_of_the_programs(self):
        self.check_a_circle("src/cli/CMakeFiles/loraster.dir/recon", "src/cli/recon")

    def test_a_circle_of_the_benches(self):
        self.check_a_circle("bench/CMakeFiles/loraster-bench.dir", "src/bench")

    def test_a_circle(self):
        self.high_calls("low_add")
        for one, other in (("there", "back"), ("back", "there")):
            self.compile("low", one, f"int {one}(void); int {other}(void); int {one}(void) {{ return {other}(); }}")
        self.fails("in a circle: src/low/back.c -> src/low/there.c -> src/low/back.c")

    def test_nothing_was_built(self):
        (self.build / "folders.txt").write_text("empty: \n")
        self.fails("build first")


unittest.main()
