#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the time line of OpenGL passes (LORASTER_GL_TRACE)."""
import json
import os
import time
from pathlib import Path

from program import ProgramTest, main

COMPUTE = ["--backend", "compute"]


class Trace(ProgramTest):
    def setUp(self):
        super().setUp()
        if not [d for d in self.json("info")["devices"] if d["usable"]]:
            self.skipTest("no OpenGL device")

    def project(self, folder):
        self.image()
        began = time.monotonic()
        done = self.run_program("project", "--scanner", self.scanner, "--image", "x.nii.gz", *COMPUTE,
                                "-o", "p.h5", env={**os.environ, "LORASTER_GL_TRACE": folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done, 1e6 * (time.monotonic() - began)

    def test_trace_has_each_pass_on_both_tracks(self):
        folder = Path(self.path("trace"))
        folder.mkdir()
        _, all_us = self.project(str(folder))
        files = list(folder.iterdir())
        self.assertTrue(files)
        self.assertEqual({file.suffix for file in files}, {".json"})
        events = [event for file in files
                  for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
        host = [event["name"] for event in events if event["tid"] == 1]
        device = [event for event in events if event["tid"] == 2]
        self.assertEqual([name for name in host if not name.startswith("wait: ")],
                         [event["name"] for event in device])
        self.assertTrue(any("forward" in event["name"] for event in device), device)
        for event in device:
            self.assertGreaterEqual(event["dur"], 0)
            self.assertLess(event["dur"], all_us)
        begins = [event["ts"] for event in device]
        self.assertEqual(begins, sorted(begins))

    def test_trace_without_a_folder_is_told(self):
        done, _ = self.project(self.path("nowhere"))
        self.assertIn("LORASTER_GL_TRACE has to name a folder", done.stderr)
        self.assertTrue(Path(self.path("p.h5")).exists())

    def test_trace_is_off_without_the_variable(self):
        self.project("")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("gl-")], [])


if __name__ == "__main__":
    main({"trace": Trace})
