#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PETSIRD files with several types of modules, each pair of them with time-of-flight bins of its own: made with the
encoder of this folder, and with PETSIRD's own packages where they are there."""
import copy, json, math, os, random, subprocess, sys
from pathlib import Path

try:
    import h5py
    import numpy as np

    import joseph
except ImportError:
    np = None
import yardl
from program import main
from test_events import MM_PER_PS, Castor, all_events, bins_of, crystals_of, events_of

# Bins of events of type pairs (0, 0), (0, 1), (1, 0), (1, 1), mm; no two alike, none symmetric but
# the first.
EDGES = {(0, 0): [-66.0, 0.0, 66.0], (0, 1): [-41.0, -9.0, 3.0, 50.0], (1, 0): [-50.0, -3.0, 9.0, 41.0], (1, 1):
         [-30.0, -21.0, -7.0, 8.5, 31.0]}
RESOLUTIONS = {(0, 0): 45.0, (0, 1): 30.0, (1, 0): 30.0, (1, 1): 15.0}
ENERGIES = [[425.0, 500.0, 650.0], [440.0, 610.0]]


def in_order(events):
    """(a, b, t) and (b, a, -t) are the same event."""
    turned = []
    for time, delayed, a, b, tof in events:
        turned.append((time, delayed, a, b, tof) if a <= b else
                      (time, delayed, b, a, tof if tof is None else round(-tof, 4) + 0.0))
    return sorted(turned, key=str)


class Texts(Castor):
    def read_tsv(self, name):
        lines = Path(name).read_text().splitlines()
        keys = lines[0].split("\t")
        return [dict(zip(keys, map(float, line.split("\t")))) for line in lines[1:]]

    def tsv_events(self, name, scanner, digits=3):
        places = crystals_of(self, scanner)
        found = []
        for row in self.read_tsv(name):
            ends = [places[int(row[k])] for k in ("crystal_a", "crystal_b")]
            tof = None if math.isnan(row["tof_mm"]) else round(row["tof_mm"], 4)
            found.append((int(row["time_ms"]), int(row["delayed"]),
                          *(tuple(round(x, digits) for x in end) for end in ends), tof))
        return found


