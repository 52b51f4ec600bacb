#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/reproduce/listmode.sh that the program does not do. It runs in the script's output folder and
makes the activities of a mouse and of a body, the effects of detection on the body's events, and the report. The report
compares the images of two backends: contrast, noise and deviation (list-mode paper, section II.C.3), figures 3 and 5
to 9, and times.

usage: listmode.py phantoms | detect NU,NV | report [--no-figures]
"""
import json
import re
import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gallery"))
from inputs import header as nifti_header  # noqa: E402

FARTHEST = 1e-3  # largest difference of two backends' images, relative to their root mean square
NAMES = ("rods", "mouse", "timeless", "body")
WORDS = {"timeless": "body without TOF", "body": "body with TOF"}
# Grids of the activities: numbers of voxels, and the edge of a voxel in mm. The mouse's grid is finer than the grid of
# its reconstruction.
FINE = {"mouse": ((100, 100, 72), 0.7), "body": ((140, 140, 50), 4.0)}
COARSE = {"mouse": ((26, 26, 18), 2.8), "body": ((36, 36, 12), 16.0)}  # for --size tiny
# The paper's results: deviation in percent, seconds of GPU and of one CPU thread.
PAPER = {"rods": ("0.05", 7.0, 23 * 60), "mouse": ("0.1", 8.0, 28 * 60), "timeless": ("0.2", None, None),
         "body": ("0.6", 7.7, 42 * 60)}
PAPER_CONTRAST = {"timeless": "2.6, 2.7", "body": "3.0, 3.1"}
WATER, BONE, LUNG = 0.0096, 0.0172, 0.003  # 1/mm at 511 keV
MODULES = 28                               # of the body's scanner
EVENT = numpy.dtype([("ms", "<u4"), ("tof_ps", "<f4"), ("a", "<u4"), ("b", "<u4")])  # CASToR's


def read_settings():
    return dict(word.split("=") for word in open("settings.txt").read().split())


# --- activities ---


class Ellipsoids:
    """An activity drawn by ellipsoids, the later ones over those before."""

    def __init__(self, size, edge_mm):
        self.size, self.edge_mm = size, edge_mm
        self.at = numpy.meshgrid(*(edge_mm * (numpy.arange(n) - (n - 1) / 2) for n in size),
                                 indexing="ij")
        self.values = numpy.zeros(size)

    def add(self, centre_mm, half_mm, value):
        far = sum(((x - c) / h) ** 2 for x, c, h in zip(self.at, centre_mm, half_mm))
        self.values[far < 1] = value

    def write(self, path):
        """x runs fastest in the file."""
        raw = self.values.astype("<f4").tobytes(order="F")
        Path(path).write_bytes(nifti_header(self.size, 3 * (self.edge_mm,)) + raw)


def draw_mouse(where):
    """A bone tracer: skull, spine and limbs hot, bladder hottest; 66 mm of the animal."""
    mouse = Ellipsoids(*where)
    mouse.add((0, 0, 0), (12, 9, 24), 0.2)             # trunk
    mouse.add((0, 2, -21), (7, 6, 6), 1.0)             # skull
    mouse.add((0, 2, -21), (5.5, 4.5, 4.5), 0.2)
    for k in range(13):                                # vertebrae
        mouse.add((0, 5.5, -14 + 2.7 * k), (1.5, 1.5, 1.0), 2.0)
    for side in (-1, 1):                               # limbs
        mouse.add((7 * side, -4, -10), (1, 1, 5), 1.5)
        mouse.add((7 * side, -2, 16), (1.2, 1.2, 6), 1.5)
    mouse.add((0, -4, 16), (2.5, 2.5, 3), 4.0)         # bladder
    mouse.write("mouse.nii")


def draw_body(where):
    """A trunk with lungs, liver, spine and six hot spheres of 16 mm on a circle, one a lung's."""
    body = Ellipsoids(*where)
    body.add((0, 0, 0), (170, 110, 400), 1.0)
    for side in (-1, 1):
        body.add((80 * side, -10, 60), (55, 75, 120), 0.3)
    body.add((60, -20, -60), (80, 60, 40), 1.8)
    body.add((0, 75, 0), (18, 18, 400), 1.3)
    for centre in sphere_centres():
        body.add(centre, (16, 16, 16), 6.0)
    body.write("body.nii")
    density = Ellipsoids(*where)
    density.add((0, 0, 0), (170, 110, 400), WATER)
    for side in (-1, 1):
        density.add((80 * side, -10, 60), (55, 75, 120), LUNG)
    density.add((0, 75, 0), (18, 18, 400), BONE)
    density.write("mu.nii")


