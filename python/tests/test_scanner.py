# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
import gc, logging, pickle

import numpy as np
import pytest

import loraster as lr


def test_crystals_of_a_ring_are_where_its_radius_says(scanner):
    assert scanner.num_crystals == 12 * 2 * 24
    assert scanner.crystals.shape == (scanner.num_crystals, 3)
    # The centre of the first module's crystals, half of the depth behind the front face.
    first = scanner.crystals[:24]
    np.testing.assert_allclose(first[:, 0], 50 + 15 / 2, atol=1e-9)
    np.testing.assert_allclose(first.mean(axis=0)[1:], [0, -9], atol=1e-9)


def test_a_ring_from_arrays_is_the_ring(scanner):
    angles = np.radians(np.tile(30.0 * np.arange(12), 2))
    heights = np.repeat([-9.0, 9.0], 12)
    inwards = -np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    along = np.stack([-np.sin(angles), np.cos(angles), 0 * angles], axis=1)
    centres = -50 * inwards
    centres[:, 2] = heights
    made = lr.Scanner.from_arrays(centres, inwards, along, crystals=(6, 4), pitch=4.0, depth=15.0, field_of_view_mm=60)
    np.testing.assert_allclose(made.crystals, scanner.crystals, atol=1e-9)
    with pytest.raises(ValueError, match="normals has vectors of length 50 to 50"):
        lr.Scanner.from_arrays(centres, 50 * inwards, along, crystals=(6, 4), pitch=4.0, depth=15.0)
    with pytest.raises(ValueError, match="looks away"):
        lr.Scanner.from_arrays(centres, -inwards, along, crystals=(6, 4), pitch=4.0, depth=15.0)


def test_lors_and_crystals_are_each_others_inverse(scanner, rng):
    lors = rng.integers(0, scanner.num_lors, 500)
    found = scanner.lor_of(scanner.lor_crystals(lors)[:, ::-1])
    assert set(found[found != lors]) <= {-1}  # out of coincidence
    assert (found == lors).sum() > 250
    with pytest.raises(IndexError, match="there is no LOR"):
        scanner.lor_crystals([scanner.num_lors])
    with pytest.raises(IndexError, match="there is no crystal"):
        scanner.lor_of([[0, scanner.num_crystals]])


def test_the_doctor_suspects_a_grid_that_leaves_the_bore(scanner):
    assert not any(finding.is_suspect for finding in scanner.check())
    wide = scanner.check((100, 100, 4), 4.0)
    assert any(finding.is_suspect and finding.remedy for finding in wide)


def test_half_a_sphere_is_no_suspect():
    k = np.arange(40) + 0.5
    z, angle = 1 - k / 40, np.pi * (1 + 5**0.5) * k
    out = np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)
    along = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    helmet = lr.Scanner.from_arrays(150 * out, -out, along, crystals=(4, 4), pitch=4, depth=20)
    assert not any(finding.is_suspect for finding in helmet.check((30, 30, 20), 4.0))


def test_overlapping_modules_are_refused_by_a_sentence():
    with pytest.raises(ValueError, match="overlap by .* mm"):
        lr.Scanner.ring(radius_mm=20, modules=12, crystals=(6, 4), pitch_mm=4, depth_mm=15)
    with pytest.raises(TypeError, match="has no radius"):
        lr.Scanner.ring(radius_mm=50, modules=12, crystals=(6, 4), pitch_mm=4, depth_mm=15, radius=3)


def test_presets_and_files(scanner, tmp_path):
    assert "ge-explore-vista-dr" in lr.Scanner.presets()
    lr.write(tmp_path / "ring.yaml", scanner)
    np.testing.assert_allclose(lr.read(tmp_path / "ring.yaml").crystals, scanner.crystals, atol=1e-6)
    with pytest.raises(ValueError, match="no scanner preset"):
        lr.Scanner("nothing")
    assert scanner._repr_png_().startswith(b"\x89PNG")


def test_a_diameter_for_the_radius_is_warned_of(tmp_path, caplog):
    ring = ("ring: {radius_mm: %d, modules: 12}\n"
            "module: {crystals: [6, 4], pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 15}")
    for radius, word in ((50, ""), (100, "the radius looks like the diameter")):
        (tmp_path / "ring.yaml").write_text(ring % radius)
        with caplog.at_level(logging.WARNING, "loraster"):
            lr.Scanner(tmp_path / "ring.yaml")
        assert word in caplog.text and bool(word) == bool(caplog.records)


def test_an_operator_keeps_its_scanner():
    made = lr.Scanner.ring(radius_mm=50, modules=12, crystals=(4, 2), pitch_mm=4, depth_mm=15)
    op = lr.Operator(made, (4, 4, 2), 4.0, backend="native", store=False)
    part = op.subset(0, 2)
    del made, op
    gc.collect()
    assert np.isfinite(part @ np.ones((2, 4, 4), np.float32)).all()


def test_pickling_is_refused_by_a_sentence(scanner, native):
    for thing in (scanner, native):
        with pytest.raises(TypeError, match="cannot be pickled: "):
            pickle.dumps(thing)