class Types(Texts):
    """The small ring of the other tests: its first half is made one type, its second another."""

    def base(self, version="0.9", edges=None, num_events=300):
        edges = edges or EDGES
        self.good(f"scanner convert {self.scanner} one.petsird")
        self.make_castor()
        self.good(f"events convert in.Cdh one.petsird --scanner {self.scanner} --petsird-version {version}")
        text, header, _ = yardl.read_file("one.petsird")
        scanner = header["scanner"]
        old = version == "0.9"
        first = scanner["scannerGeometry"]["replicatedModules"][0]
        second = copy.deepcopy(first)
        places = first["transforms"]
        first["transforms"], second["transforms"] = places[:3], places[3:]
        scanner["scannerGeometry"]["replicatedModules"] = [first, second]
        pairs = [[(a, b) for b in range(2 if old else a + 1)] for a in range(2)]
        scanner["tofBinEdges"] = [[{"edges": ([len(edges[p])], edges[p])} for p in row] for row in pairs]
        scanner["tofResolution"] = [[RESOLUTIONS[p] for p in row] for row in pairs]
        scanner["eventEnergyBinEdges"] = [{"edges": ([len(e)], e)} for e in ENERGIES]
        scanner["energyResolutionAt511"] = [0.1, 0.1]
        efficiencies = scanner["detectionEfficiencies"]
        efficiencies["modulePairSGIDLUT"] = [] if not old else None
        efficiencies["modulePairEfficienciesVectors"] = [] if not old else None
        return text, header, [self.block(header, pairs, edges, num_events)]

    def block(self, header, pairs, edges, count):
        seed = random.randrange(1 << 30)
        print("seed", seed, file=sys.stderr)
        draw = random.Random(seed)
        modules = [len(k["transforms"]) for k in header["scanner"]["scannerGeometry"]["replicatedModules"]]
        lists = [[[] for _ in row] for row in pairs]
        for _ in range(count):
            a, b = draw.choice([p for row in pairs for p in row])
            one, two = draw.randrange(modules[a]), draw.randrange(modules[b])
            if a == b and one <= two:
                continue
            bins = [draw.randrange(16 * (len(ENERGIES[t]) - 1)) + m * 16 * (len(ENERGIES[t]) - 1) for t,
                    m in ((a, one), (b, two))]
            lists[a][b].append({"detectionBins": bins, "tofIdx": draw.randrange(len(edges[a, b]) - 1)})
        delayed = [[[] for _ in row] for row in pairs]
        return ("EventTimeBlock", {"timeInterval": {"start": 5, "stop": 6}, "singleEvents": [], "promptEvents": lists,
                                   "delayedEvents": delayed, "tripleEvents": [], "quadrupleEvents": []})

    def test_every_pair_has_its_bins(self):
        for version in ("0.9", "0.10"):
            text, header, blocks = self.base(version)
            yardl.write_file("two.petsird", text, header, blocks)
            expected = all_events(header, blocks)
            self.assertGreater(len(expected), 100)
            self.good("events convert two.petsird two.tsv")
            self.assertEqual(in_order(self.tsv_events("two.tsv", "./two.petsird")), in_order(expected))
            found = self.show("two.petsird")
            self.assertEqual((found["has_tof"], found["num_tof_bins"]), (True, 0))
            self.assertIsNone(found["tof_resolution_ps"])
            self.assertIsNone(found["energy_kev"])
            for a, kind in enumerate(found["module_types"]):
                self.assertEqual(kind["energy_kev"], [ENERGIES[a][0], ENERGIES[a][-1]])
                for b, tof in enumerate(kind["tof"]):
                    edges = EDGES[a, b]
                    self.assertEqual((tof["num_bins"], tof["low_mm"], tof["high_mm"]),
                                     (len(edges) - 1, edges[0], edges[-1]))
                    self.assertAlmostEqual(tof["resolution_ps"], RESOLUTIONS[a, b] / MM_PER_PS, 4)
            said = self.good("events show two.petsird")
            self.assertIn("types 1, 1   4 bins of 15.25 mm from -30 to 31 mm; 100.069 ps FWHM\n", said.stdout)
            self.assertIn("module type 0 has 2 energy bins", said.stderr)

    def test_centres_lie_on_their_lines(self):
        text, header, blocks = self.base()
        yardl.write_file("two.petsird", text, header, blocks)
        self.good("events convert two.petsird two.tsv")
        places = crystals_of(self, "./two.petsird")
        rows = self.read_tsv("two.tsv")
        self.assertGreater(len(rows), 100)
        for row in rows:
            a, b = (places[int(row[k])] for k in ("crystal_a", "crystal_b"))
            # Hits are read in the middle of a PETSIRD file's crystals, which are the places listed.
            length = math.dist(a, b)
            for k, axis in enumerate(("x_mm", "y_mm", "z_mm")):
                at = 0.5 * (a[k] + b[k]) + row["tof_mm"] * (b[k] - a[k]) / length
                self.assertAlmostEqual(row[axis], at, delta=2e-3)

    def test_written_again(self):
        """Bins, resolutions and windows of every pair come back, and each event in its own."""
        for source in ("0.9", "0.10"):
            text, header, blocks = self.base(source)
            yardl.write_file("two.petsird", text, header, blocks)
            # v0.9 keeps the order of a and b; a file of v0.10 is in that of v0.10.
            for target in ("0.9", "0.10") if source == "0.10" else ("0.9",):
                self.good(f"events convert two.petsird again.petsird --petsird-version {target}")
                _, again, its_blocks = yardl.read_file("again.petsird")
                self.assertEqual(in_order(all_events(again, its_blocks)), in_order(all_events(header, blocks)))
                for a in range(2):
                    for b in range(2):
                        self.assertEqual(bins_of(again, a, b), EDGES[a, b])
                windows = [e["edges"][1] for e in again["scanner"]["eventEnergyBinEdges"]]
                self.assertEqual(windows, [[e[0], e[-1]] for e in ENERGIES])
                for a, row in enumerate(again["scanner"]["tofResolution"]):
                    for b, value in enumerate(row):
                        self.assertAlmostEqual(value, RESOLUTIONS[a, b], 4)

    def test_one_pair_alone_has_time_of_flight(self):
        """(0, 0) has one bin, which is none; (1, 0) keeps what it has."""
        text, header, blocks = self.base(edges={**EDGES, (0, 0): [-66.0, 66.0]})
        yardl.write_file("two.petsird", text, header, blocks)
        expected = in_order(all_events(header, blocks))
        self.good("events convert two.petsird again.petsird")
        _, again, its_blocks = yardl.read_file("again.petsird")
        self.assertEqual(in_order(all_events(again, its_blocks)), expected)
        self.good("events convert two.petsird two.tsv")
        self.assertEqual(in_order(self.tsv_events("two.tsv", "./two.petsird")), expected)
        self.refuse(3, "types 0 and 0 are without time of flight", "direct deposit --events two.petsird --grid 8,8,8",
                    "--voxel-mm 4 -o h.h5")

    def test_what_cannot_be_held(self):
        text, header, blocks = self.base()
        yardl.write_file("two.petsird", text, header, blocks)
        self.refuse(2, ["CASToR has one time resolution", "--without-tof"], "events convert two.petsird x.Cdh")
        self.good("events convert two.petsird x.Cdh --without-tof")
        self.assertFalse(self.show("x.Cdh")["has_tof"])
        self.good("events convert two.petsird x.petsird --without-tof")
        self.assertFalse(self.show("x.petsird")["has_tof"])
        # (1, 1) is not symmetric, so that v0.10 could not exchange a and b.
        for event in blocks[0][1]["promptEvents"][1][1]:
            event["detectionBins"].reverse()
        yardl.write_file("two.petsird", text, header, blocks)
        self.refuse(2, ["mirrored", "write version 0.9"], "events convert two.petsird x10.petsird",
                    "--petsird-version 0.10")
        self.assertFalse(os.path.exists("x10.petsird"))
        done = self.ends(0, "time resolutions of 100.1 to 300.2 ps", "scanner show ./two.petsird --json")
        self.assertEqual(json.loads(done.stdout)["tof_resolution_ps"], 0)

    def test_own_scanner_of_mixed_modules(self):
        """A module of the scanner that holds crystals of both types is one too many."""
        text, header, blocks = self.base()
        kinds = header["scanner"]["scannerGeometry"]["replicatedModules"]
        first = kinds[0]["object"]["detectingElements"]["transforms"]
        second = kinds[1]["object"]["detectingElements"]
        kinds[1]["transforms"] = kinds[0]["transforms"]
        kinds[0]["object"]["detectingElements"]["transforms"], second["transforms"] = first[:8], first[8:]
        for _, _, _, event in events_of(blocks):
            event["detectionBins"] = [0, 0]
        yardl.write_file("two.petsird", text, header, blocks)
        self.refuse(3, "has crystals of the source's module types 0 and 1", "events convert two.petsird x.petsird",
                    f"--scanner {self.scanner}")

    def test_bins_that_are_not_there(self):
        for change, sentence in (
            (lambda s, e: e[1][0][0].update(tofIdx=3), "types 1 and 0 has time-of-flight bin 3 of 3"),
            (lambda s, e: s["tofBinEdges"][1].append({"edges": ([2], [-1.0, 1.0])}), "'tofBinEdges' has an entry for "
                                                                                     "module types 1 and 2"),
            (lambda s, e: s["tofBinEdges"].clear(), "has time-of-flight bin"),
            (lambda s, e: s["eventEnergyBinEdges"].pop(), "energy bins of 1 module types"),
            (lambda s, e: e[0].append([{"detectionBins": [0, 0], "tofIdx": 0}]), "1 events of module types 0 and 2, "
                                                                                 "and there are 2")):
            text, header, blocks = self.base()
            change(header["scanner"], blocks[0][1]["promptEvents"])
            yardl.write_file("two.petsird", text, header, blocks)
            self.refuse(3, sentence, "events show two.petsird")

    def test_merged_lists_have_equal_types(self):
        text, header, blocks = self.base()
        yardl.write_file("two.petsird", text, header, blocks)
        self.good("events merge two.petsird two.petsird -o both.petsird")
        for change, sentence in (
            (lambda s: s["tofResolution"][1].__setitem__(1, 99.0), "different times of flight"),
            (lambda s: s["tofBinEdges"][0][0]["edges"][1].__setitem__(1, s["tofBinEdges"][0][0]["edges"][1][1] + 0.5),
             "different times of flight"),
            (lambda s: s["eventEnergyBinEdges"][1]["edges"][1].__setitem__(-1, 900.0), "different energy windows")):
            other = copy.deepcopy(header)
            change(other["scanner"])
            yardl.write_file("other.petsird", text, other, blocks)
            self.refuse(3, sentence, "events merge two.petsird other.petsird -o b.petsird")

    def test_resolutions_of_an_odd_table(self):
        """PETSIRD's Python generator v0.9.1 gives three to a row: which is whose is not known."""
        text, header, blocks = self.base()
        header["scanner"]["tofResolution"][0].insert(1, 1000.0)
        yardl.write_file("two.petsird", text, header, blocks)
        done = self.ends(0, "table of time resolutions has more entries", "events show two.petsird --json")
        for kind in json.loads(done.stdout)["module_types"]:
            self.assertEqual([t["resolution_ps"] for t in kind["tof"]], [None, None])

    def test_repeated_rows(self):
        text, header, blocks = self.base()
        expected = in_order(all_events(header, blocks))
        rows = blocks[0][1]["promptEvents"]
        for made in ([rows[0], rows[0], rows[1], rows[1]], [rows[0], rows[1], rows[1]]):
            blocks[0][1]["promptEvents"] = made
            yardl.write_file("two.petsird", text, header, blocks)
            done = self.good("events convert two.petsird two.tsv")
            self.assertEqual(in_order(self.tsv_events("two.tsv", "./two.petsird")), expected)
            found = self.show("two.petsird")
            twice = sum(len(e) for row in made for e in row) - len(expected)
            self.assertEqual((found["prompts"], found["repeated"], found["unknown_crystals"]),
                             (len(expected), twice, 0))
            self.assertIn(f"{twice} repeated events are left out", done.stderr)
        for made in ([rows[0], rows[1], rows[0], rows[1]], [rows[0], rows[1], rows[0]]):
            blocks[0][1]["promptEvents"] = made
            yardl.write_file("two.petsird", text, header, blocks)
            self.refuse(3, "of which row", "events show two.petsird")

    def test_pairs_out_of_coincidence(self):
        """The lower triangle puts modules 1 of type 0 and 2 of type 1 out of coincidence."""
        text, header, blocks = self.base("0.10")
        table = [[[[0] * (i + 1) for i in range(3)]], [[[0] * 3 for _ in range(5)], [[0] * (i + 1) for i in range(5)]]]
        table[1][0][2][1] = -1
        header["scanner"]["detectionEfficiencies"]["modulePairSGIDLUT"] = table
        yardl.write_file("two.petsird", text, header, blocks)
        expected = sum(e["detectionBins"][0] // 16 == 2 and e["detectionBins"][1] // 32 == 1 for
                       e in blocks[0][1]["promptEvents"][1][0])
        done = self.good("events show two.petsird --json")
        self.assertGreater(expected, 0)
        self.assertEqual(json.loads(done.stdout)["excluded_pairs"], expected)
        self.assertIn("first module 2 of type 1 with module 1 of type 0", done.stderr)