def sphere_centres():
    angles = numpy.arange(6) * numpy.pi / 3 + 0.3
    return [(100 * numpy.cos(a), 60 * numpy.sin(a), -20 + 8 * k) for k, a in enumerate(angles)]


def make_phantoms():
    grids = COARSE if read_settings()["size"] == "tiny" else FINE
    draw_mouse(grids["mouse"])
    draw_body(grids["body"])


def make_detected(crystals):
    """Of the true events, those that crystals of different efficiencies see, and as many joined at
    random, of which those between modules in coincidence count. CASToR numbers crystals ring by ring;
    the program, and so files of numbers for each crystal, module by module."""
    random = numpy.random.default_rng(int(read_settings()["seed"]))
    along_u, along_v = (int(word) for word in crystals.split(","))
    count = MODULES * along_u * along_v
    own = random.uniform(0.7, 1, count)
    by_rings = own.reshape(MODULES, along_v, along_u).transpose(1, 0, 2).ravel()
    head = Path("trues.Cdh").read_text()
    window_ps = float(re.search(r"List TOF measurement range \(ps\): (\S+)", head).group(1))
    trues = numpy.fromfile("trues.Cdf", EVENT)
    trues = trues[random.random(len(trues)) < by_rings[trues["a"]] * by_rings[trues["b"]]]
    joined = numpy.zeros(len(trues), EVENT)
    for side in "ab":
        joined[side] = random.choice(count, len(joined), p=by_rings / by_rings.sum())
    joined["tof_ps"] = random.uniform(-window_ps / 2, window_ps / 2, len(joined))
    joined["ms"] = random.permutation(trues["ms"])
    events = numpy.concatenate([trues, joined[joined["a"] != joined["b"]]])
    events[numpy.argsort(events["ms"], kind="stable")].tofile("body.Cdf")
    numpy.save("efficiencies.npy", own.astype(numpy.float32))
    # LOR (a, b) has 2 n own(a) own(b) / (sum of own)^2 of n that are joined.
    numpy.save("singles.npy", ((2 * len(joined)) ** 0.5 * own / own.sum()).astype(numpy.float32))
    head = re.sub(r"(Number of events: )\d+", rf"\g<1>{len(events)}", head)
    Path("body.Cdh").write_text(head.replace("trues.Cdf", "body.Cdf"))


# --- images ---


class Image:
    """What was reconstructed; values [z][y][x]."""

    def __init__(self, path, grid):
        self.values = numpy.load(path).astype(float)
        self.edges = numpy.array(grid["voxel_mm"])
        self.origin = numpy.array(grid["origin_mm"])

    def places(self):
        """x, y and z in mm, each as values are."""
        axes = [o + e * numpy.arange(n) for o, e, n in
                zip(self.origin, self.edges, self.values.shape[::-1])]
        z, y, x = numpy.meshgrid(*axes[::-1], indexing="ij")
        return x, y, z

    def width(self):
        return self.edges[0] * self.values.shape[2]

    def ball(self, centre_mm, radius_mm):
        return sum((p - c) ** 2 for p, c in zip(self.places(), centre_mm)) < radius_mm ** 2


class Pair:
    """The images of the reference (1) and of the other backend (2), iteration by iteration."""

    def __init__(self, name):
        self.name = name
        self.runs = [json.loads(Path(f"{name}-{way}.json").read_text()) for way in (1, 2)]
        count = len(self.runs[0]["iterations"])
        self.images = [[Image(f"{name}-{way}.iter{k + 1}.npy", run["grid"]) for k in range(count)]
                       for way, run in zip((1, 2), self.runs)]

    def deviation(self, over_range=False):
        """Root mean square of the difference over that of the reference, or over the reference's range
        as in the paper, after the iterations."""
        one, other = (images[-1].values for images in self.images)
        rms = numpy.sqrt(((one - other) ** 2).mean())
        return rms / (numpy.ptp(one) if over_range else numpy.sqrt((one ** 2).mean()))

    def words(self):
        return WORDS.get(self.name, self.name)

    def backends(self):
        return [run["operator"]["backend"] for run in self.runs]

    def seconds(self, way):
        return sum(iteration["seconds"] for iteration in self.runs[way]["iterations"])


