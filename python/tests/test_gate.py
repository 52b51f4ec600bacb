# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""GATE: crystals stand where closed forms put them, and events name the crystals in which they happened."""

import math, re, sys, warnings
from pathlib import Path

import numpy as np
import pytest

import gate_macros
import loraster as lr
from loraster import gate
from loraster.gate.crystals import rotation
from gate_macros import array, attached, repeated, ring, row, volume

SYSTEMS = {
    # Each case has a macro, its closed form, the number of copies of each level, and the levels' names.
    "cylindricalPET": (gate_macros.CYLINDRICAL, gate_macros.cylindrical_centre, (48, 4, 169), (0, 1, 3)),
    "scanner": (gate_macros.GENERIC, gate_macros.cylindrical_centre, (48, 4, 169), (0, 1, 2)),
    "ecat": (gate_macros.ECAT, gate_macros.ecat_centre, (288, 64), (0, 1)),
    "layers": (gate_macros.PANELS, gate_macros.panels_centre, (2, 6, 36, 2), (0, 1, 3, 4)),
}


def geometry_of(folder, text, name="camera.mac", **aliases):
    (folder / name).write_text(text)
    return gate.read_geometry(folder / name, aliases)


def copies(counts):
    """All numbers of the levels, as GATE counts."""
    return [grid.ravel() for grid in np.meshgrid(*map(np.arange, counts), indexing="ij")]


def numbers_in(geometry, levels, numbers):
    index = [np.zeros_like(numbers[0])] * len(geometry.levels)
    for level, number in zip(levels, numbers):
        index[level] = number
    return geometry.number_of[tuple(index)]


def module_centres(geometry):
    """The middle of each crystal, from LORaster's modules alone, as lr/scanner.h numbers them."""
    places = []
    for m, (nu, nv) in enumerate(geometry.crystals):
        q, p = np.divmod(np.arange(nu * nv), nu)
        inwards = np.cross(geometry.u[m], geometry.v[m])
        inwards *= -np.sign(inwards @ (geometry.centre_mm[m] * [1, 1, 0]))
        places.append(
            geometry.centre_mm[m]
            - geometry.depth_mm[m] / 2 * inwards
            + np.outer(p - (nu - 1) / 2, geometry.u[m]) * geometry.pitch_mm[m, 0]
            + np.outer(q - (nv - 1) / 2, geometry.v[m]) * geometry.pitch_mm[m, 1]
        )
    return np.concatenate(places)


