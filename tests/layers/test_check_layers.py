#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layer check must find each violation planted in a clean tree, and nothing in the clean tree.

usage: test_check_layers.py SOURCE_ROOT
"""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1)).resolve()
HEAD = "/* SPDX-License-Identifier: Apache-2.0\n * Copyright The LORaster authors */\n"


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

    def refuse(self, name, body, expected, head=HEAD):
        self.plant(name, body, head)
        code, output = self.run_check()
        self.assertEqual(code, 1, output)
        self.assertIn(f"{name}:", output)
        self.assertIn(expected, output)
        self.assertIn("1 violations", output)

    def accept(self, name, body):
        self.plant(name, body)
        code, output = self.run_check()
        self.assertEqual(code, 0, output)

    def test_clean(self):
        code, output = self.run_check()
        self.assertEqual(code, 0, output)
        self.assertIn("1 files, 0 violations", output)

    def test_sibling_backend(self):
        self.refuse("correspondence/compute/a.c", '#include "correspondence/cpu/elements.h"\n',
                    'correspondence/ may not include')

    def test_upward(self):
        self.refuse("model/a.c", '#include "io/files/yaml.h"\n', 'model/ may not include')

    def test_recon_sees_no_model(self):
        self.refuse("recon/a.c", '#include "model/lors/rows.h"\n', 'recon/ may not include')

    def test_one_header_of_a_folder(self):
        self.accept("direct/cpu/a.c", '#include "operator/backend.h"\n')
        self.refuse("direct/cpu/b.c", '#include "operator/stored.h"\n', 'direct/cpu/ may not include')

    def test_cli_internal(self):
        self.accept("cli/a.c", '#include "args.h"\n#include <lr/lr.h>\n')
        self.refuse("cli/b.c", '#include "base/mem.h"\n', "its own headers only")

    def test_cli_angled(self):
        self.refuse("cli/a.c", "#include <model/lors/rows.h>\n", "its own headers only")

    def test_bench(self):
        self.accept("bench/a.c", '#include "bench.h"\n#include "cli/common.h"\n#include "fft/fft.h"\n')
        self.accept("bench/fft/a.c", '#include "fft/fft.h"\n#include "base/mem.h"\n#include <fftw3.h>\n')
        self.refuse("bench/b.c", '#include "cli/recon.h"\n', "its own headers only")

    def test_bench_internal(self):
        self.refuse("bench/a.c", '#include "base/mem.h"\n', "its own headers only")

    def test_transforms_outside_bench(self):
        self.refuse("cli/a.c", "#include <fftw3.h>\n", "<fftw3.h> belongs to fft/")

    def test_transforms_see_no_bench(self):
        self.refuse("bench/fft/a.c", '#include "cli/common.h"\n', "fft/ may not include")

    def test_unknown_folder_of_bench(self):
        self.plant("bench/dct/a.c", "")
        code, output = self.run_check()
        self.assertEqual(code, 1)
        self.assertIn("bench/dct/a.c: a folder that src/README.md lacks", output)

    def test_public_header(self):
        self.refuse("lr/a.h", '#include "base/log.h"\n', "lr/ includes its own headers")

    def test_graphics_headers(self):
        self.accept("gl/a.c", "#include <EGL/egl.h>\n#include <GL/glew.h>\n")
        self.refuse("correspondence/a.c", "#include <EGL/egl.h>\n", "<EGL/egl.h> belongs to gl/")

    def test_gl_in_operator(self):
        self.refuse("operator/a.c", "#  include <GL/glew.h>\n", "<GL/glew.h> belongs to")

    def test_windows_and_mpi(self):
        self.refuse("gl/a.c", "#include <GLFW/glfw3.h>\n", "belongs to viewer/")

    def test_mpi(self):
        self.refuse("operator/a.c", "#include <mpi.h>\n", "<mpi.h> belongs to dist/")

    def test_hdf5_outside_io(self):
        self.refuse("cli/a.c", "#include <hdf5.h>\n", "<hdf5.h> belongs to hdf5_writer/")

    def test_comment_is_no_include(self):
        self.accept("model/a.c", '/*\n#include "io/files/yaml.h"\n*/\n')

    def test_opens_files(self):
        self.refuse("model/a.c", 'void *a(void)\n{\n    return fopen("x", "r");\n}\n',
                    "may not open files")

    def test_long_file(self):
        self.refuse("model/a.c", "\n" * 1198, "file of 1200 lines")
        self.plant("model/a.c", "\n" * 897)
        self.assertEqual(self.run_check()[0], 0)

    def test_long_function(self):
        self.accept("model/a.c", "void a(void)\n{\n" + "    ;\n" * 120 + "}\n")
        self.refuse("model/b.c", "void b(void)\n{\n" + "    ;\n" * 121 + "}\n",
                    "function of 121 lines")

    def test_licence(self):
        self.refuse("model/a.c", "int a;\n", "the file must start with", head="")

    def test_licence_of_tests(self):
        (self.folder / "tests").mkdir()
        (self.folder / "tests" / "a.c").write_text("int a;\n")
        code, output = self.run_check()
        self.assertEqual(code, 1, output)
        self.assertIn("tests/a.c:1: the licence line", output)

    def test_unknown_folder(self):
        self.plant("viewer2/a.c", "")
        code, output = self.run_check()
        self.assertEqual(code, 1)
        self.assertIn("src/viewer2/a.c: a folder that src/README.md lacks", output)

    def test_table_disagrees(self):
        readme = self.folder / "src" / "README.md"
        text = readme.read_text()
        changed = text.replace("| `model/`, `plugin/plugin.h` | use OpenGL |", "| `model/`, `gl/` | use OpenGL |")
        self.assertNotEqual(text, changed)
        readme.write_text(changed)
        code, output = self.run_check()
        self.assertEqual(code, 1)
        self.assertIn("src/README.md allows io/", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
