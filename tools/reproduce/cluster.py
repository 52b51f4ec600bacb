#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/reproduce/cluster.sh needs beside the program, in the folder where that works:
activity and density, Poisson counts, and the report: what the program rasterises beside the
formulas of the cluster paper (sections II and III), evaluated here in double, and its figures.

usage: cluster.py inputs | counts | report [--no-figures] at=X,Y,Z...
"""
import os
import re
import shutil
import sys
from pathlib import Path

import h5py
import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gallery"))
from inputs import header as nifti_header  # noqa: E402

EDGE_MM = 64.0     # of the paper's volume
VOXEL_MM = 2.0     # at most: the crystals' pitch, for one point a voxel leaves out LORs beyond it
RAYS, CRYSTALS, PITCH_MM = 4, 32, 2.0
WATER, BONE = 0.0096, 0.0172  # 1/mm at 511 keV
SPHERE_MM = 26.0   # radius of the absorber of figure 9
# A line this near a border, as a share of a crystal, may count for either one: single precision.
BORDER = 1e-4


def read_settings():
    return dict(word.split("=") for word in open("settings.txt").read().split())


# --- inputs ---


def ball(at, centre_mm, radius_mm):
    return sum((x - c) ** 2 for x, c in zip(at, centre_mm)) < radius_mm ** 2


def activity(at):
    """A warm ball with one hot ball in it, and a ring of six, larger from one to the next."""
    values = 0.1 * ball(at, (0, 0, 0), 24)
    values = numpy.where(ball(at, (0, 0, 9), 7), 2.0, values)
    for k in range(6):
        angle = k * numpy.pi / 3
        centre = 15 * numpy.cos(angle), 15 * numpy.sin(angle), -7
        values = numpy.where(ball(at, centre, 2.5 + 0.5 * k), 3.0, values)
    return values


def density(at):
    """A ball of water with two columns of bone."""
    values = WATER * ball(at, (0, 0, 0), 27)
    for x in (-9, 9):
        column = (at[0] - x) ** 2 + (at[1] + 6) ** 2 < 9
        values = numpy.where(column & (abs(at[2]) < 16), BONE, values)
    return values


def sphere(at):
    return WATER * ball(at, (0, 0, 0), SPHERE_MM)


def voxel_mm(voxels):
    return min(EDGE_MM / voxels, VOXEL_MM)


def centres_mm(voxels):
    return (numpy.arange(voxels) - (voxels - 1) / 2) * voxel_mm(voxels)


def draw(field, voxels, parts):
    """Mean of a field over parts^3 points of each voxel, float32 [z, y, x]; small volumes hold all
    of it, smaller."""
    centres = (numpy.arange(voxels) - (voxels - 1) / 2) * EDGE_MM / voxels
    offsets = ((numpy.arange(parts) + 0.5) / parts - 0.5) * EDGE_MM / voxels
    image = numpy.zeros((voxels, voxels, voxels), dtype=numpy.float32)
    for dz in offsets:
        for dy in offsets:
            for dx in offsets:
                for k, z in enumerate(centres):
                    image[k] += field((centres[None, :] + dx, centres[:, None] + dy, z + dz))
    return image / parts ** 3


def write_nifti(name, image):
    """On a centred cube, whole or not at all."""
    head = nifti_header(image.shape, [voxel_mm(len(image))] * 3)
    Path(name + ".part").write_bytes(head + image.astype("<f4").tobytes())
    os.replace(name + ".part", name)


def read_nifti(name):
    values = numpy.fromfile(name, dtype="<f4", offset=352)
    voxels = round(len(values) ** (1 / 3))
    return values.reshape(voxels, voxels, voxels)


def make_inputs(settings):
    voxels = int(settings["voxels"])
    parts = min(max(1, 128 // voxels), 4)
    write_nifti("density.nii", draw(density, voxels, parts))
    write_nifti("sphere.nii", draw(sphere, 128, 2))
    write_nifti("activity.nii", draw(activity, voxels, parts))


def make_counts(settings):
    """Poisson counts of the expectation with absorption, and the emissions that gave them."""
    with h5py.File("expected.h5") as file, h5py.File("factors.h5") as factors:
        expected = file["lor/values"][()].astype(float) * factors["lor/values"][()]
    scale = float(settings["counts"]) / expected.sum()
    random = numpy.random.default_rng(int(settings["seed"]))
    shutil.copy("expected.h5", "counts.h5.part")
    with h5py.File("counts.h5.part", "r+") as file:
        file["lor/values"][...] = random.poisson(scale * expected)
    write_nifti("truth.nii", scale * read_nifti("activity.nii"))
    os.replace("counts.h5.part", "counts.h5")


# --- the paper's formulas ---


class Module:
    def __init__(self, scanner, number):
        self.centre, self.u, self.v, self.normal = (
            scanner[name][number].astype(float) for name in ("centre_mm", "u", "v", "normal"))
        self.crystals = scanner["crystals"][number]
        self.pitch = scanner["pitch_mm"][number]

    def places(self, along_u, along_v):
        """Points of the plane, coordinates in crystals from the corner."""
        a, b = ((x - n / 2) * pitch for x, n, pitch in
                zip((along_u, along_v), self.crystals, self.pitch))
        return self.centre + a[..., None] * self.u + b[..., None] * self.v

    def coordinates(self, points):
        """The reverse of places."""
        return [(points - self.centre) @ axis / pitch + n / 2
                for axis, pitch, n in zip((self.u, self.v), self.pitch, self.crystals)]

    def solid_angles(self, point, places, rays):
        """Delta omega over 2 pi of each line (section II.B)."""
        ray = places - point
        distance = numpy.linalg.norm(ray, axis=-1)
        cosine = abs(ray @ self.normal) / distance
        return self.pitch.prod() / rays ** 2 * cosine / distance ** 2 / (2 * numpy.pi)

    def met_by(self, point, places):
        """Where lines from places through the point end in the plane; either may be many."""
        ray = point - places
        share = (self.centre - places) @ self.normal / (ray @ self.normal)
        return places + share[..., None] * ray


def read_modules(name):
    with h5py.File(name) as file:
        count = len(file["scanner/centre_mm"])
        return [Module(file["scanner"], m) for m in range(count)]


def window(primary, secondary, point):
    """The correspondence image of figure 8 by the formulas: r, s as real numbers, weights."""
    pixels = (numpy.arange(CRYSTALS * RAYS) + 0.5) / RAYS
    along_u, along_v = numpy.meshgrid(pixels, pixels)
    places = primary.places(along_u, along_v)
    ends = secondary.met_by(point, places)
    return (*secondary.coordinates(ends), primary.solid_angles(point, places, RAYS), places, ends)


def chord(places, ends, radius_mm):
    """Lengths of segments in a ball around the origin."""
    direction = ends - places
    length = numpy.linalg.norm(direction, axis=-1)
    direction /= length[..., None]
    nearest = -(places * direction).sum(-1)
    half = numpy.sqrt(numpy.maximum(
        0, radius_mm ** 2 - (places ** 2).sum(-1) + nearest ** 2))
    begin, end = (numpy.clip(nearest + sign * half, 0, length) for sign in (-1, 1))
    return end - begin


def lor_by_formulas(modules, lor, image):
    """A LOR's value, equation 2 with one point a voxel, and how much of it is of lines too near a
    border to tell."""
    centres = centres_mm(len(image))
    offsets = (numpy.arange(RAYS) + 0.5) / RAYS
    total = unsure = 0.0
    sides = [(modules[0], modules[1], lor[:2], lor[2:]), (modules[1], modules[0], lor[2:], lor[:2])]
    for k, z in enumerate(centres):
        rows, columns = numpy.nonzero(image[k])
        points = numpy.stack([centres[columns], centres[rows], numpy.full(len(rows), z)], -1)
        activities = image[k][rows, columns].astype(float)
        far = [numpy.linalg.norm(points - module.centre, axis=-1) for module in modules]
        for (primary, secondary, (p, q), (r, s)), chosen in zip(sides, (far[0] >= far[1],
                                                                        far[0] < far[1])):
            for du in offsets:
                for dv in offsets:
                    place = primary.places(numpy.array(p + du), numpy.array(q + dv))
                    u, v = secondary.coordinates(secondary.met_by(points[chosen], place))
                    weight = primary.solid_angles(points[chosen], place, RAYS) * activities[chosen]
                    # How far inside of the crystal, in crystals; below 0: outside.
                    depth = 0.5 - numpy.maximum(abs(u - r - 0.5), abs(v - s - 0.5))
                    total += weight[depth > BORDER].sum()
                    unsure += weight[abs(depth) <= BORDER].sum()
    return total, unsure


# --- the report ---


class Report:
    """A table of what should come out beside what does, and what contradicts it."""

    def __init__(self):
        self.rows, self.contradictions = [], []

    def add(self, what, expected, here):
        self.rows.append((what, expected, here, ""))

    def law(self, what, expected, here, true):
        self.rows.append((what, expected, here, "holds" if true else "does not hold"))
        if not true:
            self.contradictions.append(what)

    def text(self):
        table = [("quantity", "paper", "here", ""), *self.rows]
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
                 for row in table]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join(lines) + "\n"


def lor_image(name):
    """Of two modules: column p Na + r, row q Nt + s (section III)."""
    with h5py.File(name) as file:
        values = file["lor/values"][()]
    count = round(len(values) ** 0.25)
    return values.reshape(count, count, count, count).transpose(0, 2, 1, 3).reshape(
        count ** 2, count ** 2)


def seconds(name):
    return float(open(name).read())


def percent(value):
    return f"{100 * value:.2g} %"


def report_lors(report, what, modules, values, places, image):
    """Pixels of a LOR image beside equation 2; lines at a border, few, may count or not."""
    count, worst, open_share = modules[0].crystals[0], 0.0, 0.0
    for row, column in places:
        (q, s), (p, r) = divmod(row, count), divmod(column, count)
        total, unsure = lor_by_formulas(modules, (p, q, r, s), image)
        found = float(values[row, column])
        worst = max(worst, (total - found) / (total + unsure),
                    (found - total - unsure) / (total + unsure))
        open_share = max(open_share, unsure / (total + unsure))
    report.law(what, "equal", f"{worst:.1e} apart; at borders {percent(open_share)} at most",
               0 < len(places) and worst < 1e-5 and open_share < 0.1)


def report_figure5(report, settings):
    image = read_nifti("activity.nii")
    random = numpy.random.default_rng(int(settings["seed"]))
    coarse, fine = lor_image("lors2.h5"), lor_image("lors32.h5")
    bright = numpy.argwhere(fine > 0.5 * fine.max())
    chosen = bright[random.choice(len(bright), min(12, len(bright)), replace=False)]
    report_lors(report, "figure 5, the 16 LORs of 2 x 2 crystals, from equations 2 and 5",
                read_modules("lors2.h5"), coarse, numpy.argwhere(coarse >= 0), image)
    report_lors(report, f"figure 5, {len(chosen)} LORs of 32 x 32 crystals, from equations 2 and 5",
                read_modules("lors32.h5"), fine, chosen, image)
    voxels = int(settings["voxels"])
    report.add("figure 5, forward projection of two modules, ms a voxel",
               "0.13 (GeForce 8800 GTX)", f"{1e3 * seconds('lors32.seconds') / voxels ** 3:.3g}")


def report_figure7(report, settings):
    log = Path("recon.log").read_text()
    likelihoods = [float(word) for word in re.findall(r"log-likelihood (\S+), measured", log)]
    rises = all(b > a for a, b in zip(likelihoods, likelihoods[1:]))
    report.law("figure 7, log-likelihood over the iterations", "rises",
               f"{likelihoods[0]:.6g} to {likelihoods[-1]:.6g}", rises and len(likelihoods) > 1)
    image, truth = (read_nifti(name).astype(float) for name in ("image.nii", "truth.nii"))
    report.add("figure 7, correlation with the activity", "",
               f"{numpy.corrcoef(image.ravel(), truth.ravel())[0, 1]:.3f}")
    report.add("figure 7, emissions over the true ones", "", f"{image.sum() / truth.sum():.4f}")
    report.add(f"figure 7, {settings['iterations']} iterations, {settings['voxels']}^3 voxels",
               "below 10 minutes (128^3, five nodes)", f"{seconds('image.seconds'):.0f} s")


def read_window(k, what):
    """module, r, s, weight, length of each pixel."""
    return numpy.moveaxis(numpy.load(f"voxel{k}-{what}/module_0.npy"), -1, 0)


def report_figure8(report, places):
    primary, secondary = read_modules("lors32.h5")
    lines = wrong = 0
    worst = 0.0
    for k, point in enumerate(places):
        module, r, s, weight, _ = read_window(k, "pair")
        u, v, expected, _, _ = window(primary, secondary, point)
        met = (u > 0) & (u < CRYSTALS) & (v > 0) & (v < CRYSTALS)
        sure = (abs(u - numpy.round(u)) > BORDER) & (abs(v - numpy.round(v)) > BORDER)
        agree = numpy.where(met, (module >= 0) & (r == numpy.floor(u)) & (s == numpy.floor(v)),
                            module < 0)
        lines += sure.sum()
        wrong += (sure & ~agree).sum()
        both = met & (module >= 0)
        worst = max(worst, (abs(weight - expected) / expected)[both].max())
    report.law("figure 8, lines that end in another crystal", "0",
               f"{wrong} of {lines}", wrong == 0 and lines > 0)
    report.law("figure 9, geometry: weights, from the solid angles of section II.B", "equal",
               f"{worst:.1e} apart", worst < 1e-5)


def absorption(k, point):
    """exp(-mu t) over each line of voxel k, as rasterised and for the ball itself; NaN: no line."""
    primary, secondary = read_modules("lors32.h5")
    _, _, _, places, ends = window(primary, secondary, point)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        found = read_window(k, "sphere")[3] / read_window(k, "pair")[3]
    found[read_window(k, "pair")[0] < 0] = numpy.nan
    return found, numpy.exp(-WATER * chord(places, ends, SPHERE_MM))


def report_figure9(report, places):
    off = [numpy.abs(numpy.subtract(*absorption(k, point))) for k, point in enumerate(places)]
    mean, worst = (f(numpy.concatenate([o[~numpy.isnan(o)] for o in off]))
                   for f in (numpy.mean, numpy.max))
    # Voxels of 0.5 mm blur the border of the ball by that much of a chord at grazing lines.
    report.law("figure 9, absorption: probabilities, from the chords of the ball",
               "equal (ray marching)", f"{mean:.1e} apart, at most {worst:.1e}",
               mean < 1e-3 and worst < 0.03)


# --- pictures ---

IMAGES = "correspondence images by the fragment shader"


def new_figure(rows, columns, width, height):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    pyplot.rcParams.update({"font.size": 8, "axes.titlesize": 8})
    return pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False,
                           layout="constrained")


def finish_figure(figure, name, says, passes):
    """passes: of backend raster, where that was it."""
    backend = read_settings()["backend"]
    by = f"backend {backend}" + (f": {passes}" if backend == "raster" else "")
    figure.suptitle(f"{says}\n{by}", fontsize=9)
    figure.savefig(name, dpi=85)
    import matplotlib.pyplot as pyplot
    pyplot.close(figure)


def show(axes, values, title, limits=(None, None), colours="inferno"):
    picture = axes.imshow(values, origin="lower", cmap=colours, vmin=limits[0], vmax=limits[1],
                          interpolation="nearest")
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    return picture


def draw_figure5():
    figure, axes = new_figure(1, 3, 11, 4.2)
    coarse, fine = lor_image("lors2.h5"), lor_image("lors32.h5")
    show(axes[0, 0], coarse, "modules of 2 x 2 crystals: p q r s of each LOR", (0, None))
    for row in range(4):
        for column in range(4):
            text = f"{column // 2} {row // 2} {column % 2} {row % 2}"
            dark = coarse[row, column] < 0.6 * coarse.max()
            axes[0, 0].text(column, row, text, ha="center", va="center",
                            color="white" if dark else "black")
    # The brightest of 4 x 4, so that none is lost on the way to the picture's pixels.
    overview = fine.reshape(256, 4, 256, 4).max((1, 3))
    show(axes[0, 1], numpy.sqrt(overview), "32 x 32 crystals: 1024 x 1024 LORs, square roots",
         (0, None))
    edge, middle = 3 * CRYSTALS, CRYSTALS ** 2 // 2
    part = slice(middle - edge // 2 - CRYSTALS // 2, middle + edge // 2 + CRYSTALS // 2)
    show(axes[0, 2], numpy.sqrt(fine[part, part]),
         "the middle 4 x 4 macropixels of 32 x 32 LORs", (0, None))
    for axis in axes[0, :2]:
        axis.set_xlabel("p Na + r")
        axis.set_ylabel("q Nt + s")
    for k in range(1, 4):
        for draw_line in (axes[0, 2].axhline, axes[0, 2].axvline):
            draw_line(k * CRYSTALS - 0.5, color="white", linewidth=0.4)
    finish_figure(figure, "figure5.png",
                  "Figure 5. LOR image of two opposite modules, forward projection of the activity "
                  "of figure 7", f"{IMAGES}; their points through the vertex shader, blended into the LOR image")


def false_colours(k, what):
    """Red along u, green along v, from 0 to 1 over a module; lines that end in no crystal are grey."""
    module, r, s, _, _ = read_window(k, what)
    met = module >= 0
    return numpy.stack([numpy.where(met, r / (CRYSTALS - 1), 0.8), numpy.where(met, s / (CRYSTALS - 1), 0.8),
                        numpy.where(met, 0, 0.8)], -1)


def describe(point):
    return "(" + ", ".join(f"{x:g}" for x in point) + ") mm"


def draw_figure8(places):
    figure, axes = new_figure(2, 3, 9, 6.5)
    for k, point in enumerate(places):
        show(axes[0, k], false_colours(k, "pair"), f"{describe(point)}: opposite module alone")
        show(axes[1, k], false_colours(k, "ring"), f"{describe(point)}: all opposite modules")
    finish_figure(figure, "figure8.png",
                  f"Figure 8. Correspondence images of three voxels, R = {RAYS}, modules of "
                  "32 x 32:\nred r, green s of the crystal met, grey: none", IMAGES)


def draw_figure9(places):
    figure, axes = new_figure(3, 3, 9, 9)
    for k, point in enumerate(places):
        plain, absorbed = (read_window(k, what)[3] for what in ("pair", "sphere"))
        limits = (0, plain.max())
        show(axes[k, 0], plain, f"{describe(point)}: geometry only", limits)
        picture = show(axes[k, 1], absorbed, "+ absorption", limits)
        figure.colorbar(picture, ax=axes[k, 1], shrink=0.8)
        picture = show(axes[k, 2], absorption(k, point)[0], "probability to get through", (0.5, 1),
                       "viridis")
        axes[k, 2].set_facecolor("black")
        figure.colorbar(picture, ax=axes[k, 2], shrink=0.8)
    finish_figure(figure, "figure9.png",
                  f"Figure 9. Weights of lines in a ball of water of {SPHERE_MM:g} mm, by geometry "
                  "only and with absorption", IMAGES)


def make_report(words):
    settings, report = read_settings(), Report()
    places = [numpy.array([float(x) for x in word[3:].split(",")])
              for word in words if word.startswith("at=")]
    report_figure5(report, settings)
    report_figure7(report, settings)
    report_figure8(report, places)
    report_figure9(report, places)
    text = f"{' '.join(f'{k}={v}' for k, v in settings.items())}\n\n{report.text()}"
    open("report.txt", "w").write(text)
    print(text, end="")
    if "--no-figures" not in words:
        draw_figure5()
        draw_figure8(places)
        draw_figure9(places)
    for what in report.contradictions:
        print(f"error: the paper's formulas say otherwise: {what}", file=sys.stderr)
    return 1 if report.contradictions else 0


def main(words):
    if words == ["inputs"]:
        make_inputs(read_settings())
    elif words == ["counts"]:
        make_counts(read_settings())
    elif words[:1] == ["report"]:
        return make_report(words[1:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