def rods_regions(image):
    """The rods of 4.8 mm, and what is between them: a sixth of the phantom, in the middle third of the
    slices. The regions are of the truth; voxels that a border crosses are in neither."""
    raw = numpy.fromfile("rods.nii", "<f4", offset=352).reshape(image.values.shape)
    depth = image.values.shape[0]
    x, y, _ = image.places()
    sector = (numpy.degrees(numpy.arctan2(y, x)) % 360 > 300) & (numpy.hypot(x, y) < 0.42 * image.width())
    sector[:depth // 3] = sector[depth - depth // 3:] = False
    return (raw >= 0.999 * raw.max()) & sector, (raw <= 0) & sector


def body_regions(image):
    """The spheres, and the body around them: shells of 8 mm that begin 8 mm outside."""
    spheres = numpy.zeros(image.values.shape, bool)
    shells = numpy.zeros(image.values.shape, bool)
    for centre in sphere_centres():
        spheres |= image.ball(centre, 12)
        shells |= image.ball(centre, 32) & ~image.ball(centre, 24)
    return spheres, shells & ~spheres


def contrast_and_noise(image, regions):
    """As in the paper: the ratio of the means of two regions, and the standard deviation of the values
    in a region, the hot one; here over its mean, as images have scales of their own."""
    if not all(region.any() for region in regions):
        return numpy.nan, numpy.nan
    hot, cold = (image.values[region] for region in regions)
    return hot.mean() / cold.mean() if cold.mean() > 0 else numpy.inf, hot.std() / hot.mean()


# --- the report ---


def compare(pairs):
    lines = ["| what | events | subsets, iterations | by | seconds | RMS over RMS | over the range | the paper's |",
             "|---|---|---|---|---|---|---|---|"]
    for pair in pairs:
        run = pair.runs[0]
        lines.append(f"| {pair.words()} | {run['events']['prompts']} | {run['subsets']}, "
                     f"{len(run['iterations'])} | {' and '.join(pair.backends())} | "
                     f"{pair.seconds(0):.3g} and {pair.seconds(1):.3g} | "
                     f"{100 * pair.deviation():.2g} % | {100 * pair.deviation(True):.2g} % | {PAPER[pair.name][0]} % |")
    return lines


def curves(pairs):
    lines = ["| what | iteration | contrast | noise | the same by the other | the paper's contrast |",
             "|---|---|---|---|---|---|"]
    for pair in pairs:
        if pair.name == "mouse":
            continue
        regions = (rods_regions if pair.name == "rods" else body_regions)(pair.images[0][0])
        for k, (one, other) in enumerate(zip(*pair.images)):
            values = [contrast_and_noise(image, regions) for image in (one, other)]
            lines.append(f"| {pair.words()} | {k + 1} | {values[0][0]:.4g} | {values[0][1]:.4f} | "
                         f"{values[1][0]:.4g}, {values[1][1]:.4f} | {PAPER_CONTRAST.get(pair.name, '')} |")
    return lines


def results(name):
    """Of loraster bench listmode; none where it was not run."""
    path = Path(f"{name}.json")
    return json.loads(path.read_text())["results"] if path.exists() else []


def over_one_thread():
    """A million random lines by one thread of the processor and by the device."""
    alone, device = results("one-thread"), results("first")
    if not alone or not device:
        return []
    lines = ["", "| a million random lines | one thread, s | device, ms | one thread over it | the paper |",
             "|---|---|---|---|---|"]
    for one, other in zip(alone, device):
        seconds = [1e6 / result["lines"] * result["iteration"]["wall_seconds"] for result in (one, other)]
        lines.append(f"| {'with' if one['tof'] else 'without'} TOF, {other['backend']} | {seconds[0]:.3g} | "
                     f"{1e3 * seconds[1]:.4g} | {seconds[0] / seconds[1]:.3g} | above {300 if one['tof'] else 200} |")
    return lines


def new_figure(rows, columns, width, height):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    pyplot.rcParams.update({"font.size": 8, "axes.titlesize": 8})
    return pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False,
                           layout="constrained")


