#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/reproduce/listmode.sh needs beside the program, in the folder where that works: the
activities of a mouse and of a body, and the report: images of two backends beside each other, with
the contrast, noise and profiles of the list-mode paper's section II.C.3 and its figures 7 to 9.

usage: listmode.py phantoms | report [--no-figures]
"""
import json
import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gallery"))
from inputs import header as nifti_header  # noqa: E402

FARTHEST = 1e-3  # of two backends' images, relative to their root mean square
NAMES = ("rods", "mouse", "body")
# Activities, on grids finer than those that are reconstructed (mouse) or as fine as the scanner
# sees (body): voxels, and their edge in mm.
FINE = {"mouse": ((100, 100, 72), 0.7), "body": ((140, 140, 50), 4.0)}
COARSE = {"mouse": ((26, 26, 18), 2.8), "body": ((36, 36, 12), 16.0)}  # of --size tiny
PAPER_RMS = {"rods": "0.05", "mouse": "0.1", "body": "0.6"}            # percent


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


def sphere_centres():
    angles = numpy.arange(6) * numpy.pi / 3 + 0.3
    return [(100 * numpy.cos(a), 60 * numpy.sin(a), -20 + 8 * k) for k, a in enumerate(angles)]


def make_phantoms():
    grids = COARSE if read_settings()["size"] == "tiny" else FINE
    draw_mouse(grids["mouse"])
    draw_body(grids["body"])


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

    def deviation(self):
        """Root mean square of the difference over that of the reference, after the iterations."""
        one, other = (images[-1].values for images in self.images)
        return numpy.linalg.norm(one - other) / numpy.linalg.norm(one)

    def backends(self):
        return [run["operator"]["backend"] for run in self.runs]

    def seconds(self, way):
        return sum(iteration["seconds"] for iteration in self.runs[way]["iterations"])


def rods_regions(image):
    """In a rod of 4.8 mm, the largest, and between rods: voxels well within the activity, and
    farther than a millimetre from it, in the middle slices. The regions are of the truth."""
    raw = numpy.fromfile("rods.nii", "<f4", offset=352).reshape(image.values.shape)
    hot = raw >= 0.999 * raw.max()
    middle = numpy.zeros_like(hot)
    depth = image.values.shape[0]
    middle[depth // 3:depth - depth // 3] = True
    x, y, _ = image.places()
    inside = x ** 2 + y ** 2 < (0.4 * image.edges[0] * image.values.shape[2]) ** 2
    return hot & middle, (raw <= 0) & inside & middle


def body_regions(image):
    """The spheres, and the body around them: shells of 8 mm that begin 8 mm outside."""
    spheres = numpy.zeros(image.values.shape, bool)
    shells = numpy.zeros(image.values.shape, bool)
    for centre in sphere_centres():
        spheres |= image.ball(centre, 12)
        shells |= image.ball(centre, 32) & ~image.ball(centre, 24)
    return spheres, shells & ~spheres


def contrast_and_noise(image, regions):
    hot, cold = (image.values[region] for region in regions)
    warm = hot.mean() if len(hot) else numpy.nan
    rest = cold.mean() if len(cold) else numpy.nan
    return (warm - rest) / (warm + rest), cold.std() / warm


# --- the report ---


def compare(pairs):
    lines = ["| what | events | subsets, iterations | by | seconds | RMS deviation | the paper's |",
             "|---|---|---|---|---|---|---|"]
    for pair in pairs:
        run = pair.runs[0]
        lines.append(f"| {pair.name} | {run['events']['prompts']} | {run['subsets']}, "
                     f"{len(run['iterations'])} | {' and '.join(pair.backends())} | "
                     f"{pair.seconds(0):.3g} and {pair.seconds(1):.3g} | "
                     f"{100 * pair.deviation():.2g} % | {PAPER_RMS[pair.name]} % |")
    return lines


def curves(pairs):
    lines = ["| what | iteration | contrast | noise | the same by the other |",
             "|---|---|---|---|---|"]
    for pair, regions_of in zip((pairs[0], pairs[2]), (rods_regions, body_regions)):
        regions = regions_of(pair.images[0][0])
        for k, (one, other) in enumerate(zip(*pair.images)):
            values = [contrast_and_noise(image, regions) for image in (one, other)]
            lines.append(f"| {pair.name} | {k + 1} | {values[0][0]:.4f} | {values[0][1]:.4f} | "
                         f"{values[1][0]:.4f}, {values[1][1]:.4f} |")
    timeless = Image("body-timeless.npy", pairs[2].runs[1]["grid"])
    contrast, noise = contrast_and_noise(timeless, body_regions(timeless))
    lines.append(f"| body without times of flight | {len(pairs[2].images[0])} | {contrast:.4f} | "
                 f"{noise:.4f} | |")
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


def draw_beside(axes, pair, project, title):
    """Both images as `project` makes pictures of them, and their difference a thousandfold finer."""
    one, other = (project(images[-1].values) for images in pair.images)
    limits = (0, one.max())
    show(axes[0], one, f"{title}, {pair.backends()[0]}", limits)
    show(axes[1], other, f"{title}, {pair.backends()[1]}", limits)
    difference = (other - one) / one.max()
    largest = max(abs(difference).max(), 1e-12)
    shown = show(axes[2], difference, f"difference: up to {100 * largest:.1g} % of the largest",
                 (-largest, largest), "RdBu_r")
    axes[2].figure.colorbar(shown, ax=axes[2], shrink=0.8)


def draw_figure7(pair):
    figure, axes = new_figure(2, 3, 9, 6)
    middle = pair.images[0][0].values.shape[0] // 2
    draw_beside(axes[0], pair, lambda values: values[middle], "middle slice")
    for images, style, name in zip(pair.images, ("-", "--"), pair.backends()):
        image = images[-1]
        row = image.values.shape[1] // 2
        at_mm = image.origin[0] + image.edges[0] * numpy.arange(image.values.shape[2])
        axes[1, 0].plot(at_mm, image.values[middle, row], style, label=name)
        values = [contrast_and_noise(image, rods_regions(image)) for image in images]
        counts = range(1, len(values) + 1)
        axes[1, 1].plot(counts, [v[0] for v in values], "o" + style, label=name)
        axes[1, 2].plot(counts, [v[1] for v in values], "s" + style, label=name)
    for axis, (across, up) in zip(axes[1], (("x, mm", "emissions a voxel, y = 0"),
                                            ("iteration", "contrast"), ("iteration", "noise"))):
        axis.set_xlabel(across)
        axis.set_ylabel(up)
        axis.legend()
    finish_figure(figure, "figure7.png", "Figure 7. Hot rods, list-mode OSEM")


def draw_figure8(pair):
    figure, axes = new_figure(1, 3, 9, 3.4)
    draw_beside(axes[0], pair, lambda values: values.max(1), "maximum intensity")
    finish_figure(figure, "figure8.png", "Figure 8. Mouse, maximum intensity projection along y")


def draw_figure9(pair):
    figure, axes = new_figure(2, 3, 9, 6)
    spheres = pair.images[0][0]
    middle = spheres.values.shape[0] // 2
    draw_beside(axes[0], pair, lambda values: values[middle], "with times of flight")
    row = int(numpy.argmin(abs(spheres.origin[1] + spheres.edges[1] *
                               numpy.arange(spheres.values.shape[1]))))
    draw_beside(axes[1], pair, lambda values: values[:, row], "coronal")
    finish_figure(figure, "figure9.png", "Figure 9. Body in the Gemini TF, 636 ps")


def make_report(words):
    settings = read_settings()
    pairs = [Pair(name) for name in NAMES]
    text = "\n".join([" ".join(f"{k}={v}" for k, v in settings.items()), "", *compare(pairs), "",
                      "Contrast is (hot - cold) / (hot + cold), noise the standard deviation of cold "
                      "voxels over the mean of hot ones.", "", *curves(pairs), ""])
    Path("report.txt").write_text(text)
    print(text, end="")
    if "--no-figures" not in words:
        draw_figure7(pairs[0])
        draw_figure8(pairs[1])
        draw_figure9(pairs[2])
    far = [pair.name for pair in pairs if not pair.deviation() < FARTHEST]
    for name in far:
        print(f"error: {name}: the two backends' images are farther apart than "
              f"{100 * FARTHEST:g} %", file=sys.stderr)
    return 1 if far else 0


def main(words):
    if words == ["phantoms"]:
        make_phantoms()
    elif words[:1] == ["report"]:
        return make_report(words[1:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