# Prints how PETSIRD's own package reads a file: {events: [[time, place a, place b, tof in mm or null]],
# schema: its length}. Rows that repeat are left out.
ASK = """
import json, sys, petsird
from petsird import protocols
from petsird.helpers import expand_detection_bin
import numpy

def expand(scanner, kind, bin):
    try:
        return expand_detection_bin(scanner, kind, bin)
    except TypeError:
        return expand_detection_bin(scanner, bin)

PLACE
places = {}
def at(scanner, kind, e):
    key = kind, e.module_index, e.element_index
    if key not in places:
        places[key] = place(scanner, *key)
    return places[key]

events = []
with petsird.BinaryPETSIRDReader(sys.argv[1]) as reader:
    header = reader.read_header()
    scanner = header.scanner
    types = len(scanner.scanner_geometry.replicated_modules)
    for block in reader.read_time_blocks():
        if not isinstance(block, petsird.TimeBlock.EventTimeBlock):
            continue
        rows, before = [], None
        for row in block.value.prompt_events:
            if before is not None and row == before:
                continue
            rows.append(row)
            before = row
        for a, row in enumerate(rows):
            for b, found in enumerate(row):
                edges = scanner.tof_bin_edges[a][b].edges
                for event in found:
                    ends = [expand(scanner, t, event.detection_bins[k]) for k, t in enumerate((a, b))]
                    tof = 0.5 * (float(edges[event.tof_idx]) + float(edges[event.tof_idx + 1]))
                    events.append([block.value.time_interval.start, at(scanner, a, ends[0]),
                                   at(scanner, b, ends[1]), tof if len(edges) > 2 else None])
efficiencies = scanner.detection_efficiencies.detection_bin_efficiencies
print(json.dumps({"events": events, "schema": len(protocols.PETSIRDReaderBase.schema)}))
"""

