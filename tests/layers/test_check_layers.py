#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layer check must find each violation planted in a clean tree, and nothing in the clean tree.

usage: test_check_layers.py SOURCE_ROOT"""
import shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
HEAD = "/* SPDX-License-Identifier: Apache-2.0\n * Copyright The LORaster authors */\n"


# Name of a test: (file that is planted, its text, words of the message).
REFUSED = {
    "sibling backend": ("correspondence/compute/a.c", '#include "correspondence/cpu/elements.h"\n',
                        'correspondence/ may not include'),
    "upward": ("model/a.c", '#include "io/files/yaml.h"\n', 'model/ may not include'),
    "recon sees no model": ("recon/a.c", '#include "model/lors/rows.h"\n', 'recon/ may not include'),
    "cli angled": ("cli/a.c", "#include <model/lors/rows.h>\n", "its own headers only"),
    "bench internal": ("bench/a.c", '#include "base/mem.h"\n', "its own headers only"),
    "transforms outside bench": ("cli/a.c", "#include <fftw3.h>\n", "<fftw3.h> belongs to fft/"),
    "transforms see no bench": ("bench/fft/a.c", '#include "cli/common.h"\n', "fft/ may not include"),
    "public header": ("lr/a.h", '#include "base/log.h"\n', "lr/ includes its own headers"),
    "gl in operator": ("operator/a.c", "#  include <GL/glew.h>\n", "<GL/glew.h> belongs to"),
    "windows and mpi": ("gl/a.c", "#include <GLFW/glfw3.h>\n", "belongs to viewer/"),
    "mpi": ("operator/a.c", "#include <mpi.h>\n", "<mpi.h> belongs to dist/"),
    "hdf5 outside io": ("cli/a.c", "#include <hdf5.h>\n", "<hdf5.h> belongs to hdf5_writer/"),
    "opens files": ("model/a.c", 'void *a(void)\n{\n    return fopen("x", "r");\n}\n', "may not open files")}


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "src").mkdir()
        (self.folder / "bench").mkdir()
        shutil.copy(ROOT / "src" / "README.md", self.folder / "src")
        self.plant("model/clean.c", '#include "base/log.h"\n#include <lr/grid.h>\n')

    def tearDown(self):
        shutil.rmtree(self.folder)

    def plant(self, name, body, head=HEAD):
        path = self.folder / ("" if name.startswith("bench/") else "src") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + body)

    def run_check(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "check_layers.py"),
                               str(self.folder)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def fails(self, *words):
        code, output = self.run_check()
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def refuse(self, name, body, expected, head=HEAD):
        self.plant(name, body, head)
        self.fails(f"{name}:", expected, "1 violations")

    def accept(self, name, body):
        self.plant(name, body)
        code, output = self.run_check()
        self.assertEqual(code, 0, output)

    def test_clean(self):
        code, output = self.run_check()
        self.assertEqual(code, 0, output)
        self.assertIn("1 files, 0 violations", output)

    def test_one_header_of_a_folder(self):
        self.accept("direct/cpu/a.c", '#include "operator/backend.h"\n')
        self.refuse("direct/cpu/b.c", '#include "operator/stored.h"\n', 'direct/cpu/ may not include')

    def test_cli_internal(self):
        self.accept("cli/a.c", '#include "args.h"\n#include <lr/lr.h>\n')
        self.refuse("cli/b.c", '#include "base/mem.h"\n', "its own headers only")

    def test_bench(self):
        self.accept("bench/a.c", '#include "bench.h"\n#include "cli/common.h"\n#include "fft/fft.h"\n')
        self.accept("bench/fft/a.c", '#include "fft/fft.h"\n#include "base/mem.h"\n#include <fftw3.h>\n')
        self.refuse("bench/b.c", '#include "cli/recon.h"\n', "its own headers only")

    def test_unknown_folder_of_bench(self):
        self.plant("bench/dct/a.c", "")
        self.fails("bench/dct/a.c: a folder that src/README.md lacks")

    def test_graphics_headers(self):
        self.accept("gl/a.c", "#include <EGL/egl.h>\n#include <GL/glew.h>\n")
        self.refuse("correspondence/a.c", "#include <EGL/egl.h>\n", "<EGL/egl.h> belongs to gl/")

    def test_comment_is_no_include(self):
        self.accept("model/a.c", '/*\n#include "io/files/yaml.h"\n*/\n')

    def test_long_file(self):
        self.refuse("model/a.c", "\n" * 1198, "file of 1200 lines")
        self.plant("model/a.c", "\n" * 897)
        self.assertEqual(self.run_check()[0], 0)

    def test_long_function(self):
        self.accept("model/a.c", "void a(void)\n{\n" + "    ;\n" * 120 + "}\n")
        self.refuse("model/b.c", "void b(void)\n{\n" + "    ;\n" * 121 + "}\n", "function of 121 lines")

    def test_licence(self):
        self.refuse("model/a.c", "int a;\n", "the file must start with", head="")

    def test_licence_of_tests(self):
        (self.folder / "tests").mkdir()
        (self.folder / "tests" / "a.c").write_text("int a;\n")
        self.fails("tests/a.c:1: the licence line")

    def test_unknown_folder(self):
        self.plant("viewer2/a.c", "")
        self.fails("src/viewer2/a.c: a folder that src/README.md lacks")

    def test_table_disagrees(self):
        readme = self.folder / "src" / "README.md"
        text = readme.read_text()
        changed = text.replace("| `model/`, `plugin/plugin.h` | use OpenGL |", "| `model/`, `gl/` | use OpenGL |")
        self.assertNotEqual(text, changed)
        readme.write_text(changed)
        self.fails("src/README.md allows io/")


for name, case in REFUSED.items():
    setattr(Planted, "test_" + name.replace(" ", "_"), lambda self, case=case: self.refuse(*case))
unittest.main(argv=sys.argv)
