#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program asks of the driver of OpenGL, and what it does when its context is reset under way. A library that
is preloaded stands in for the driver, or writes down what it is asked for."""
import os
from pathlib import Path

from program import GRID, ProgramTest, main, preloadable, preloading


class DriverTest(ProgramTest):
    preloaded = ""

    def setUp(self):
        super().setUp()
        self.need_opengl()
        self.library = preloadable(os.environ[self.preloaded], self.addCleanup)

    def on_device(self, backend, mode="sampled"):
        return f"--scanner {self.scanner} --backend {backend} --mode {mode} {GRID}"


class Loss(DriverTest):
    """A reset means exit code 4, one sentence, and nothing half written. lose_context.c makes it."""
    preloaded = "LORASTER_LOSE_CONTEXT"

    def losing_at(self, number, **more):
        """An environment in which the question of that number is answered by a reset."""
        return preloading(self.library, LOSE_CONTEXT_AT=str(number), **more)

    def count_questions(self, *arguments):
        count = "count"
        self.good(*arguments, env=self.losing_at(1 << 30, LOSE_CONTEXT_COUNT=count))
        total = int(Path(count).read_text())
        os.remove(count)
        return total

    def lose_everywhere(self, output, *arguments):
        """At no more than three questions, the first and the last among them; with LORASTER_FULL at six."""
        most = 6 if os.environ.get("LORASTER_FULL") else 3
        total = self.count_questions(*arguments)
        os.remove(output)
        print(f"{arguments[0]}: {total} questions")
        self.assertGreater(total, 0)
        for number in sorted({round(k * (total - 1) / (most - 1)) for k in range(most)}):
            self.refuse(4, ["was reset by its driver", "run again"], *arguments, env=self.losing_at(number))

    def test_sensitivity(self):
        for backend in ("raster", "compute"):
            self.lose_everywhere("s.nii", f"sensitivity {self.on_device(backend)}", "--store no -o s.nii")

    def test_matrix(self):
        for backend in ("raster", "compute"):
            for name in ("m.tsv", "m.h5"):
                self.lose_everywhere(name, f"matrix {self.on_device(backend)}", f"-o {name}")

    def test_listmode(self):
        """Vectors that outlive their operator are freed without a word."""
        events = "e.Cdh"
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 2000 -o {events}")
        self.lose_everywhere("x.nii", "recon", f"--scanner {self.scanner} --backend compute {GRID}",
                             f"--operator listmode --events {events} --algorithm osem --subsets 2 --iterations 2",
                             "-o x.nii")

    def test_recon(self):
        data = self.expected_counts()
        for store in ("yes", "no"):
            self.lose_everywhere("x.nii", "recon", self.on_device("compute"), f"--data {data} --iterations 3",
                                 f"--store {store} -o x.nii")


class Programs(DriverTest):
    """Which shader programs a run compiles: none that it does not run, each of them in one form, and those of a
    projection side by side. On a graphics processor whose driver has not seen them yet, compiling them is most of the
    time of a first run. trace_programs.c writes down what the program asks for."""
    preloaded = "LORASTER_TRACE_PROGRAMS"

    def trace(self, *arguments, **more):
        """(what the run said, lines of the trace: [what, label, hash])"""
        trace = Path("trace")
        trace.write_text("")
        done = self.good(*arguments, env=preloading(self.library, TRACE_PROGRAMS=str(trace), **more))
        return done, [line.split("\t")[:3] for line in trace.read_text().splitlines()]

    def of(self, trace, what):
        return sorted((label, digest) for kind, label, digest in trace if kind == what)

    def all_run(self, *arguments):
        _, trace = self.trace(*arguments)
        linked = self.of(trace, "link")
        self.assertGreater(len(linked), 0)
        self.assertEqual(linked, self.of(trace, "use"))
        return trace

    def test_info_compiles_nothing(self):
        for more in ({}, {"force_gl_renderer": "a graphics processor"}):
            done, trace = self.trace("info", **more)
            self.assertIn("raster    works on", done.stdout)
            self.assertIn("compute   works on", done.stdout)
            self.assertEqual(trace, [])

    def test_what_is_compiled_runs(self):
        data = self.expected_counts()
        image = self.image()
        for backend, mode in (("raster", "sampled"), ("compute", "sampled"), ("compute", "exact")):
            on = self.on_device(backend, mode)
            scanner = on.replace(GRID, "")
            with self.subTest(backend=backend, mode=mode):
                self.all_run(f"sensitivity {on} --store no -o s.nii")
                self.all_run(f"project {scanner} --image {image} --store no -o p.h5")
                self.all_run(f"matrix {on} -o m.tsv")
                for store in ("yes", "no", "auto"):
                    self.all_run(f"recon {on} --data {data} --iterations 2 --store {store} -o x.nii")

    def test_pictures(self):
        trace = self.all_run(f"render --scanner {self.scanner} --at=1.13,2.27,-1.41 -o pictures")
        self.assertEqual([label for label, _ in self.of(trace, "link")], ["correspondence"])

    def has_graphics_processor(self):
        return any(not d["software"] for d in self.json("info")["devices"] if d["usable"])

    def test_auto_compiles_nothing_for_a_processor(self):
        """Where no graphics processor runs, what it would take is not looked at."""
        data = self.expected_counts()
        if self.has_graphics_processor():
            self.skipTest("a graphics processor")
        _, trace = self.trace(f"recon --scanner {self.scanner} {GRID} --data {data} --iterations 2 -o x.nii")
        self.assertEqual(self.of(trace, "link"), [])

    def test_family_direct(self):
        image = self.image(size=(24, 24, 12), values=[1.0] * (24 * 24 * 12), voxel_mm=(4, 4, 4))
        for storage in ("buffers", "textures"):
            on = f"--backend compute --storage {storage} --tof-ps 150"
            self.all_run(f"direct project --image {image} {on} --azimuths 2 --tilts 1 -o h.h5")
            self.all_run(f"recon --operator direct --data h.h5 {on} --algorithm ramla --views-per-block 1",
                         "--iterations 2 -o x.nii")

    def test_side_by_side(self):
        """The driver has all of a projection's programs before it is asked what came of the first."""
        _, trace = self.trace("sensitivity", self.on_device("compute", "exact"), "--store no -o s.nii")
        kinds = [kind for kind, _, _ in trace if kind != "use"]
        self.assertGreater(kinds.count("link"), 1)
        self.assertEqual(kinds, sorted(kinds, reverse=True), trace)

    def test_slow_drivers_are_told_of(self):
        done, trace = self.trace("sensitivity", self.on_device("compute", "exact"), "--store no -o s.nii",
                                 TRACE_SLOW="1000000")
        self.assertIn("compiles the shader of \"ones in stack order\"", done.stderr)
        self.assertEqual(trace[0][:2], ["threads", "all"])
        done, _ = self.trace("sensitivity", self.on_device("compute", "exact"), "--store no -o s.nii", TRACE_SLOW="3")
        self.assertNotIn("compiles the shader", done.stderr)


main({"context_loss": Loss, "programs": Programs})