@pytest.mark.parametrize("system", SYSTEMS)
def test_crystals_stand_where_the_closed_form_says(tmp_path, system):
    text, centre, counts, levels = SYSTEMS[system]
    geometry = geometry_of(tmp_path, text)
    assert repr(geometry).startswith("<GATE geometry ") and len(repr(geometry)) < 120
    numbers = copies(counts)
    crystal = numbers_in(geometry, levels, numbers)
    assert sorted(crystal) == list(range(np.prod(counts)))
    np.testing.assert_allclose(geometry.box_centre_mm[crystal], centre(*numbers), atol=1e-9)
    np.testing.assert_allclose(module_centres(geometry)[crystal], centre(*numbers), atol=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_scanner_numbers_crystals_alike(tmp_path, system):
    geometry = geometry_of(tmp_path, SYSTEMS[system][0])
    scanner = geometry.scanner
    np.testing.assert_allclose(scanner.crystals, geometry.box_centre_mm, atol=1e-6)
    assert scanner.num_modules == len(geometry.crystals)
    assert scanner.tof_resolution_ps == pytest.approx(geometry.tof_resolution_ps)
    inwards = scanner.hits - scanner.crystals
    np.testing.assert_allclose(
        np.linalg.norm(inwards, axis=1), geometry.box_size_mm[:, 2] / 2 - geometry.detection_depth_mm, atol=1e-6
    )


def test_hits_are_read_at_the_mean_depth(tmp_path):
    depth = np.linspace(0, 20, 200001)
    stopped = np.exp(-0.0868 * depth)  # LSO
    assert geometry_of(tmp_path, gate_macros.CYLINDRICAL).detection_depth_mm == pytest.approx(
        (depth * stopped).sum() / stopped.sum(), rel=1e-4
    )
    other = gate_macros.CYLINDRICAL.replace("setMaterial LSO", "setMaterial Glass")
    assert geometry_of(tmp_path, other).detection_depth_mm == 10
    assert gate.read_geometry(tmp_path / "camera.mac", detection_depth_mm=6.5).detection_depth_mm == 6.5


def test_modules_are_the_blocks(tmp_path):
    geometry = geometry_of(tmp_path, gate_macros.CYLINDRICAL)
    assert len(geometry.crystals) == 48 * 4 and (geometry.crystals == 13).all()
    np.testing.assert_allclose(geometry.pitch_mm, 4.03, atol=1e-9)
    np.testing.assert_allclose(np.hypot(*geometry.centre_mm.T[:2]), 411.0, atol=1e-9)
    assert geometry.num_positions == 48 and geometry.min_sector_difference == 9
    assert geometry.tof_resolution_ps == pytest.approx(400 * np.sqrt(2))
    assert set(geometry.material) == {"LSO"}
    # The ECAT's blocks stand 38.8 mm apart, which is 8 times the crystals' 4.85 mm: without a gap they are one module.
    assert [tuple(n) for n in geometry_of(tmp_path, gate_macros.ECAT).crystals] == [(8, 32)] * 72


def test_crowded_modules_are_cut(tmp_path):
    """Blocks whose crystals stand wider than they are: cells would overlap where crystals do not."""
    geometry = geometry_of(tmp_path, gate_macros.ECAT.replace("setRepeatVector 4.45", "setRepeatVector 4.5"))
    assert sorted(map(tuple, geometry.crystals)) == [(1, 32)] * 144 + [(6, 32)] * 72
    block, crystal = copies((288, 64))
    number = numbers_in(geometry, (0, 1), (block, crystal))
    np.testing.assert_allclose(module_centres(geometry)[number], geometry.box_centre_mm[number], atol=1e-9)
    np.testing.assert_allclose(geometry.pitch_mm[geometry.crystals[:, 0] == 1], [[4.05, 4.85]] * 144, atol=1e-9)


def test_layers_share_blocks(tmp_path):
    geometry = geometry_of(tmp_path, gate_macros.PANELS)
    assert len(geometry.layer) == 24 and (geometry.crystals == 6).all()
    assert sorted(zip(geometry.block, geometry.layer)) == [(b, l) for b in range(1, 13) for l in (0, 1)]
    assert {m for m, layer in zip(geometry.material, geometry.layer) if layer == 0} == {"LYSO"}
    for block in range(1, 13):
        front, rear = (np.flatnonzero((geometry.block == block) & (geometry.layer == layer))[0] for layer in (0, 1))
        np.testing.assert_allclose(geometry.centre_mm[front][1:], geometry.centre_mm[rear][1:], atol=1e-9)
        assert abs(geometry.centre_mm[front][0]) == pytest.approx(91)
        assert abs(geometry.centre_mm[rear][0]) == pytest.approx(99)


def test_single_crystals_become_modules(tmp_path):
    """Crystals that a ring and a linear repeater place one by one become lines along the axis."""
    text = (
        volume("world", "cylindricalPET", shape="cylinder")
        + volume("cylindricalPET", "rsector", ("20 mm", "4 mm", "4 mm"))
        + gate_macros.gate("rsector/placement/setTranslation 338 0 0 mm") + row("rsector", 64, "0 0 4.0625 mm")
        + ring("rsector", 504) + attached("cylindricalPET", "rsector", rsector="rsector")
    )
    geometry = geometry_of(tmp_path, text)
    assert [tuple(n) for n in geometry.crystals] == [(1, 64)] * 504
    number = np.arange(504 * 64)
    angle, z = np.radians(number % 504 * 360 / 504), (number // 504 - 31.5) * 4.0625
    np.testing.assert_allclose(geometry.box_centre_mm[geometry.number_of.reshape(504 * 64, -1)[:, 0]],
                               np.stack([338 * np.cos(angle), 338 * np.sin(angle), z], axis=1), atol=1e-9)


def test_aliases_loops_and_files(tmp_path):
    """Macros that execute others, count in loops and take aliases from the command line."""
    (tmp_path / "mac").mkdir()
    (tmp_path / "mac" / "panel.mac").write_text("""
/control/multiply y {k} 30
/gate/head/daughters/name panel{k}
/gate/head/daughters/insert box
/gate/panel{k}/placement/setTranslation \\
  {{side}} {y} 0 mm
/gate/panel{k}/geometry/setXLength {depth} cm
/gate/panel{k}/geometry/setYLength 20 mm
/gate/panel{k}/geometry/setZLength 20 mm
/gate/panel{k}/attachCrystalSD
/gate/systems/cylindricalPET/layer{k}/attach panel{k}
""")
    main = (
        "\n/control/alias side left\n/control/alias left 120\n" + volume("world", "cylindricalPET", shape="cylinder")
        + volume("cylindricalPET", "head") + ring("head", 2) + attached("cylindricalPET", rsector="head")
        + "/control/execute mac/visu.mac\n/control/loop mac/panel.mac k 0 1 1\n"
    )
    geometry = geometry_of(tmp_path, main, depth=1.5)
    np.testing.assert_allclose(
        geometry.box_centre_mm[geometry.number_of.reshape(2, 2)],
        [[[120, 0, 0], [120, 30, 0]], [[-120, 0, 0], [-120, -30, 0]]],
        atol=1e-9,
    )
    assert (geometry.depth_mm == 15).all()
    with pytest.raises(gate.MacroError, match=r"panel.mac, line 7: .*aliases="):
        geometry_of(tmp_path, main)


def test_turned_and_repeated_volumes(tmp_path):
    """A turned volume on a ring: GATE turns by the ring first, unless combineWithRotationFirst."""
    text = (
        gate_macros.WORLD + volume("world", "scanner")
        + volume("scanner", "panel", ("2 mm", "3 mm", "10 mm"), "50 0 0 mm")
        + gate_macros.gate("panel/placement/setRotationAxis 0 1 0", "panel/placement/setRotationAngle 90 deg")
        + ring("panel", 4, "combineWithRotationFirst") + attached("scanner", "panel", level1="panel")
    )
    geometry = geometry_of(tmp_path, text)
    # The box's long side points along the radius in every copy.
    np.testing.assert_allclose(geometry.box_size_mm, [[3, 2, 10]] * 4)
    np.testing.assert_allclose(
        geometry.box_centre_mm[geometry.number_of[:4].ravel()],
        [[50, 0, 0], [0, 50, 0], [-50, 0, 0], [0, -50, 0]],
        atol=1e-9,
    )
    plain = geometry_of(tmp_path, text.replace("/gate/panel/ring/combineWithRotationFirst\n", ""))
    long = np.take_along_axis(plain.box_axes, plain.box_size_mm.argmax(axis=1)[:, None, None], axis=1)[:, 0]
    expected = [rotation([0, 1, 0], np.pi / 2) @ rotation([0, 0, 1], a) @ [0, 0, 1] for a in np.arange(4) * np.pi / 2]
    np.testing.assert_allclose(np.abs(long[plain.number_of[:4].ravel()]), np.abs(expected), atol=1e-9)


def test_placements_from_a_file(tmp_path):
    text = gate_macros.CYLINDRICAL.replace(
        ring("rsector", 48, "setFirstAngle 3.75 deg"),
        repeated("rsector", "genericRepeater", "setPlacementsFilename p.placements", "useRelativeTranslation 0"))
    rows = [f"0 {-angle} 0 0 1 {421 * math.cos(math.radians(angle))!r} {421 * math.sin(math.radians(angle))!r} 0"
            for angle in 3.75 + 7.5 * np.arange(48)]
    (tmp_path / "p.placements").write_text("# places\nTime s\nRotation deg\nTranslation mm\n" + "\n".join(rows) + "\n")
    geometry, plain = geometry_of(tmp_path, text), geometry_of(tmp_path, gate_macros.CYLINDRICAL)
    np.testing.assert_allclose(geometry.box_centre_mm, plain.box_centre_mm, atol=1e-9)
    np.testing.assert_allclose(geometry.box_axes, plain.box_axes, atol=1e-9)


@pytest.mark.parametrize(
    "change, message",
    [
        (("LSO/geometry/setXLength 20. mm", "LSO/geometry/setXLength 20."),
         r'camera.mac, line 37: "20\." needs 1 number and a unit of length'),
        (("/gate/LSO/attachCrystalSD", ""), "no volume is a crystal"),
        (("/gate/systems/cylindricalPET/module/attach module", ""), "module has 4 copies and is attached to no level"),
        (("module/attach module", "block/attach module"), "cylindricalPET has no level block"),
        (("module/attach module", "module/attach modul"), "there is no volume modul"),
        (("repeaters/insert linear", "repeaters/insert linnear"), "the repeater linnear of module"),
        (("/gate/crystal/daughters/insert box", "/gate/crystal/daughters/insert wedge"), "the crystal LSO is a wedge"),
        (("/gate/LSO/setMaterial LSO", "/gate/rsector/moves/insert rotation"), "rsector moves.*of_lines"),
    ],
)
def test_errors_name_the_line(tmp_path, change, message):
    text = gate_macros.CYLINDRICAL.replace(*change)
    with pytest.raises(gate.MacroError, match=message):
        geometry_of(tmp_path, text)


# --- events ---


def simulate(geometry, levels, counts, count, seed):
    """A tree of coincidences: GATE's branches, two random crystals an event, positions uniform in them."""
    random = np.random.default_rng(seed)
    columns = {"runID": np.zeros(count, dtype=np.int32)}
    names = [geometry.levels[level] for level in levels]
    for side in "12":
        numbers = [random.integers(n, size=count).astype(np.int32) for n in counts]
        crystal = numbers_in(geometry, levels, numbers)
        columns[f"crystal{side}"] = crystal
        inside = random.uniform(-0.5, 0.5, (count, 3)) * geometry.box_size_mm[crystal]
        position = geometry.box_centre_mm[crystal] + np.einsum("nji,nj->ni", geometry.box_axes[crystal], inside)
        for axis, values in zip("XYZ", position.T):
            columns[f"globalPos{axis}{side}"] = values.astype(np.float32)
        columns[f"gantryID{side}"] = np.zeros(count, dtype=np.int32)
        columns.update({f"{name}ID{side}": number for name, number in zip(names, numbers)})
        columns[f"energy{side}"] = random.uniform(0.435, 0.65, count).astype(np.float32)
        columns[f"eventID{side}"] = random.integers(3, size=count).astype(np.int32)
        columns[f"sourceID{side}"] = random.integers(2, size=count).astype(np.int32)
        columns[f"comptonPhantom{side}"] = (random.random(count) < 0.3).astype(np.int32)
        columns[f"RayleighPhantom{side}"] = (random.random(count) < 0.1).astype(np.int32)
    columns["time1"] = np.sort(random.uniform(0, 60, count))
    columns["time2"] = columns["time1"] + random.normal(0, 300e-12, count)
    return columns


def write(path, **trees):
    uproot = pytest.importorskip("uproot")
    with uproot.recreate(path) as file:
        for name, columns in trees.items():
            columns = {key: values for key, values in columns.items() if key not in ("crystal1", "crystal2")}
            file.mktree(name, {key: values.dtype for key, values in columns.items()})
            file[name].extend(columns)


@pytest.mark.parametrize("system", SYSTEMS)
def test_events_name_their_crystals(tmp_path, system):
    text, _, counts, levels = SYSTEMS[system]
    geometry = geometry_of(tmp_path, text)
    first, second, late = (simulate(geometry, levels, counts, n, n) for n in (1000, 300, 200))
    write(tmp_path / "run10.root", Coincidences=second, delay=late)
    write(tmp_path / "run9.root", Coincidences=first, delay=late)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        acquisition = gate.read(tmp_path / "run*.root", geometry=tmp_path / "camera.mac")
    events = acquisition.events
    assert len(events) == 1300 and not events.is_delayed.any()

    joined = {key: np.concatenate([first[key], second[key]]) for key in first}
    np.testing.assert_array_equal(events.crystals, np.stack([joined["crystal1"], joined["crystal2"]], axis=1))
    np.testing.assert_array_equal(events.times_s, joined["time1"])
    np.testing.assert_allclose(events.tof_mm, 0.149896229 * (joined["time1"] - joined["time2"]) * 1e12, rtol=1e-6)
    np.testing.assert_allclose(events.energies_kev[:, 1], 1000 * joined["energy2"], rtol=1e-6)
    np.testing.assert_array_equal(events.sources[:, 0], joined["sourceID1"])

    is_random = joined["eventID1"] != joined["eventID2"]
    is_scattered = sum(joined[f"{name}Phantom{side}"] for name in ("compton", "Rayleigh") for side in "12") > 0
    np.testing.assert_array_equal(events.is_random, is_random)
    np.testing.assert_array_equal(events.is_scatter, ~is_random & is_scattered)
    np.testing.assert_array_equal(events.is_true, ~is_random & ~is_scattered)
    assert len(events.select(events.is_true)) == (~is_random & ~is_scattered).sum()

    both = gate.read(tmp_path / "run*.root", geometry, delayed="delay").events
    assert both.is_delayed.sum() == 400 and len(both) == 1700
    np.testing.assert_array_equal(both.select(~both.is_delayed).crystals, events.crystals)
    assert not (both.is_true & both.is_delayed).any()


def test_positions_reveal_another_macro(tmp_path):
    geometry = geometry_of(tmp_path, gate_macros.CYLINDRICAL)
    write(tmp_path / "c.root", Coincidences=simulate(geometry, (0, 1, 3), (48, 4, 169), 500, 1))
    other = geometry_of(tmp_path, gate_macros.CYLINDRICAL.replace("setFirstAngle 3.75", "setFirstAngle 0"), "other.mac")
    with pytest.warns(UserWarning, match=r"positions lie outside the crystals of other.mac, typically by 2[5-8]"):
        gate.read(tmp_path / "c.root", other)
    small = geometry_of(
        tmp_path, gate_macros.CYLINDRICAL.replace("setRepeatNumber 48", "setRepeatNumber 40"), "small.mac"
    )
    with pytest.raises(ValueError, match=r"rsectorID1 47, but in small.mac these numbers end at 39"):
        gate.read(tmp_path / "c.root", small)
    ecat = geometry_of(tmp_path, gate_macros.ECAT, "ecat.mac")
    with pytest.raises(ValueError, match=r"no branch blockID1, but ecat.mac has 288"):
        gate.read(tmp_path / "c.root", ecat)


def test_what_a_file_lacks(tmp_path):
    geometry = geometry_of(tmp_path, gate_macros.CYLINDRICAL)
    columns = simulate(geometry, (0, 1, 3), (48, 4, 169), 50, 1)
    for name in ("comptonPhantom1", "energy1", "globalPosX1", "sourceID2"):
        del columns[name]
    write(tmp_path / "c.root", Coincidences=columns, Singles={"time": columns["time1"]})
    events = gate.read(tmp_path / "c.root", geometry).events
    assert np.isnan(events.energies_kev[:, 0]).all() and (events.sources[:, 1] == -1).all()
    with pytest.raises(ValueError, match="lacks .*comptonPhantom1"):
        events.is_true
    with pytest.raises(ValueError, match="no tree delay, but Coincidences, Singles"):
        gate.read(tmp_path / "c.root", geometry, delayed="delay")
    with pytest.raises(ValueError, match="no branch time1"):
        gate.read(tmp_path / "c.root", geometry, tree="Singles")
    with pytest.raises(FileNotFoundError, match="no file"):
        gate.read(tmp_path / "none*.root", geometry)


def test_without_uproot(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uproot", None)
    with pytest.raises(ImportError, match=r"pip install loraster\[gate\]"):
        gate.read("c.root", geometry_of(tmp_path, SMALL))


def test_scatter_needs_phantoms(tmp_path):
    geometry = geometry_of(tmp_path, gate_macros.CYLINDRICAL.replace("/gate/phantom/attachPhantomSD", ""))
    columns = simulate(geometry, (0, 1, 3), (48, 4, 169), 50, 1)
    for side in "12":
        columns[f"comptonPhantom{side}"][:] = columns[f"RayleighPhantom{side}"][:] = 0
    write(tmp_path / "c.root", Coincidences=columns)
    with pytest.warns(UserWarning, match="No volume of camera.mac is a phantom"):
        gate.read(tmp_path / "c.root", geometry)


SMALL = (
    "\n" + volume("world", "cylindricalPET", shape="cylinder") + volume("cylindricalPET", "rsector", (), "60 0 0 mm")
    + volume("rsector", "crystal", ("12 mm", "1.9 mm", "1.9 mm")) + gate_macros.gate("crystal/setMaterial Glass")
    + array("crystal", "0 2 2 mm", Y=10, Z=10) + ring("rsector", 16)
    + attached("cylindricalPET", "crystal", rsector="rsector", crystal="crystal")
    + gate_macros.gate("digitizerMgr/crystal/SinglesDigitizer/Singles/timeResolution/CTR 200 ps")
)


def simulate_point(folder, source):
    """camera.mac and coincidences.root: pairs of crystals on lines through a point, with its time of flight."""
    geometry = geometry_of(folder, SMALL)
    centre = geometry.box_centre_mm
    away = centre - source
    distance = np.linalg.norm(away, axis=1)
    cosine = (away / distance[:, None]) @ (away / distance[:, None]).T
    first = np.arange(len(centre))
    second = cosine.argmin(axis=1)
    opposite = cosine[first, second] < -0.9998
    first, second = first[opposite], second[opposite]
    assert len(first) > 200
    columns = {"time1": np.arange(len(first)) * 1e-3 + distance[first] / 2.99792458e11}
    columns["time2"] = np.arange(len(first)) * 1e-3 + distance[second] / 2.99792458e11
    for side, crystal in (("1", first), ("2", second)):
        place = np.argwhere(geometry.number_of >= 0)[np.argsort(geometry.number_of[geometry.number_of >= 0])][crystal]
        columns[f"rsectorID{side}"], columns[f"crystalID{side}"] = place[:, 0].astype("i4"), place[:, 3].astype("i4")
        columns[f"eventID{side}"] = np.arange(len(first), dtype="i4")
        columns[f"comptonPhantom{side}"] = np.zeros(len(first), dtype="i4")
        for axis, values in zip("XYZ", centre[crystal].T):
            columns[f"globalPos{axis}{side}"] = values.astype(np.float32)
    write(folder / "coincidences.root", Coincidences=columns)
    return geometry, len(first)


def test_a_point_source_is_found(tmp_path):
    source = np.array([12.0, -8.0, 3.0])
    geometry, count = simulate_point(tmp_path, source)
    acquisition = gate.read(tmp_path / "coincidences.root", geometry)
    events = acquisition.list_mode(acquisition.events.is_true)
    assert len(events) == count and events.has_tof and events.tof_resolution_ps == pytest.approx(200)
    assert (events.lors >= 0).all()
    operator = lr.Operator.of_events(events, (21, 21, 11), 2.0, backend="native", ranges=2)
    image = lr.recon.osem(operator, None, iterations=4, subsets=2)
    # Hits are read in the middle of the crystals, as in the macro, so that the source is in the image's middle.
    z, y, x = (2.0 * (grid - (n - 1) / 2) for grid, n in zip(np.indices(image.shape), image.shape))
    np.testing.assert_allclose([np.average(axis, weights=image) for axis in (x, y, z)], source, atol=1.0)


def test_the_guide_runs(tmp_path, monkeypatch):
    simulate_point(tmp_path, np.array([5.0, 0.0, 0.0]))
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).resolve().parents[2] / "docs/guide/gate.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        assert "of_events" not in block or "(128, 128, 64), 2.0" in block
        exec(compile(block.replace("(128, 128, 64), 2.0", "(64, 64, 32), 4.0"), "gate.md", "exec"), names)
    assert names["image"].shape == (32, 64, 64) and len(names["trues"]) == len(names["events"])
