#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Designs compared: figures in closed form, the table, and the picture."""
import math, os, signal

from program import ProgramTest, main, read_nifti, read_png, ring_of

QUICK = "--backend native --grid 8,8,8 --voxel-mm 4 --radii-mm 2,6,10"


def polygon(rings, scale=1, name="polygon"):
    """A closed ring of flat modules without gaps, of crystals that fill their pitch."""
    half = 40 * math.tan(math.pi / 12)
    pitch = 2 * half / 8 * (1 - 1e-9)
    return ring_of(name, f"radius_mm: {40 * scale}, modules: 12, rings: {rings}, ring_pitch_mm: {8 * pitch * scale}",
                   f"crystals: [8, 8], pitch_mm: [{pitch * scale}, {pitch * scale}], "
                   f"face_mm: [{pitch * scale}, {pitch * scale}], depth_mm: {10 * scale}",
                   f"coincidence: {{field_of_view_mm: {60 * scale}}}"), half, 8 * pitch


class Compare(ProgramTest):
    def compare(self, *arguments):
        return self.json(" ".join(("scanner compare", *arguments)))["designs"]

    def test_coverage_and_volume(self):
        """A rectangle of half the sides a and b at the distance d takes up 4 atan(ab / (d sqrt(a^2 + b^2 + d^2)))."""
        for rings in (1, 2):
            text, half, length = polygon(rings)
            self.write(f"{rings}.yaml", text)
        near = "--grid 2,2,2 --voxel-mm 0.02"  # of the centre
        found = self.compare("1.yaml 2.yaml --backend native --radii-mm 2,6,10", near)
        for rings, design in zip((1, 2), found):
            along = 0.5 * rings * length
            angle = 4 * math.atan(half * along / (40 * math.sqrt(half ** 2 + along ** 2 + 40 ** 2)))
            self.assertAlmostEqual(design["coverage"], 12 * angle / (4 * math.pi), delta=1e-7)
            self.assertAlmostEqual(design["crystal_volume_mm3"], rings * 12 * length ** 2 * 10, delta=1)
            self.assertAlmostEqual(design["axial_mm"], rings * length, delta=1e-6)
            self.assertIsNone(design["stopped"])
            # Without gaps each pair whose one photon meets a crystal is a coincidence.
            self.assertAlmostEqual(design["centre_sensitivity"] / design["coverage"], 1, delta=2e-3)
        self.assertEqual(found[1]["num_crystals"], 2 * found[0]["num_crystals"])

    def test_the_same_design_twice(self):
        one, other = self.compare(f"{self.scanner} {self.scanner}", QUICK)
        self.assertEqual(one, other)

    def test_profiles_are_those_of_the_sensitivity(self):
        """By the verb of that name: the mean of the voxels near the axis, and of a ring of them."""
        grid = "--grid 8,8,8 --voxel-mm 4"
        self.good(f"sensitivity --scanner {self.scanner} --backend native --samples 1 {grid} -o s.nii")
        design, = self.compare(self.scanner, QUICK)
        values = read_nifti("s.nii")[3]

        def mean(z, wanted):
            rows = [(x - 3.5, y - 3.5, x + 8 * (y + 8 * z)) for x in range(8) for y in range(8)]
            chosen = [values[row] for x, y, row in rows if wanted(math.hypot(x, y))]
            return sum(chosen) / len(chosen)
        for z in range(8):
            self.assertAlmostEqual(design["axial_profile"][z], mean(z, lambda r: r <= 1.5), delta=1e-7)
        for n in range(4):
            self.assertAlmostEqual(design["radial_profile"][n], mean(4, lambda r: int(r) == n), delta=1e-7)
        self.assertAlmostEqual(design["mean_sensitivity"], sum(values) / 512, delta=1e-7)

    def test_a_wide_source_is_as_wide_as_it_is(self):
        """A Gaussian of two crystals' width, and what crystals add in the middle: half of their width."""
        text, _, length = polygon(2)
        self.write("ring.yaml", text)
        pitch = length / 8
        design, = self.compare("ring.yaml", QUICK, f"--source-mm {2 * pitch}")
        for fwhm_mm in design["fwhm_mm"][0]:
            self.assertAlmostEqual(fwhm_mm / (pitch * math.sqrt(4 + 0.25)), 1, delta=0.15)
        point, = self.compare("ring.yaml", QUICK)
        for fwhm_mm in point["fwhm_mm"][0]:
            self.assertTrue(0.3 * pitch < fwhm_mm < 0.8 * pitch, fwhm_mm)

    def test_twice_as_large_is_twice_as_blurred(self):
        """All lengths doubled: the same angles, thus the same sensitivity."""
        for scale in (1, 2):
            self.write(f"{scale}.yaml", polygon(1, scale)[0])
        one, = self.compare("1.yaml", QUICK)
        two, = self.compare("2.yaml --backend native --grid 8,8,8 --voxel-mm 8 --radii-mm 4,12,20")
        for small, large in zip(sum(one["fwhm_mm"], []), sum(two["fwhm_mm"], [])):
            self.assertAlmostEqual(large / small, 2, delta=0.02)
        self.assertAlmostEqual(two["centre_sensitivity"] / one["centre_sensitivity"], 1, delta=1e-4)
        self.assertAlmostEqual(two["crystal_volume_mm3"] / one["crystal_volume_mm3"], 8, delta=1e-6)

    def test_table_and_picture(self):
        self.write("long.yaml", ring_of("long ring", "radius_mm: 30, modules: 8, rings: 2, ring_pitch_mm: 16.5",
                                        "crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10",
                                        "coincidence: {field_of_view_mm: 30}", "crystal_mu_per_mm: 0.08"))
        done = self.good(f"scanner compare {self.scanner} long.yaml --backend native -o c.png")
        lines = done.stdout.splitlines()
        self.assertIn("small ring", lines[0])
        self.assertIn("long ring", lines[0])
        rows = {line[:34].strip(): line[34:].split() for line in lines[1:]}
        self.assertEqual(rows["crystals"], ["128", "256"])
        self.assertEqual(rows["photons stopped (%)"], ["-", f"{100 * (1 - math.exp(-0.8)):.4g}"])
        for name in ("solid angle at the centre (%)", "sensitivity at the centre (%)", "crystal volume (cm3)"):
            self.assertGreater(float(rows[name][1]), float(rows[name][0]))
        self.assertEqual(sum(name.startswith("FWHM at ") for name in rows), 9)
        self.assertIn("for comparing designs, not a scanner's resolution", lines[-2])
        self.assertIn("small ring: the FWHM is without depth of interaction", lines[-1])  # its material is not known
        width, height, pixels = read_png("c.png")
        self.assertTrue(width > 1000 and height > 500, (width, height))
        for colour in (bytes((0, 90, 160)), bytes((204, 85, 0))):  # of the two designs, in four charts and legends
            self.assertGreater(sum(row[x:x + 3] == colour for row in pixels for x in range(0, len(row), 3)), 1000)

    def test_a_source_that_nothing_sees(self):
        design, = self.compare(self.scanner, QUICK.replace("2,6,10", "2,6,100"))
        self.assertEqual(design["fwhm_mm"][2], [None, None, None])

    def test_a_design_with_layers(self):
        """Cut into two layers, crystals stop as much; beside layers each design counts what crystals stop."""
        small = "--backend native --grid 4,4,4 --voxel-mm 8 --radii-mm 2,6,10"  # with penetration each voxel takes long
        text = polygon(1)[0] + "crystal_mu_per_mm: 0.08\n"
        self.write("whole.yaml", text)
        self.write("cut.yaml", text.replace("depth_mm: 10", "depth_mm: 10, layers: [{depth_mm: 4}, {depth_mm: 6}]"))
        whole, cut = self.compare("whole.yaml cut.yaml", small)
        self.assertAlmostEqual(cut["stopped"], 1 - math.exp(-0.8), delta=1e-9)
        for name in ("stopped", "coverage", "crystal_volume_mm3", "inner_radius_mm", "axial_mm"):
            self.assertAlmostEqual(cut[name] / whole[name], 1, delta=1e-9)
        for name in ("centre_sensitivity", "mean_sensitivity"):
            self.assertAlmostEqual(cut[name] / whole[name], 1, delta=1e-3)
        unknown, = self.compare(self.scanner, small)
        self.assertEqual([design["fwhm_has_depth"] for design in (whole, cut, unknown)], [True, True, False])
        self.assertLess(whole["centre_sensitivity"], 0.8 * self.compare("whole.yaml", small)[0]["centre_sensitivity"])
        both = f"scanner compare whole.yaml cut.yaml {small}"
        self.assertTrue(self.json(both)["penetration"])
        self.assertIn("a design has layers", self.good(both).stderr)
        self.assertFalse(self.json(f"scanner compare whole.yaml {small}")["penetration"])

    def test_usage(self):
        self.refuse_each("compared scanners")

    def test_it_can_be_stopped(self):
        running = self.start("scanner compare siemens-mmr --backend native -o c.png")
        while "design 1" not in running.stderr.readline():
            pass
        running.send_signal(signal.SIGINT)
        running.communicate()
        self.assertNotEqual(running.returncode, 0)
        self.assertFalse(os.path.exists("c.png"))


main({"compare": Compare})
