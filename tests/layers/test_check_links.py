#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The build keeps to its own rules on who calls whom, and the check finds calls planted among objects
that do.

usage: test_check_links.py SOURCE_ROOT BUILD COMPILER"""
import subprocess
import sys
import tempfile
import unittest
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
        objects = self.build / "src" / folder / "CMakeFiles" / f"lr_{folder}.dir"
        (objects / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([COMPILER, "-c", "-x", "c", "-", "-o", objects / f"{name}.c.o"], input=text,
                       text=True, check=True)

    def high_calls(self, name):
        self.compile("high", "high", f"int {name}(void); int high(void); "
                     f"int high(void) {{ return {name}(); }}")
        return run_check(self.build)

    def test_this_build(self):
        code, output = run_check(BUILD)
        self.assertEqual(code, 0, output)

    def test_what_is_allowed(self):
        for name in ("low_add", "special_table", "puts"):
            code, output = self.high_calls(name)
            self.assertEqual(code, 0, output)

    def test_a_folder_that_is_not_named(self):
        code, output = self.high_calls("special_other")
        self.assertEqual(code, 1, output)
        self.assertIn("src/high/high.c: calls special_other of special/", output)

    def test_upward(self):
        self.high_calls("low_add")
        self.compile("low", "low_up", "int high(void); int low_up(void); "
                     "int low_up(void) { return high(); }")
        code, output = run_check(self.build)
        self.assertEqual(code, 1, output)
        self.assertIn("src/low/low_up.c: calls high of high/", output)

    def test_a_dispatcher(self):
        """A circle through a file that has a table of what it calls is none."""
        with open(self.build / "folders.txt", "a") as file:
            file.write("io: \n")
        self.high_calls("low_add")
        for name, other in (("one", "images/image"), ("images/image", "one")):
            mine, called = Path(name).name, Path(other).name
            self.compile("io", name, f"int {mine}(void); int {called}(void); "
                         f"int {mine}(void) {{ return {called}(); }}")
        code, output = run_check(self.build)
        self.assertEqual(code, 0, output)

    def test_a_circle_of_the_viewers(self):
        self.high_calls("low_add")
        objects = self.build / "CMakeFiles" / "lr_viewer.dir" / "src" / "viewer" / "tools"
        objects.mkdir(parents=True)
        for name, other in (("one", "two"), ("two", "tools"), ("tools", "one")):
            subprocess.run([COMPILER, "-c", "-x", "c", "-", "-o", objects / f"{name}.c.o"], text=True,
                           input=f"int {name}(void); int {other}(void); int {name}(void) "
                           f"{{ return {other}(); }}", check=True)
        code, output = run_check(self.build)
        self.assertEqual(code, 1, output)
        self.assertIn("in a circle: src/viewer/tools/one.c -> src/viewer/tools/two.c", output)

    def test_a_circle(self):
        self.high_calls("low_add")
        for one, other in (("there", "back"), ("back", "there")):
            self.compile("low", one, f"int {one}(void); int {other}(void); "
                         f"int {one}(void) {{ return {other}(); }}")
        code, output = run_check(self.build)
        self.assertEqual(code, 1, output)
        self.assertIn("in a circle: src/low/back.c -> src/low/there.c -> src/low/back.c", output)

    def test_nothing_was_built(self):
        (self.build / "folders.txt").write_text("empty: \n")
        code, output = run_check(self.build)
        self.assertEqual(code, 1, output)
        self.assertIn("build first", output)


if __name__ == "__main__":
    unittest.main()