def finish_figure(figure, name, title):
    import matplotlib.pyplot as pyplot
    figure.suptitle(title, fontsize=9)
    figure.savefig(name, dpi=110)
    pyplot.close(figure)


def show(axes, picture, title, limits=(0, None), colours="gray_r"):
    shown = axes.imshow(picture, origin="lower", cmap=colours, vmin=limits[0], vmax=limits[1],
                        interpolation="nearest")
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    return shown


def draw_pair(axes, pair, project, letters):
    """Both images as `project` makes pictures of them, on one scale."""
    one, other = (project(images[-1].values) for images in pair.images)
    limits = (0, numpy.percentile(one, 99.8))
    show(axes[0], one, f"({letters[0]}) {pair.backends()[0]}", limits)
    show(axes[1], other, f"({letters[1]}) {pair.backends()[1]}: up to {abs(other - one).max() / one.max():.1g} of the "
         "largest apart", limits)


def draw_figure3():
    """The paper's grey scale: white 0, grey 1, black 2 collisions."""
    found = results("collisions")
    figure, axes = new_figure(1, len(found), 4.2 * len(found), 4.2)
    for axis, result in zip(axes[0], found):
        nx, ny, _ = result["size"]
        show(axis, numpy.reshape(result["collision_slice"], (ny, nx)),
             f"{'with' if result['tof'] else 'without'} TOF: {100 * result['collisions']:.2g} % of the writes", (0, 2))
    finish_figure(figure, "figure3.png", "Figure 3. Most collisions of 32 lines, one after the other, in each voxel of "
                  "the middle slice:\nwhite none, grey one, black two or more")


def draw_figure5():
    """The paper's bars, the device's time falling from step to step, as times the simple way."""
    found = results("ladder")
    figure, axes = new_figure(1, 2, 9, 3.4)
    for axis, tof in zip(axes[0], (False, True)):
        rows = [result for result in found if result["tof"] == tof]
        rows.sort(key=lambda result: result["variant"] is None)
        simple = rows[0]["iteration"]["wall_seconds"]
        bars = axis.barh(range(len(rows)), [simple / row["iteration"]["wall_seconds"] for row in rows])
        axis.set_yticks(range(len(rows)), [row["variant"] or "the fastest way" for row in rows])
        axis.bar_label(bars, fmt="%.3g", padding=2)
        axis.invert_yaxis()
        axis.margins(x=0.15)
        axis.set_xlabel(f"times as fast as simple, {'with' if tof else 'without'} TOF")
    finish_figure(figure, "figure5.png", "Figure 5. Steps of the paper, each with those before it")


def draw_figure6():
    found = results("blocks")
    figure, axes = new_figure(1, 2, 9, 3.4)
    for axis, tof in zip(axes[0], (False, True)):
        own = [result for result in found if result["tof"] == tof and result["block_threads"]]
        for threads in sorted({result["block_threads"] for result in own}):
            rows = sorted((result for result in own if result["block_threads"] == threads),
                          key=lambda result: result["blocks"])
            axis.plot([row["blocks"] for row in rows],
                      [1e-6 * row["lines"] / row["iteration"]["wall_seconds"] for row in rows],
                      "o-", label=f"{threads} threads")
        axis.set_xlabel("blocks for each multiprocessor")
        axis.set_ylabel(f"million lines a second, {'with' if tof else 'without'} TOF")
        axis.legend()
    finish_figure(figure, "figure6.png", "Figure 6. Lines a second by size and number of blocks")


