#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wrong shader must fail its own test: each is changed in one place, in a copy of shaders/ that
LORASTER_SHADER_DIR names, and the tests that run it alone must then find wrong numbers.

usage: test_mutants.py SOURCE_ROOT FOLDER_OF_TESTS

environment:
  LORASTER_FULL   set: every mutant; else a tenth of them
  MUTANTS_SEED    any text: another tenth; default: the commit, or without git always the same
  MUTANTS         regular expression of the shaders, which are then all tried
"""
import os, random, re, shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

FOLDER = Path(sys.argv.pop())
ROOT = Path(sys.argv.pop()).resolve()
FULL = os.environ.get("LORASTER_FULL", "") not in ("", "0")

# Texts that compute nothing, and so need no mutant.
OTHERS = re.compile(r"(common/bindings|common/atomic64|kernels/language|listmode/(lines|others))")

# Shaders that graphics processors do not run.
OF_SOFTWARE = {"common/loops.glsl"}

# Shader, what is replaced, by what, and who must notice.
MUTANTS = [(name, old.replace(r"\n", "\n"), new.replace(r"\n", "\n"), tests) for name, tests, old, new in re.findall(
    r"^(\S+): (.+)\n    (.+)\n    (.+)$", (ROOT / "tests/render/mutants.txt").read_text(), re.M)]


def chosen():
    pattern = os.environ.get("MUTANTS")
    if pattern:
        return [mutant for mutant in MUTANTS if re.search(pattern, mutant[0])]
    if FULL:
        return MUTANTS
    seed = os.environ.get("MUTANTS_SEED", "")
    if not seed and shutil.which("git"):
        seed = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True,
                              check=False).stdout.strip()
    print(f"mutants of seed {seed}", flush=True)
    return random.Random(seed).sample(MUTANTS, -(-len(MUTANTS) // 10))


class Mutants(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp()) / "shaders"
        shutil.copytree(ROOT / "shaders", self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder.parent)

    def ask(self, test):
        """Exit code and output of a test with the copy's shaders."""
        program, _, name = test.partition(".")
        environment = dict(os.environ, LORASTER_SHADER_DIR=str(self.folder), LORASTER_CACHE="off",
                           LORASTER_TEST_VERBOSE="1", MESA_SHADER_CACHE_DIR=str(self.folder.parent))
        vector = [FOLDER.parent / "vector/test_vector", "gl"]
        command = vector if program == "vector" else [FOLDER / f"test_render_{program}"]
        done = subprocess.run([*map(str, command), *filter(None, [name])], text=True, env=environment,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_table(self):
        """Every shader has a mutant, and every mutant its place and a test that CTest runs."""
        for name, old, new, _ in MUTANTS:
            text = (ROOT / "shaders" / name).read_text()
            self.assertIn(old, text, f"{name}: no {old} to be changed")
            self.assertNotEqual(text, text.replace(old, new), name)
        mutated = {name for name, _, _, _ in MUTANTS}
        known = set(re.findall(r"add_test\(\W*render_([\w.]+)", (FOLDER / "CTestTestfile.cmake").read_text()))
        vector = (FOLDER.parent / "vector/CTestTestfile.cmake").read_text()
        known |= set(re.findall(r"add_test\(\W*(vector)[.]gl", vector))
        for name, _, _, tests in MUTANTS:
            for test in tests.split():
                self.assertTrue({test, test.partition(".")[0]} & known, f"{name}: ctest -N has no {test}")
        for path in sorted((ROOT / "shaders").rglob("*.*")):
            name = path.relative_to(ROOT / "shaders").as_posix()
            if not OTHERS.match(name):
                self.assertIn(name, mutated, f"{name} has no mutant")

    def test_copy(self):
        """Of the shaders as they are nothing is wrong."""
        code, output = self.ask("alone_orders.test_sum")
        if code == 77:
            self.skipTest(output)
        self.assertEqual(code, 0, output)

    def test_mutants(self):
        for name, old, new, tests in chosen():
            path = self.folder / name
            whole = path.read_text()
            path.write_text(whole.replace(old, new))
            for test in tests.split():
                with self.subTest(shader=name, change=f"{old} -> {new}", test=test):
                    code, output = self.ask(test)
                    if code == 77 or (name in OF_SOFTWARE and "llvmpipe" not in output):
                        self.skipTest(output)
                    self.assertIn("[ RUN", output)
                    self.assertNotIn("(program ", output, "the mutant does not compile")
                    self.assertGreater(code, 0, f"a wrong {name} goes unnoticed:\n{output}")
                    print(f"{name}: {old} -> {new}: noticed by {test}", flush=True)
            path.write_text(whole)


if __name__ == "__main__":
    unittest.main()
