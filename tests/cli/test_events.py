#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""List mode: `events show` and `events convert`, PETSIRD files as another decoder reads them, and reconstructions of
one acquisition from every format."""
import json, math, os, re, struct
from pathlib import Path

import yardl
from program import GRID, ProgramTest, main, read_nifti, write_nifti

MM_PER_PS = 0.149896229


def crystals_of(case, scanner):
    """Places of the crystals in the order of their numbers."""
    return [row[3:6] for row in case.json(f"scanner show {scanner} --crystals")["crystals"]]


def transform(matrix, point):
    flat = matrix["matrix"][1]
    return [sum(flat[4 * k + m] * point[m] for m in range(3)) + flat[4 * k + 3] for k in range(3)]


def centres_of(header):
    """Places of the crystals of a decoded file, [type][module * elements + element]."""
    found = []
    for kind in header["scanner"]["scannerGeometry"]["replicatedModules"]:
        elements = kind["object"]["detectingElements"]
        corners = [c["c"][1] for c in elements["object"]["shape"]["corners"]]
        middle = [sum(c[k] for c in corners) / 8 for k in range(3)]
        found.append([transform(module, transform(element, middle)) for module in kind["transforms"] for
                      element in elements["transforms"]])
    return found


def events_of(blocks):
    """All coincidences: (block, whether it is delayed, types of the two modules, event), lists as they stand."""
    for name, block in blocks:
        assert name == "EventTimeBlock", name
        for delayed, lists in enumerate((block["promptEvents"], block["delayedEvents"])):
            for a, row in enumerate(lists):
                for b, events in enumerate(row):
                    yield from ((block, delayed, (a, b), event) for event in events)


def bins_of(header, a, b):
    """Edges and sign of events in list [a][b]."""
    table = header["scanner"]["tofBinEdges"]
    if a < len(table) and b < len(table[a]):
        return table[a][b]["edges"][1]
    return [-e for e in reversed(table[b][a]["edges"][1])]


def all_events(header, blocks):
    """(time, delayed, place a, place b, tof in mm) of all coincidences, places to 0.001 mm; one bin is no time of
    flight."""
    centres = centres_of(header)
    energies = [len(e["edges"][1]) - 1 for e in header["scanner"]["eventEnergyBinEdges"]]
    found = []
    for block, delayed, types, event in events_of(blocks):
        edges, index = bins_of(header, *types), event["tofIdx"]
        tof = round(0.5 * (edges[index] + edges[index + 1]), 4) if len(edges) > 2 else None
        places = (centres[t][one // energies[t]] for t, one in zip(types, event["detectionBins"]))
        found.append((block["timeInterval"]["start"], delayed, *(tuple(round(x, 3) for x in p) for p in places), tof))
    return found


# The version that keeps the order of an event's crystals.
IN_ORDER = "--petsird-version 0.9"


class Castor(ProgramTest):
    """A CASToR list is the source of all that follows: 40 events on the small ring."""

    def make_castor(self, name="in.Cdh", tof=False, first_ps=-150, more=""):
        self.events = [(7 * k // 3, (5 * k) % 64, (64 + 17 * k) % 128, 10.0 * k + first_ps) for k in range(40)]
        data = b"".join(struct.pack("<I", t) + (struct.pack("<f", ps) if tof else b"") + struct.pack("<II", a, b) for t,
                        a, b, ps in self.events)
        self.write(name, f"Data filename: {name[:-1]}f\nNumber of events: 40\nData mode: list-mode\nData type: PET\n"
                         f"Scanner name: ring\nTOF information flag: {int(tof)}\nTOF resolution (ps): 200\n" + more)
        Path(name[:-1] + "f").write_bytes(data)
        return name

    def castor_places(self):
        """The crystals by ring and azimuth, beginning with the first module."""
        from math import atan2, pi
        places = crystals_of(self, self.scanner)
        start = -pi / 8  # half a module before the first of eight
        return sorted(places, key=lambda p: (round(p[2], 3), round((atan2(p[1], p[0]) - start) % (2 * pi), 9)))

    def show(self, path, *more):
        return self.json(f"events show {path}", *more)


class Show(Castor):
    def test_castor(self):
        found = self.show(self.make_castor(tof=True))
        self.assertEqual((found["format"], found["prompts"], found["delayeds"]), ("CASToR", 40, 0))
        self.assertTrue(found["has_tof"])
        self.assertEqual(found["tof_resolution_ps"], 200)
        text = self.good("events show in.Cdh").stdout
        self.assertIn("prompts        40\n", text)
        self.assertIn("time of flight 200 ps FWHM; events -22.4844 to 35.9751 mm", text)

    def test_official(self):
        path = self.real_data("petsird/small_cpp_v0.9.1.petsird")
        found = self.show(path)
        self.assertEqual((found["format"], found["format_version"]), ("PETSIRD", "0.9.1"))
        self.assertEqual((found["prompts"], found["num_tof_bins"]), (273, 11))
        self.assertGreater(found["tof_bin_mm"], 0)
        self.assertAlmostEqual(found["tof_resolution_ps"], 9.4 / MM_PER_PS, 4)
        scanner = self.json(f"scanner show {path}")
        self.assertEqual((scanner["num_crystals"], scanner["num_positions"]), (256, 8))

    def test_events_before_a_damage(self):
        """Refused, unless they are asked for; then as good as a file that ends there."""
        self.make_castor(tof=True)
        os.truncate("in.Cdf", 25 * 16 + 7)
        said = "it ends at byte 407, within event 25 of the 40"
        self.refuse(3, said, "events show in.Cdh")
        done = self.good("events show in.Cdh --events-until-damage")
        self.assertIn("prompts        25\n", done.stdout)
        self.assertIn(said, done.stderr)
        self.assertIn("the 25 events before that are taken", done.stderr)
        more = f"--scanner {self.scanner} --grid 8,8,4 --voxel-mm 4 --events-until-damage -o x.nii"
        for family in ("listmode", "correspondence"):
            report = self.json(f"recon --events in.Cdh --operator {family} --iterations 1 {more}")
            self.assertEqual(report["events"]["prompts"], 25)
        self.refuse(2, "--events-until-damage belongs to --events", f"recon --data y.h5 {more}")

    def test_others_need_their_scanner(self):
        path = self.real_data("mmr/small_listmode_file.l")
        self.refuse(2, "name its scanner", f"events show {path}")
        found = self.show(path, "--scanner siemens-mmr")
        self.assertEqual((found["prompts"], found["delayeds"]), (218881, 35320))
        path = self.real_data("safir/coincidencesLM.clm.safir")
        self.assertEqual(self.show(path, "--scanner safir-dual-ring-prototype")["prompts"], 1408)

    def test_refusals(self):
        self.write("x.petsird", "")
        Path("x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
        self.make_castor()
        self.refuse_each("events shown")


class Convert(Castor):
    def expect_same(self, path, tof):
        """What the other decoder finds, against the list that it was made of."""
        text, header, blocks = yardl.read_file(path)
        places = self.castor_places()
        expected = []
        for time, a, b, ps in self.events:
            expected.append((time, 0, tuple(round(x, 3) for x in places[a]), tuple(round(x, 3) for x in places[b]),
                             MM_PER_PS * ps if tof else 0))
        found = all_events(header, blocks)
        self.assertEqual(len(found), len(expected))
        edges = header["scanner"]["tofBinEdges"][0][0]["edges"][1]
        width = edges[1] - edges[0]
        for want in expected:
            mirror = (*want[:2], want[3], want[2], -want[4])
            near = [f for f in found for w in (want, mirror) if f[:4] == w[:4] and (not tof or abs(f[4] - w[4]) <= 0.5 *
                                                                                    width + 1e-3)]
            self.assertTrue(near, want)
        return text

    def test_petsird(self):
        for tof in (False, True):
            source = self.make_castor(tof=tof)
            for schema, options in (("v0.9.1", ["--petsird-version 0.9"]), ("v0.10.0", ["--petsird-version 0.10"]),
                                    ("v0.12.0", [])):
                self.good(f"events convert {source} out.petsird --scanner {self.scanner}", *options)
                text = self.expect_same("out.petsird", tof)
                asset = self.source_root / "assets" / "petsird" / f"schema_{schema}.json"
                self.assertEqual(text.encode(), asset.read_bytes())
                found = self.show("out.petsird")
                self.assertEqual((found["format_version"], found["prompts"], found["has_tof"]), (schema[1:], 40, tof))

    def test_there_and_back(self):
        """Crystals and times come back to the byte; so does the data file."""
        before = Path(self.make_castor()[:-1] + "f").read_bytes()
        self.good(f"events convert in.Cdh a.petsird --scanner {self.scanner} {IN_ORDER}")
        self.good(f"events convert a.petsird b.Cdh --scanner {self.scanner}")
        self.assertEqual(Path("b.Cdf").read_bytes(), before)
        self.good(f"events convert b.Cdh c.petsird --scanner {self.scanner} {IN_ORDER}")
        self.assertEqual(Path("c.petsird").read_bytes(), Path("a.petsird").read_bytes())

    def test_bins_come_along(self):
        """Widths and middles of bins, an odd number of them or an even one: in PETSIRD and back in CASToR."""
        quantised = "List TOF quantization bin size (ps): 10\n"
        for first_ps, more in ((-150, quantised), (-155, quantised + "List TOF measurement range (ps): 400\n")):
            self.make_castor(tof=True, first_ps=first_ps, more=more)
            self.assertAlmostEqual(self.show("in.Cdh")["tof_bin_mm"], 10 * MM_PER_PS, 5)
            said = self.good("events show in.Cdh").stdout
            self.assertIn("time of flight bins of 1.49896 mm; 200 ps FWHM", said)
            self.good(f"events convert in.Cdh a.petsird --scanner {self.scanner} {IN_ORDER}")
            found = self.show("a.petsird")
            self.assertAlmostEqual(found["tof_bin_mm"], 10 * MM_PER_PS, 5)
            self.assertEqual(found["num_tof_bins"] % 2, 0 if "range" in more else 1)
            tofs = [event[4] for event in all_events(*yardl.read_file("a.petsird")[1:])]
            for tof, event in zip(tofs, self.events, strict=True):
                self.assertAlmostEqual(tof, MM_PER_PS * event[3], 2)
            self.good(f"events convert a.petsird b.Cdh --scanner {self.scanner}")
            self.assertAlmostEqual(self.show("b.Cdh")["tof_bin_mm"], 10 * MM_PER_PS, 4)
            self.good(f"events convert b.Cdh c.Cdh --scanner {self.scanner} --without-tof")
            self.assertEqual(self.show("c.Cdh")["tof_bin_mm"], 0)

    def test_endings_in_any_case(self):
        source = self.make_castor()
        for name, format in (("a.PETSIRD", "PETSIRD"), ("b.CDH", "CASToR")):
            self.good(f"events convert {source} {name} --scanner {self.scanner}")
            self.assertEqual(self.show(name)["format"], format)
        self.refuse(2, [".NII", "must end in"], f"simulate {self.on_ring} --grid 4,4,2 --voxel-mm 4 --phantom spheres",
                    "--counts 9 -o x.NII")

    def test_histogram(self):
        self.make_castor()
        self.good(f"events convert in.Cdh h.Cdh --scanner {self.scanner} --histogram")
        found = self.show("h.Cdh")
        done = self.json(f"events convert in.Cdh h.Cdh --scanner {self.scanner} --histogram")
        self.assertEqual((found["format_version"], found["counts"]), ("histogram", 40 - done["not_in_coincidence"]))

    def test_refusals(self):
        self.make_castor()
        self.refuse_each("events converted")
        Path("in.Cdf").write_bytes(b"1234")
        self.refuse(3, "in.Cdf", f"events convert in.Cdh a.petsird --scanner {self.scanner}")

    def test_reconstructions_agree(self):
        self.make_castor()
        self.good(f"events convert in.Cdh a.petsird --scanner {self.scanner}")
        self.good(f"events convert in.Cdh b.petsird --scanner {self.scanner} --petsird-version 0.10")
        self.good(f"events convert in.Cdh h.Cdh --scanner {self.scanner} --histogram")
        images = []
        for events in ("in.Cdh", "a.petsird", "b.petsird", "h.Cdh"):
            self.good(f"recon {self.on_ring} --events {events} --grid 6,5,3 --voxel-mm 3,3,4 --iterations 2",
                      "--deterministic -o x.nii")
            images.append(read_nifti("x.nii")[3])
        self.assertGreater(max(images[0]), 0)
        for image in images[1:]:
            self.assertEqual(image, images[0])


class Simulate(Castor):
    """List mode of a phantom: the counts of its LOR data, whatever the format."""

    def test_same_counts(self):
        with_seed = f"simulate {self.on_ring} --phantom spheres {GRID} --counts 5000 --seed 7 -o"
        counts = self.json(f"{with_seed} y.h5")["counts"]
        grid = "--grid 6,5,3 --voxel-mm 3,3,4 --iterations 2 --deterministic -o x.nii"
        self.good(f"recon {self.on_ring} --data y.h5 {grid}")
        image = read_nifti("x.nii")[3]
        for name in ("y.petsird", "y.Cdh"):
            self.assertEqual(self.json(f"{with_seed} {name} --duration 20")["counts"], counts)
            found = self.show(name)
            self.assertEqual(found["prompts"], counts)
            # 5000 uniform times: the last is within 20 / 5000 s of the end but for e^-n.
            self.assertTrue(19.9 < found["duration_s"] <= 20.001, found["duration_s"])
            self.good(f"recon {self.on_ring} --events {name} {grid}")
            self.assertEqual(read_nifti("x.nii")[3], image)

    def test_times_and_order_are_random(self):
        """Times of a uniform process (Kolmogorov and Smirnov), LORs without a trend in time."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 5000 --seed 3 -o y.Cdh --duration 100")
        events = list(struct.iter_unpack("<III", Path("y.Cdf").read_bytes()))
        times = [event[0] / 100e3 for event in events]
        self.assertEqual(times, sorted(times))
        n = len(times)
        off = max(abs(t - (k + 0.5) / n) for k, t in enumerate(times))
        self.assertLess(off, 2.0 / n ** 0.5)  # 99.93 % of uniform samples are below 2
        halves = [sum(event[1] for event in part) / len(part) for part in (events[:n // 2], events[n // 2:])]
        spread = (sum((event[1] - sum(halves) / 2) ** 2 for event in events) / n) ** 0.5
        self.assertLess(abs(halves[0] - halves[1]), 4 * spread * 2 / n ** 0.5)

    def test_refusals(self):
        simulate = f"simulate {self.on_ring} --phantom spheres {GRID}"
        timed = f"simulate --scanner {self.scanner} --phantom spheres {GRID} --tof-ps 200"
        self.refuse_each("events simulated", simulate=simulate, timed=timed)

    def test_times_of_flight(self):
        """Pairs from one voxel, (8, 4, 0) mm: their places lie around it, as far as 200 ps and crystals of 4 mm put
        them."""
        values = [0.0] * 75
        values[1 * 25 + 3 * 5 + 4] = 1
        write_nifti("point.nii", (5, 5, 3), (4, 4, 4), values)
        pairs = f"simulate --scanner {self.scanner} --image point.nii --counts 4000 --tof-ps 200 -o"
        self.assertEqual(self.json(pairs, "y.tsv")["counts"], 4000)
        rows = [line.split("\t") for line in Path("y.tsv").read_text().splitlines()]
        columns = [rows[0].index(name) for name in ("x_mm", "y_mm", "z_mm")]
        squares = 0
        for column, middle in zip(columns, (8, 4, 0)):
            places = [float(row[column]) for row in rows[1:]]
            mean = sum(places) / 4000
            self.assertLess(abs(mean - middle), 0.8)  # four standard errors
            squares += sum((place - mean) ** 2 for place in places) / 4000
        sigma_mm = 0.299792458 / 2 * 200 / 2.354820045
        self.assertTrue(sigma_mm < squares ** 0.5 < 1.1 * sigma_mm, squares ** 0.5)
        self.json(pairs, "y.petsird", "--duration 20")
        found = self.show("y.petsird")
        self.assertEqual(found["prompts"], 4000)
        self.assertTrue(19 < found["duration_s"] <= 20.001)


class Versions(Castor):
    """Files of versions that never were: fields renamed, moved, added, made optional."""

    def base(self):
        self.make_castor(tof=True)
        self.good(f"events convert in.Cdh a.petsird --scanner {self.scanner} {IN_ORDER}")
        text, header, blocks = yardl.read_file("a.petsird")
        return json.loads(text), header, blocks

    def type_of(self, model, name):
        return next(t for t in model["types"] if t["name"] == name)

    def expect_as_before(self, model, header, blocks):
        yardl.write_file("new.petsird", json.dumps(model), header, blocks)
        self.good(f"events convert a.petsird before.Cdh --scanner {self.scanner}")
        self.good(f"events convert new.petsird after.Cdh --scanner {self.scanner}")
        self.assertEqual(Path("after.Cdf").read_bytes(), Path("before.Cdf").read_bytes())
        self.assertEqual(self.show("new.petsird")["format_version"], "other")
        self.assertEqual(crystals_of(self, "./new.petsird"), crystals_of(self, "./a.petsird"))

    def test_rewritten(self):
        model, header, blocks = self.base()
        text, _, _ = yardl.read_file("a.petsird")
        yardl.write_file("same.petsird", text, header, blocks)
        self.assertEqual(Path("same.petsird").read_bytes(), Path("a.petsird").read_bytes())

    def test_fields_added(self):
        model, header, blocks = self.base()
        extra = {"name": "extra", "type": {"vector": {"items": [None, "string", ]}}}
        for name in ("ScannerInformation", "CoincidenceEvent", "EventTimeBlock", "BoxShape"):
            self.type_of(model, name)["fields"].insert(0, extra)
        added = ["word", None, "x" * 300]
        header["scanner"]["extra"] = added
        for kind in header["scanner"]["scannerGeometry"]["replicatedModules"]:
            kind["object"]["detectingElements"]["object"]["shape"]["extra"] = added
        for _, block in blocks:
            block["extra"] = added
        for _, _, _, event in events_of(blocks):
            event["extra"] = []
        self.expect_as_before(model, header, blocks)

    def test_fields_moved_removed_and_optional(self):
        model, header, blocks = self.base()
        scanner = self.type_of(model, "ScannerInformation")["fields"]
        scanner[:] = [f for f in scanner if "Policy" not in f["name"] and "Stored" not in f["name"] and
                      f["name"] != "modelName"]
        block = self.type_of(model, "EventTimeBlock")["fields"]
        block[:] = [block[0]] + [{**f, "type": [None, f["type"]]} for f in reversed(block[1:3])]
        self.type_of(model, "CoincidenceEvent")["fields"].reverse()
        self.type_of(model, "TimeInterval")["fields"] = [{"name": "start", "type": "int64"},
                                                         {"name": "stop", "type": "uint64"}]
        self.expect_as_before(model, header, blocks)

    def test_other_blocks(self):
        """Movements are told of, other blocks passed over; a case is found by its tag."""
        model, header, blocks = self.base()
        self.type_of(model, "TimeBlock")["type"].reverse()
        move = ("BedMovementTimeBlock", {"timeInterval": {"start": 0, "stop": 1}, "transform":
                                         {"matrix": ([3, 4], [0.0] * 12)}})
        signal = ("ExternalSignalTimeBlock", {"timeInterval": {"start": 0, "stop": 1}, "signalID": 900, "signalValues":
                                              [1.5] * 1000})
        self.expect_as_before(model, header, [move, *blocks, signal])
        self.assertIn("tells 1 times of movements", self.good("events show new.petsird").stderr)

    def example(self, schema, kind, names=None):
        """A value that says something: 7, or a list of one."""
        kind, names = schema.spell(kind, names or {})
        if isinstance(kind, str):
            return {"string": "seven", "bool": 1}.get(kind, 7)
        if isinstance(kind, list):
            case = next(case for case in kind if case is not None)
            tagged = isinstance(case, dict) and "tag" in case
            inner = self.example(schema, case["type"] if tagged else case, names)
            return (case["tag"], inner) if tagged else inner
        if "fields" in kind:
            return {f["name"]: self.example(schema, f["type"], names) for f in kind["fields"]}
        if "values" in kind:
            return 1
        items, fixed, rank = yardl.list_parts(kind)
        sizes = fixed or [1] * (rank or 1)
        flat = [self.example(schema, items, names)] * math.prod(sizes)
        return flat if "vector" in kind else (sizes, flat)

    def test_every_field(self):
        """docs/formats/keys.md says which fields and blocks are warned of by name; others are not."""
        rows = self.source_root.joinpath("docs/formats/keys.md").read_text()
        rows = re.findall(r"^\| (`.*`) \| (\w+)", rows.split("## PETSIRD's schemas")[1], re.M)
        outcomes = {name: outcome for names, outcome in rows for name in re.findall(r"`(\w+)`", names)}
        told = {"modulePairEfficienciesVectors": "efficiencies of crystal pairs", "BedMovementTimeBlock": "movements",
                "GantryMovementTimeBlock": "movements"}
        untried = {name for name, outcome in outcomes.items() if outcome != "read"}
        self.make_castor(tof=True)

        def expect(name, text, header, blocks):
            yardl.write_file("new.petsird", text, header, blocks)
            said = self.good("events show new.petsird").stderr
            self.assertEqual(told.get(name, f"'{name}'") in said, outcomes.get(name) != "changes", said)
            untried.discard(name)

        for version in ("0.9", "0.12"):
            self.good(f"events convert in.Cdh a.petsird --scanner {self.scanner} --petsird-version {version}")
            for record in ("ScannerInformation", "ScannerGeometry", "DetectorModule", "ExamInformation",
                           "DetectionEfficiencies", "EventTimeBlock", "TimeBlock"):
                text, header, _ = yardl.read_file("a.petsird")
                schema = yardl.Schema(text)
                kind = schema.types["PETSIRD." + record]
                for part in kind.get("fields", kind.get("type")):
                    name = part.get("name", part.get("tag"))
                    if outcomes.get(name) == "read":
                        continue
                    _, header, blocks = yardl.read_file("a.petsird")
                    scanner = header["scanner"]
                    header["exam"] = header["exam"] or self.example(schema, "PETSIRD.ExamInformation")
                    value = self.example(schema, part["type"])
                    if record == "TimeBlock":
                        blocks.append((name, value))
                    else:
                        {"ScannerInformation": scanner, "ScannerGeometry": scanner["scannerGeometry"], "DetectorModule":
                         scanner["scannerGeometry"]["replicatedModules"][0]["object"], "ExamInformation":
                         header["exam"], "EventTimeBlock": blocks[0][1], "DetectionEfficiencies":
                         scanner["detectionEfficiencies"]}[record][name] = value
                    expect(name, text, header, blocks)
        self.assertEqual(untried, set())
        model, header, blocks = self.base()
        for name in ("ScannerInformation", "CoincidenceEvent", "EventTimeBlock", "ExamInformation"):
            fields = self.type_of(model, name)["fields"]
            fields[:] = [{"name": "extra", "type": [None, "string"]}] + [f for f in fields if f["name"] != "extra"]
        header["scanner"]["extra"] = "word"
        header["exam"] = None
        for _, block in blocks:
            block["extra"] = None
        for _, _, _, event in events_of(blocks):
            event["extra"] = None
        expect("extra", json.dumps(model), header, blocks)

    def test_rows_beyond_the_types(self):
        """One official writer repeats the last row."""
        model, header, blocks = self.base()
        for _, block in blocks:
            block["promptEvents"].append(block["promptEvents"][-1])
        self.expect_as_before(model, header, blocks)

    def test_what_is_needed(self):
        model, header, blocks = self.base()
        fields = self.type_of(model, "CoincidenceEvent")["fields"]
        fields[:] = [f for f in fields if f["name"] != "detectionBins"]
        yardl.write_file("new.petsird", json.dumps(model), header, blocks)
        self.refuse(3, ["new.petsird", "detectionBins"], "events show new.petsird")

    def test_tapered_crystals(self):
        model, header, blocks = self.base()
        kind = header["scanner"]["scannerGeometry"]["replicatedModules"][0]
        corner = kind["object"]["detectingElements"]["object"]["shape"]["corners"][5]["c"][1]
        corner[1] += 0.4
        yardl.write_file("new.petsird", json.dumps(model), header, blocks)
        self.refuse(3, ["new.petsird", "no right boxes", "mm off"], "scanner show ./new.petsird")

    def test_without_prompts(self):
        """Time of flight that no event has is told without numbers."""
        _, header, blocks = self.base()
        for _, block in blocks:
            block["promptEvents"] = [[[] for _ in row] for row in block["promptEvents"]]
        yardl.write_file("none.petsird", Path(self.source_root, "assets/petsird/schema_v0.9.1.json").read_text(),
                         header, blocks)
        said = self.good("events show none.petsird").stdout
        self.assertRegex(said, r"time of flight .*; no events\n")
        self.assertNotIn("inf", said)

    def test_efficiencies(self):
        """Of detection bins, two energies to an element: the mean, where the crystal stands."""
        model, header, blocks = self.base()
        scanner = header["scanner"]
        scanner["eventEnergyBinEdges"] = [{"edges": ([3], [400.0, 500.0, 600.0])}]
        scanner["detectionEfficiencies"]["detectionBinEfficiencies"] = [([256], [0.5 + k // 2 / 256 + (0.1 if k % 2 else
                                                                                                       -0.1) for
                                                                                 k in range(256)])]
        for _, _, _, event in events_of(blocks):
            event["detectionBins"] = [2 * b + 1 for b in event["detectionBins"]]
        self.expect_as_before(model, header, blocks)
        places = centres_of(header)[0]
        ours = crystals_of(self, self.scanner)
        expected = []
        for place in ours:
            far = [max(abs(a - b) for a, b in zip(place, other)) for other in places]
            expected.append(0.5 + far.index(min(far)) / 256)
        self.write("e.txt", "\n".join(map(str, expected)))
        images = []
        for name in ("e.txt", "new.petsird"):
            self.good(f"recon {self.on_ring} --events a.petsird --efficiencies {name} {GRID} --iterations 2 -o x.nii")
            images.append(read_nifti("x.nii")[3])
        for one, other in zip(*images):
            self.assertAlmostEqual(one, other, delta=1e-5 * max(images[0]))
        done = self.good(f"recon {self.on_ring} --events new.petsird {GRID} --iterations 1 -o x.nii")
        self.assertIn("efficiencies of detection bins (256 numbers, 0.4 to", done.stderr)
        self.assertIn("2 energy bins", done.stderr)
        self.refuse(3, "no efficiencies", f"recon {self.on_ring} --events a.petsird --efficiencies a.petsird {GRID}",
                    "-o x2.nii")

    def test_names(self):
        """Names are UTF-8 in JSON, whatever bytes the file has."""
        model, header, blocks = self.base()
        header["scanner"]["modelName"] = "L\u00e4nge \u2014 x"
        yardl.write_file("new.petsird", json.dumps(model), header, blocks)
        self.assertEqual(self.show("new.petsird")["scanner"], "L\u00e4nge \u2014 x")
        raw = Path("new.petsird").read_bytes()
        Path("new.petsird").write_bytes(raw.replace(b"\xc3\xa4", b"\xff\x07"))
        self.assertEqual(self.show("new.petsird")["scanner"], "L? nge \u2014 x")

    def test_scanners_alone(self):
        self.good(f"scanner convert {self.scanner} s.petsird")
        self.assertEqual(self.show("s.petsird")["prompts"], 0)
        before, after = crystals_of(self, self.scanner), crystals_of(self, "./s.petsird")
        self.assertEqual(len(before), len(after))
        for place in before:
            self.assertLess(min(max(abs(a - b) for a, b in zip(place, other)) for other in after), 1e-4)

    def test_corners_in_any_order(self):
        model, header, blocks = self.base()
        for kind in header["scanner"]["scannerGeometry"]["replicatedModules"]:
            shape = kind["object"]["detectingElements"]["object"]["shape"]
            shape["corners"] = [shape["corners"][k] for k in (6, 1, 4, 3, 0, 7, 2, 5)]
        self.expect_as_before(model, header, blocks)


if __name__ == "__main__":
    main({"show": Show, "convert": Convert, "versions": Versions, "simulate": Simulate})