def draw_figure7(pair):
    figure, axes = new_figure(2, 3, 9, 6.2)
    first = pair.images[0][0]
    middle = first.values.shape[0] // 2
    truth = numpy.fromfile("rods.nii", "<f4", offset=352).reshape(first.values.shape)[middle]
    hot, cold = (region[middle] for region in rods_regions(first))
    show(axes[0, 0], truth, "(a) rods, two regions, line of (e)")
    for region, colour in ((hot, "tab:red"), (cold, "tab:blue")):
        if region.any():
            axes[0, 0].contour(region, [0.5], colors=colour, linewidths=0.6)
    row = int(numpy.argmax((truth * hot).sum(1)))
    axes[0, 0].axhline(row, color="tab:green", linewidth=0.8)
    show(axes[0, 1], numpy.load("rods-map.npy")[0], "(b) normalisation map")
    draw_pair((axes[0, 2], axes[1, 0]), pair, lambda values: values[middle], "cd")
    noise_axis = axes[1, 2].twinx()
    for images, style, name in zip(pair.images, ("-", "--"), pair.backends()):
        image = images[-1]
        at_mm = image.origin[0] + image.edges[0] * numpy.arange(image.values.shape[2])
        axes[1, 1].plot(at_mm, image.values[middle, row], style, label=name)
        values = [contrast_and_noise(image, rods_regions(image)) for image in images]
        counts = range(1, len(values) + 1)
        axes[1, 2].plot(counts, [v[0] for v in values], "o" + style, color="tab:blue", label=f"contrast, {name}")
        noise_axis.plot(counts, [v[1] for v in values], "s" + style, color="tab:red", label=f"noise, {name}")
    axes[1, 1].set(title="(e) profiles", xlabel="x, mm", ylabel="a voxel")
    axes[1, 1].legend()
    axes[1, 2].set(title="(f) contrast (o) and noise (squares)", xlabel="iteration", xticks=counts)
    finish_figure(figure, "figure7.png",
                  f"Figure 7. Hot rods, list-mode OSEM, {pair.runs[0]['events']['prompts']} events")


def draw_figure8(pair):
    figure, axes = new_figure(1, 2, 7, 2.8)
    draw_pair(axes[0], pair, lambda values: values.max(1), "ab")
    finish_figure(figure, "figure8.png", "Figure 8. Mouse, maximum intensity projection along y")


def draw_figure9(timeless, body):
    figure, axes = new_figure(2, 3, 9, 6.2)
    middle = body.images[0][0].values.shape[0] // 2
    draw_pair(axes[0, :2], timeless, lambda values: values[middle], "ab")
    draw_pair(axes[1, :2], body, lambda values: values[middle], "cd")
    axes[0, 0].set_ylabel("without TOF")
    axes[1, 0].set_ylabel("with TOF")
    size = tuple((COARSE if read_settings()["size"] == "tiny" else FINE)["body"][0])
    density = numpy.fromfile("mu.nii", "<f4", offset=352).reshape(size[::-1])
    show(axes[0, 2], density[size[2] // 2], "(e) attenuation, where the paper has CT")
    show(axes[1, 2], numpy.load("body-map.npy")[0], "(f) normalisation map")
    finish_figure(figure, "figure9.png", "Figure 9. Body in the Gemini TF, 636 ps, two grids of blobs, with "
                  "attenuation, efficiencies and randoms")


def make_report(words):
    settings = read_settings()
    pairs = [Pair(name) for name in NAMES]
    text = "\n".join([" ".join(f"{k}={v}" for k, v in settings.items()), "", *compare(pairs), "",
                      "Contrast is the ratio of the means of two regions, noise the standard deviation of the "
                      "hot one's values, over their mean.", "", *curves(pairs), *over_one_thread(), ""])
    Path("report.txt").write_text(text)
    print(text, end="")
    rods, mouse, timeless, body = pairs
    if "--no-figures" not in words:
        draw_figure7(rods)
        draw_figure8(mouse)
        draw_figure9(timeless, body)
        for name, draw_it in (("collisions", draw_figure3), ("ladder", draw_figure5), ("blocks", draw_figure6)):
            if results(name):
                draw_it()
    far = [pair.name for pair in pairs if not pair.deviation() < FARTHEST]
    for name in far:
        print(f"error: {name}: the two backends' images are farther apart than "
              f"{100 * FARTHEST:g} %", file=sys.stderr)
    return 1 if far else 0


def main(words):
    if words == ["phantoms"]:
        make_phantoms()
    elif words[:1] == ["detect"] and len(words) == 2:
        make_detected(words[1])
    elif words[:1] == ["report"]:
        return make_report(words[1:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