# Writes a file again with efficiencies of detection bins drawn at random, and says what they are:
# {efficiencies: [[place, mean over the energies]]}.
REWRITE = """
import json, sys, numpy, petsird
from petsird.helpers import get_num_detection_bins

PLACE
rng = numpy.random.default_rng(7)
said = []
with petsird.BinaryPETSIRDReader(sys.argv[1]) as reader, \\
        petsird.BinaryPETSIRDWriter(sys.argv[2]) as writer:
    header = reader.read_header()
    scanner = header.scanner
    bins = scanner.detection_efficiencies.detection_bin_efficiencies
    for kind, old in enumerate(bins):
        drawn = rng.uniform(0.3, 1.4, get_num_detection_bins(scanner, kind)).astype("float32")
        module = scanner.scanner_geometry.replicated_modules[kind]
        modules, elements = len(module.transforms), len(module.object.detecting_elements.transforms)
        means = drawn.astype(float).reshape(modules, elements, -1).mean(axis=2)
        said += [[place(scanner, kind, m, e), means[m, e]]
                 for m in range(modules) for e in range(elements)]
        bins[kind] = drawn if isinstance(old, numpy.ndarray) else [float(x) for x in drawn]
    writer.write_header(header)
    writer.write_time_blocks(reader.read_time_blocks())
print(json.dumps({"efficiencies": said}))
"""
PLACE = """
def place(scanner, kind, m, e):
    module = scanner.scanner_geometry.replicated_modules[kind]
    elements = module.object.detecting_elements
    middle = numpy.mean([c.c for c in elements.object.shape.corners], axis=0, dtype=float)
    for t in (elements.transforms[e].matrix, module.transforms[m].matrix):
        middle = t[:, :3].astype(float) @ middle + t[:, 3]
    return middle.tolist()
"""


