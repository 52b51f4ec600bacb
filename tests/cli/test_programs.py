#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which shader programs a run compiles: none that it does not run, each of them in one form, and those of a projection
side by side. On a graphics processor whose driver has not seen them yet, compiling them is most of the time of a first
run. trace_programs.c writes down what the program asks of the driver."""
import os
from pathlib import Path

from program import GRID, ProgramTest, main, preloadable, preloading


class Programs(ProgramTest):
    def setUp(self):
        super().setUp()
        self.need_opengl()
        self.library = preloadable(os.environ["LORASTER_TRACE_PROGRAMS"], self.addCleanup)

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

    def on_device(self, backend, mode):
        return f"--scanner {self.scanner} --backend {backend} --mode {mode} {GRID}"

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


main({"programs": Programs})
