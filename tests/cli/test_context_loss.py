#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program when its OpenGL context is reset under way: exit code 4, one sentence, and nothing half written.
lose_context.c stands in for the driver."""
import os
from pathlib import Path

from program import GRID, ProgramTest, main, preloadable, preloading


class Loss(ProgramTest):
    def setUp(self):
        super().setUp()
        self.need_opengl()
        self.library = preloadable(os.environ["LORASTER_LOSE_CONTEXT"], self.addCleanup)

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

    def on_device(self, backend):
        return f"--scanner {self.scanner} --backend {backend} --mode sampled {GRID}"

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


main({"context_loss": Loss})