def packages():
    """Folders of LORASTER_PETSIRD, each with one version of PETSIRD's package in it, as pip install --target
    DIR/VERSION petsird==VERSION makes them."""
    root = os.environ.get("LORASTER_PETSIRD", "")
    return sorted(p for p in Path(root).glob("*") if (p / "petsird").is_dir()) if root else []


# Runs PETSIRD's own generator, whose scanner here has rings of six modules: the package reads its efficiencies, one for
# each pair of crystals, number by number.
GENERATE = """
import importlib.util, re
path = importlib.util.find_spec("petsird.helpers.generator").origin
with open(path) as file:
    text = re.sub(r"(?m)^    num_modules_along_ring=[0-9]+,", "    num_modules_along_ring=6,", file.read())
exec(compile(text, path, "exec"), {"__name__": "__main__"})
"""


class Official(Texts):
    """Files of PETSIRD's own generator (two types of modules from v0.8 on), of every version at hand, against what its
    own reader says. LORASTER_PETSIRD_PYTHON: an interpreter that has NumPy."""

    def official(self, folder, *arguments, **options):
        python = os.environ.get("LORASTER_PETSIRD_PYTHON", sys.executable)
        return subprocess.run([python, *arguments], check=True, stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": str(folder)}, **options).stdout

    def test_own_generators(self):
        found = packages()
        if np is None:
            self.skipTest("no numpy or h5py")
        if not found:
            self.skipTest("no LORASTER_PETSIRD with PETSIRD's own packages")
        for folder in found:
            with self.subTest(version=folder.name):
                self.expect_written(folder, self.expect_as_official(folder))
                self.expect_efficiencies(folder)

    def ask(self, folder, name):
        """How PETSIRD's own reader has a file."""
        return json.loads(self.official(folder, "-c", ASK.replace("PLACE", PLACE), name))

    def expect_written(self, folder, own):
        """What is written from such a file, PETSIRD's own reader finds the same events in."""
        version = {"0.9.1": "0.9", "0.10.0": "0.10", "0.12.0": "0.12"}.get(folder.name)
        if version is None:
            return
        self.good(f"events convert own.petsird x.petsird --petsird-version {version}")
        places = np.array(crystals_of(self, "./own.petsird"))
        found, nearest = [], {}
        for said in (own, self.ask(folder, "x.petsird")["events"]):
            for place in {tuple(e[k]) for e in said for k in (1, 2)} - set(nearest):
                nearest[place] = int(np.argmin(((places - place) ** 2).sum(axis=1)))
            ends = [[nearest[tuple(e[k])] for e in said] for k in (1, 2)]
            found.append(sorted([(e[0], a, b, e[3]) if a < b else (e[0], b, a, None if e[3] is None else 0.0 - e[3]) for
                                 e, a, b in zip(said, *ends)], key=str))
        print(f"    {len(found[1])} of {len(found[0])} events read back from what is written")
        self.assertEqual(*found)

    def expect_efficiencies(self, folder):
        """`factors` multiplies the efficiencies of two crystals, which stand where they stand."""
        said = json.loads(self.official(folder, "-c", REWRITE.replace("PLACE", PLACE), "own.petsird", "e.petsird"))
        self.good("factors --scanner ./e.petsird --efficiencies e.petsird -o e.h5")
        with h5py.File("e.h5") as file:
            lors = joseph.Lors(file)
        places = np.array(crystals_of(self, "./e.petsird"))
        given = np.array([place for place, _ in said["efficiencies"]])
        of = [int(np.argmin(((given - place) ** 2).sum(axis=1))) for place in places]
        self.assertEqual(len(set(of)), len(places))
        values = np.array([value for _, value in said["efficiencies"]])[of]
        drawn = np.random.default_rng(2).integers(0, len(lors.values), 20000)
        i, p, q, j, r, s = lors.names(drawn)
        sizes = lors.scanner["crystals"]
        first = np.concatenate([[0], np.cumsum(sizes.prod(axis=1))])
        wanted = values[first[i] + q * sizes[i, 0] + p] * values[first[j] + s * sizes[j, 0] + r]
        off = np.abs(lors.values[drawn] / wanted - 1).max()
        print(f"    efficiencies of {len(values)} crystals, products off by {off:.2g}")
        self.assertLess(off, 1e-6)

    def expect_as_official(self, folder):
        """What the reader says of the generator's file; returns its events."""
        Path("own.petsird").write_bytes(self.official(folder, "-c", GENERATE))
        said = self.ask(folder, "own.petsird")
        shown = self.show("own.petsird")
        self.good("events convert own.petsird own.tsv")
        found = self.tsv_events("own.tsv", "./own.petsird", digits=6)
        print(f"{folder.name}: schema of {said['schema']} bytes, called {shown['format_version']}; {len(found)} "
              f"events, {shown['repeated']} repeated")
        self.assertEqual(len(found), len(said["events"]))
        self.assertNotEqual(shown["format_version"], "other")
        off_mm = off_tof = 0
        for one, other in zip(found, said["events"]):
            self.assertEqual((one[0], one[4] is None), (other[0], other[3] is None))
            off_mm = max(off_mm, *(abs(x - y) for a, b in zip(one[2:4], other[1:3]) for x, y in zip(a, b)))
            off_tof = max(off_tof, 0 if one[4] is None else abs(one[4] - other[3]))
        print(f"    crystals off by at most {off_mm:.2g} mm, times of flight by {off_tof:.2g} mm")
        # A scanner's modules are planes fitted to crystals of single precision.
        self.assertLess(off_mm, 1e-3)
        self.assertLess(off_tof, 1e-3)
        return said["events"]


main({"types": Types, "official": Official})
