#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/reproduce/direct.sh that the program does not do. It runs in the script's output folder and makes
first images, RAMLA by FFT, and the report. The report has contrast recovery and noise (paper 1 of lr/direct.h, section
6.1), the paper's claims and its figures.

usage: direct.py initial | points FILE NX,NY,NZ | fft | report [--no-figures]
"""
import json
import os
import sys

import numpy

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import bench_table

FWHM = 2.3548200450309493
MODELS = ["invariant", "variant1", "variant2", "variant3"]
SPHERE_MM, CIRCLE_MM, CYLINDER_MM = 10.0, 75.0, 350.0
# With fewer detected pairs, noise may change the order of the models, which then does not contradict the paper.
SUFFICIENT_COUNTS = 10_000_000
# The noise at which the paper compares the models (section 6.2), and the iterations after which they have this noise.
PAPER_NOISE = 0.08
PAPER_ITERATIONS = {"invariant": 22, "variant1": 19, "variant2": 21, "variant3": 26, "fft": 22}


def read_settings():
    words = open("settings.txt").read().split()
    return dict(word.split("=") for word in words)


class Grid:
    """Of the histo-images and images; axes in mm."""

    def __init__(self):
        found = json.load(open("counts.json"))
        self.size = found["grid"]["size"]
        self.voxel_mm = found["grid"]["voxel_mm"]
        self.origin_mm = found["grid"]["origin_mm"]
        self.weight, self.views = found["weight"], found["views"]
        self.x, self.y, self.z = (self.origin_mm[k] + self.voxel_mm[k] * numpy.arange(self.size[k])
                                  for k in range(3))
        self.middle = int(numpy.argmin(abs(self.z)))

    def disc(self, centre_mm, diameter_mm, parts=16):
        """Share of each pixel of a slice that lies in a disc."""
        offsets = (numpy.arange(parts) + 0.5) / parts - 0.5
        x = (self.x[:, None] + offsets * self.voxel_mm[0]).ravel() - centre_mm[0]
        y = (self.y[:, None] + offsets * self.voxel_mm[1]).ravel() - centre_mm[1]
        inside = y[:, None] ** 2 + x[None, :] ** 2 <= (diameter_mm / 2) ** 2
        return inside.reshape(self.size[1], parts, self.size[0], parts).mean((1, 3))


def save(name, values):
    """float32, whole or not at all."""
    with open(name + ".part", "wb") as file:
        numpy.save(file, numpy.ascontiguousarray(values, dtype=numpy.float32))
    os.replace(name + ".part", name)


def make_initial():
    """A disc with room for the cylinder, as active as the counts say on average."""
    grid = Grid()
    disc = grid.disc((0, 0), CYLINDER_MM + 24) > 0.5
    level = grid.weight / grid.views / (disc.sum() * grid.size[2])
    save("initial.npy", numpy.broadcast_to(disc * level, grid.size[::-1]))


def make_points(name, size):
    """Three points along y. The last of figure 5 is near enough to the border for a kernel of 50 mm
    to reach it; those of figures 6 and 7 are far enough from each other."""
    values = numpy.zeros(size[::-1])
    for place in (0, 0.375, 0.75) if name.startswith("points5") else (0, 0.35, -0.7):
        values[size[2] // 2, size[1] // 2 + round(place * size[1] / 2), size[0] // 2] = 1000
    save(name, values)


# --- by FFT: periodic Gaussians whose spectrum ends at the Nyquist frequency ---


def view_axes(azimuth_deg, tilt_deg):
    """tof, radial, axial as (x, y, z)."""
    f, t = numpy.radians(azimuth_deg), numpy.radians(tilt_deg)
    return numpy.array([[numpy.cos(t) * numpy.cos(f), numpy.cos(t) * numpy.sin(f), numpy.sin(t)],
                        [-numpy.sin(f), numpy.cos(f), 0],
                        [-numpy.sin(t) * numpy.cos(f), -numpy.sin(t) * numpy.sin(f), numpy.cos(t)]])


def spectrum(shape, voxel_mm, view, fwhm_mm):
    """Of the Gaussian with these widths along the view's axes; shape is [nz, ny, nx]."""
    fz = numpy.fft.fftfreq(shape[0], voxel_mm[2])[:, None, None]
    fy = numpy.fft.fftfreq(shape[1], voxel_mm[1])[None, :, None]
    fx = numpy.fft.rfftfreq(shape[2], voxel_mm[0])[None, None, :]
    exponent = 0
    for axis, width in zip(view_axes(*view), fwhm_mm):
        exponent = exponent + (width / FWHM * (axis[0] * fx + axis[1] * fy + axis[2] * fz)) ** 2
    return numpy.exp(-2 * numpy.pi ** 2 * exponent)


def tof_mm(tof_ps):
    return 0.5 * 0.299792458 * tof_ps


def bits_backwards(count):
    """The numbers below count in the order of their bits read backwards."""
    bits = max(1, (count - 1).bit_length())
    numbers = [int(f"{k:0{bits}b}"[::-1], 2) for k in range(1 << bits)]
    return [k for k in numbers if k < count]


def view_order(views_deg):
    """Geometric: azimuths as above, and the next tilt with each."""
    azimuths = int((views_deg[:, 1] == views_deg[0, 1]).sum())
    tilts = len(views_deg) // azimuths
    return [(turn + k) % tilts * azimuths + azimuth for turn in range(tilts)
            for k, azimuth in enumerate(bits_backwards(azimuths))]


def quick_size(least):
    """The next size without prime factors above 5, of which transforms are quick."""
    size = least
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 1


def make_fft(settings):
    """RAMLA with the invariant model, convolutions by FFT on an array with room around the grid."""
    import h5py
    grid = Grid()
    shape = [quick_size(size + room) for size, room in zip(grid.size[::-1], (9, 36, 36))]
    inner = tuple(slice(0, size) for size in grid.size[::-1])
    image = numpy.load("initial.npy").astype(float)
    relaxation = float(settings["relaxation"])

    def convolve(values, kernel):
        padded = numpy.zeros(shape)
        padded[inner] = values
        return numpy.fft.irfftn(numpy.fft.rfftn(padded) * kernel, shape, axes=(0, 1, 2))[inner]

    with h5py.File("counts.h5") as file:
        views = file["histo/views_deg"][()]
        kernels = [spectrum(shape, grid.voxel_mm, view, (tof_mm(400), 5.8, 5.8)).astype(numpy.float32)
                   for view in views]
        for iteration in range(int(settings["fft"])):
            for view in view_order(views):
                counts = file["histo/values"][view].astype(float).reshape(image.shape)
                estimate = convolve(image, kernels[view])
                # Ripples of the spectrum's end are no counts.
                seen = estimate > 1e-3 * estimate.max()
                ratio = numpy.where(seen, counts / numpy.where(seen, estimate, 1) - 1, 0)
                image *= numpy.maximum(0, 1 + relaxation * convolve(ratio, kernels[view]))
            save(f"fft.iter{iteration + 1}.npy", image)
    save("fft.npy", image)


# --- contrast recovery and noise ---


class Measure:
    """Of images on the grid of the counts, in the slice of the spheres."""

    def __init__(self, contrast):
        self.grid = grid = Grid()
        self.contrast = contrast
        angles = numpy.arange(6) * numpy.pi / 3
        self.spheres = []
        for angle in angles:
            at = CIRCLE_MM * numpy.cos(angle), CIRCLE_MM * numpy.sin(angle)
            inner = SPHERE_MM + 14
            annulus = grid.disc(at, inner + 16) - grid.disc(at, inner)
            self.spheres.append((grid.disc(at, SPHERE_MM), annulus))
        self.uniform = grid.disc((0, 0), 50) > 0.5
        self.rim, self.within = (grid.disc((0, 0), 2 * outer) - grid.disc((0, 0), 2 * inner)
                                 for inner, outer in ((168, 172), (156, 164)))

    def recoveries(self, image):
        slice_ = image[self.grid.middle].astype(float)
        found = []
        for roi, annulus in self.spheres:
            sphere, background = ((slice_ * part).sum() / part.sum() for part in (roi, annulus))
            found.append((sphere - background) / background / (self.contrast - 1))
        return numpy.array(found)

    def overshoot(self, image):
        """Just inside the cylinder's border over some voxels farther in."""
        slice_ = image[self.grid.middle].astype(float)
        rim, within = ((slice_ * part).sum() / part.sum() for part in (self.rim, self.within))
        return rim / within

    def noise(self, image):
        values = image[self.grid.middle][self.uniform].astype(float)
        return values.std(ddof=1) / values.mean()


def at_noise(curve, level):
    """Contrast recovery and iteration where a curve has a noise level; NaN where it has not."""
    noise = curve["noise"]
    if not noise[0] <= level <= noise[-1] or (numpy.diff(noise) <= 0).any():
        return numpy.nan, numpy.nan
    return (numpy.interp(level, noise, curve["crc"].mean(1)),
            numpy.interp(level, noise, numpy.arange(1, len(noise) + 1)))


def read_curves(settings):
    measure = Measure(float(settings["contrast"]))
    curves = {}
    for model in [*MODELS, "fft"]:
        images = [numpy.load(f"{model}.iter{k + 1}.npy")
                  for k in range(int(settings["fft" if model == "fft" else "iterations"]))]
        curves[model] = {"crc": numpy.array([measure.recoveries(image) for image in images]),
                         "noise": numpy.array([measure.noise(image) for image in images]),
                         "overshoot": measure.overshoot(images[-1]),
                         "slices": [image[measure.grid.middle] for image in images]}
    return curves


# --- projections of point sources ---


def widths(profile, peak, step_mm, level):
    """Distances at which a profile falls to a part of its value at `peak`, before and after it."""
    found = []
    for direction in (-1, 1):
        k, half = peak, profile[peak] * level
        while 0 < k < len(profile) - 1 and profile[k + direction] > half:
            k += direction
        nxt = profile[min(max(k + direction, 0), len(profile) - 1)]
        share = (profile[k] - half) / (profile[k] - nxt) if profile[k] > nxt else 0
        found.append((abs(k - peak) + share) * step_mm)
    return found


def cut(slice_, centre, direction, step):
    """Values along a line through a pixel, linear in between; direction is (x, y)."""
    reach = int(0.45 * min(slice_.shape) / step)
    s = numpy.arange(-reach, reach + 1) * step
    x, y = centre[0] + s * direction[0], centre[1] + s * direction[1]
    good = (x >= 0) & (y >= 0) & (x < slice_.shape[1] - 1) & (y < slice_.shape[0] - 1)
    i = numpy.clip(x.astype(int), 0, slice_.shape[1] - 2)
    j = numpy.clip(y.astype(int), 0, slice_.shape[0] - 2)
    u, v = x - i, y - j
    values = ((1 - v) * ((1 - u) * slice_[j, i] + u * slice_[j, i + 1]) +
              v * ((1 - u) * slice_[j + 1, i] + u * slice_[j + 1, i + 1]))
    return numpy.where(good, values, 0), reach


def point_voxel_mm():
    return 16 if read_settings()["size"] == "tiny" else 4


def point_widths(name, azimuth_deg):
    """For each of the three points, nearest first: distance from the axis across the view's lines,
    full width at half of the value there, and widths at a fifth of it towards the axis and away
    from it, in mm."""
    points, projected = numpy.load("points6.npy"), numpy.load(name + ".npy")
    middle, edge_mm = points.shape[0] // 2, point_voxel_mm()
    rows, columns = numpy.nonzero(points[middle])
    axis = view_axes(azimuth_deg, 0)[1][:2]
    found = []
    for row, column in zip(rows, columns):
        at_mm = edge_mm * ((column - (points.shape[2] - 1) / 2) * axis[0] +
                           (row - (points.shape[1] - 1) / 2) * axis[1])
        profile, peak = cut(projected[middle], (column, row), axis * numpy.sign(at_mm), 0.25)
        found.append((abs(at_mm), sum(widths(profile, peak, 0.25 * edge_mm, 0.5)),
                      *widths(profile, peak, 0.25 * edge_mm, 0.2)))
    return sorted(found)


# --- the report ---


class Report:
    """A table of what is measured beside the paper's, and what contradicts it."""

    def __init__(self):
        self.rows, self.contradictions = [], []

    def add(self, what, paper, here, verdict=""):
        self.rows.append((what, paper, here, verdict))

    def claim(self, what, paper, here, true, judged=True):
        """A claim of the paper, which counts only where it can be judged."""
        verdict = "holds" if true else "does not hold" if judged else "does not hold (not judged)"
        self.add(what, paper, here, verdict)
        if judged and not true:
            self.contradictions.append(what)

    def text(self):
        table = [("quantity", "paper", "here", ""), *self.rows]
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
                 for row in table]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join(lines) + "\n"


def percent(value):
    return f"{100 * value:.3g} %"


def report_curves(report, curves, settings):
    """Section 6.2 and figure 9. The differences are between reconstructions of the same events;
    their standard errors are over the spheres."""
    enough = int(settings["counts"]) >= SUFFICIENT_COUNTS and settings["size"] != "tiny"
    last = {model: curve["crc"][-1] for model, curve in curves.items()}
    for model in curves:
        report.add(f"contrast recovery, {model}, last iteration", "",
                   f"{last[model].mean():.3f} +- {last[model].std(ddof=1) / 6 ** 0.5:.3f}")
    for model, sign in (("variant1", -1), ("variant2", 1), ("variant3", 1)):
        difference = last[model] - last["invariant"]
        report.claim(f"contrast recovery, {model} - invariant", "lower" if sign < 0 else "higher",
                     f"{difference.mean():+.4f} +- {difference.std(ddof=1) / 6 ** 0.5:.4f}",
                     sign * difference.mean() > 0, enough)
    done = len(curves["fft"]["noise"])
    after = "" if done == len(curves["invariant"]["noise"]) else f", iteration {done}"
    off = (last["fft"] - curves["invariant"]["crc"][done - 1]).mean()
    report.add(f"contrast recovery, FFT - invariant{after}", "nearly 0", f"{off:+.4f}")
    noise = curves["fft"]["noise"][-1] / curves["invariant"]["noise"][done - 1] - 1
    report.add(f"noise, FFT over invariant - 1{after}", "nearly 0", percent(noise))
    for model in ("variant2", "variant3"):
        over, usual = curves[model]["overshoot"], curves["invariant"]["overshoot"]
        report.claim(f"overshoot at the cylinder's border, {model}, invariant",
                     "more with wider models", f"{over:.3f}, {usual:.3f}", over > usual, enough)
    for level in matched_noises(curves):
        for model in curves:
            crc, iteration = at_noise(curves[model], level)
            reached = not numpy.isnan(crc)
            report.add(f"iterations to {percent(level)} noise, {model}",
                       f"{PAPER_ITERATIONS[model]} (about 8 %)",
                       f"{iteration:.2f}" if reached else "not reached")
            report.add(f"contrast recovery at {percent(level)} noise, {model}", "",
                       f"{crc:.3f}" if reached else "not reached")


def matched_noises(curves):
    """The paper's level, where all reach it, and the highest that all reach, but for those with fewer
    iterations."""
    most = max(len(curve["noise"]) for curve in curves.values())
    highest = min(curve["noise"][-1] for curve in curves.values() if len(curve["noise"]) == most)
    of_paper = [PAPER_NOISE] if all(curve["noise"][0] <= PAPER_NOISE <= curve["noise"][-1]
                                    for curve in curves.values()) else []
    return [*of_paper, highest]


def figure5_parts(support):
    """FFT, the program, their difference over the maximum, on the grid of the points."""
    points, found = numpy.load("points5.npy"), numpy.load(f"figure5-k{support}.npy")
    kernel = spectrum(points.shape, [point_voxel_mm()] * 3, (0, 0), (tof_mm(900), 50, 10))
    by_fft = numpy.fft.irfftn(numpy.fft.rfftn(points) * kernel, points.shape, axes=(0, 1, 2))
    return by_fft, found, (found - by_fft) / by_fft.max()


def report_points(report, settings):
    """Section 5.2: figures 5, 6 and 7."""
    for support in (9, 20):
        difference = abs(figure5_parts(support)[2]).max()
        report.add(f"figure 5, largest difference from FFT over maximum, k2 = {support}",
                   "below 1 %", percent(difference))
    judged = settings["size"] != "tiny"
    forward, back = point_widths("figure6-forward", 0), point_widths("figure6-back", 0)
    for (distance, full, inner, outer), (_, _, back_in, back_out) in zip(forward, back):
        model = 10 + 90 * distance / 288
        report.add(f"figure 6, forward, width at {distance:.0f} mm", f"{model:.1f} mm (model)",
                   f"{full:.1f} mm")
        report.claim(f"figure 6, forward, outer over inner width at {distance:.0f} mm",
                     "1: symmetric", f"{outer / inner:.3f}", abs(outer / inner - 1) < 0.05, judged)
        if distance > 20:
            report.claim(f"figure 6, back, outer over inner width at {distance:.0f} mm",
                         "above 1: wider outwards", f"{back_out / back_in:.3f}",
                         back_out / back_in > 1.05, judged)
    for width in ("invariant", "variant"):
        for way, sign in (("forward", -1), ("back", 1)):
            distance, _, inner, outer = point_widths(f"figure7-asymmetric-{width}-{way}", 30)[-1]
            report.claim(f"figure 7, asymmetric, {width}, {way}, outer over inner at "
                         f"{distance:.0f} mm",
                         "below 1: to the centre" if sign < 0 else "above 1: outwards",
                         f"{outer / inner:.3f}", sign * (outer / inner - 1) > 0.05, judged)


# --- pictures ---


def new_figure(rows, columns, width=9.0, height=None):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    pyplot.rcParams.update({"font.size": 8, "axes.titlesize": 8})
    return pyplot.subplots(rows, columns, figsize=(width, height or width * rows / columns),
                           squeeze=False, layout="constrained")


def finish_figure(figure, name, says):
    figure.suptitle(says, fontsize=9)
    figure.savefig(name, dpi=85)
    import matplotlib.pyplot as pyplot
    pyplot.close(figure)


def show(axes, slice_, title, limits=(None, None), colours="gray_r"):
    picture = axes.imshow(slice_, origin="lower", cmap=colours, vmin=limits[0], vmax=limits[1],
                          interpolation="nearest", aspect="equal")
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    return picture


def planes(volume):
    """Transverse, sagittal and coronal slices through the points' plane and line."""
    z, y, x = volume.shape
    return {"transverse": volume[z // 2], "sagittal": volume[:, :, x // 2].T,
            "coronal": volume[:, int(y // 2), :]}


def draw_figure5():
    figure, axes = new_figure(2, 3, height=6.3)
    for row, support in enumerate((9, 20)):
        by_fft, found, difference = figure5_parts(support)
        peak = by_fft.max()
        for column, (values, title) in enumerate((
                (by_fft, "FFT: whole Gaussian, periodic"),
                (found, f"this program, k² = {support}"),
                (difference, f"difference: up to {percent(abs(difference).max())} of maximum"))):
            limits = (-0.01, 0.01) if column == 2 else (0, peak)
            picture = show(axes[row, column], planes(values)["transverse"], title, limits,
                           "RdBu_r" if column == 2 else "gray_r")
        figure.colorbar(picture, ax=axes[row, 2], shrink=0.8)
    finish_figure(figure, "figure5.png",
                  "Figure 5. Invariant symmetric kernel, point sources along y (transverse). "
                  "The paper: below 1 % apart; the kernel's border and\nthe FFT's periodic images "
                  "(bottom edge) show in the difference")


def rooted(slice_):
    """Square roots, so that tails show."""
    return numpy.sqrt(numpy.maximum(slice_, 0) / slice_.max())


def draw_figure6():
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    pyplot.rcParams.update({"font.size": 8, "axes.titlesize": 8})
    figure, axes = pyplot.subplot_mosaic("TSC;tsc;PPP", figsize=(7.5, 9), layout="constrained",
                                         width_ratios=(1, 0.35, 1))
    points = numpy.load("points6.npy")
    y_mm = point_voxel_mm() * (numpy.arange(points.shape[1]) - (points.shape[1] - 1) / 2)
    for places, way, style in (("TSC", "forward", "-"), ("tsc", "back", "--")):
        volume = numpy.load(f"figure6-{way}.npy")
        for place, (name, slice_) in zip(places, planes(volume).items()):
            show(axes[place], rooted(slice_), f"{way}, {name}", (0, 1))
        axes["P"].plot(y_mm, volume[points.shape[0] // 2, :, points.shape[2] // 2], style,
                       label=way)
    axes["P"].set_xlabel("y, mm: along the points")
    axes["P"].set_yscale("log")
    axes["P"].set_ylim(1e-2)
    axes["P"].legend()
    finish_figure(figure, "figure6.png",
                  "Figure 6. Symmetric variant kernel, square roots (y upwards). The paper: "
                  "symmetric spread forward,\nwider with the distance; asymmetric back, wider "
                  "outwards")


def draw_figure7():
    figure, axes = new_figure(2, 4, width=10, height=5.8)
    kinds = [("symmetric", "invariant"), ("symmetric", "variant"), ("asymmetric", "invariant"),
             ("asymmetric", "variant")]
    for row, way in enumerate(("forward", "back")):
        for column, (shape, width) in enumerate(kinds):
            slice_ = planes(numpy.load(f"figure7-{shape}-{width}-{way}.npy"))["transverse"]
            show(axes[row, column], rooted(slice_),
                 f"({'abcd'[column]}) {shape}, {width}: {way}", (0, 1))
    finish_figure(figure, "figure7.png",
                  "Figure 7. Four kinds of kernels at 30 degrees (transverse, square roots). The "
                  "paper: asymmetric kernels are drawn out\ntowards the centre forward, and away "
                  "from it back; more so, the farther out, where they are variant")


STYLES = {"invariant": ("black", "o-"), "fft": ("tab:orange", "x--"), "variant1": ("tab:red", "s-"),
          "variant2": ("tab:green", "^-"), "variant3": ("tab:purple", "d-")}


def draw_figure9(curves, settings):
    figure, axes = new_figure(1, 1, width=6.5, height=4.6)
    for model, curve in curves.items():
        colour, style = STYLES[model]
        axes[0, 0].plot(100 * curve["noise"], curve["crc"].mean(1), style, color=colour,
                        label=model, markersize=5, fillstyle="none")
    axes[0, 0].set_xlabel("noise: standard deviation over mean in the central 50 mm, %")
    axes[0, 0].set_ylabel("contrast recovery, mean of six 10 mm spheres")
    axes[0, 0].grid(alpha=0.3)
    axes[0, 0].legend()
    finish_figure(figure, "figure9.png",
                  f"Figure 9. Contrast recovery against noise, iterations 1 to "
                  f"{settings['iterations']}, {settings['counts']} pairs.\nThe paper: FFT and "
                  "invariant alike; variant1 ends slightly lower,\nvariant2 and variant3 higher")


def draw_figure10(curves, settings):
    """Images between two iterations, so that all have the same noise."""
    levels, order = matched_noises(curves), ["fft", *MODELS]
    figure, axes = new_figure(len(levels), 5, width=11, height=0.4 + 2.5 * len(levels))
    for row, level in enumerate(levels):
        for column, model in enumerate(order):
            _, iteration = at_noise(curves[model], level)
            title = f"({'abcde'[column]}) {model}, {percent(level)} noise\n"
            if numpy.isnan(iteration):
                axes[row, column].set_title(title + "not reached")
                axes[row, column].axis("off")
                continue
            before = min(int(iteration), len(curves[model]["slices"]) - 1)
            one, other = curves[model]["slices"][before - 1:before + 1]
            slice_ = one + (iteration - before) * (other.astype(float) - one)
            middle = [slice(size // 2 - 5, size // 2 + 5) for size in slice_.shape]
            show(axes[row, column], slice_ / slice_[tuple(middle)].mean(), title + f"iteration {iteration:.1f}",
                 (0, float(settings["contrast"]) * 0.6))
    finish_figure(figure, "figure10.png",
                  "Figure 10. The spheres' slice at matched noise. The paper (about 8 %): "
                  "wider models overshoot more at borders")


def draw_figure8():
    figure, axes = new_figure(1, 1, width=6.5, height=4.2)
    for model in MODELS:
        found = json.load(open(f"widths-{model}.json"))
        widths_mm = found["radial_fwhm_mm"]
        axes[0, 0].plot(found["epsilon_mm"] * numpy.arange(len(widths_mm)), widths_mm,
                        color=STYLES[model][0], label=model)
    axes[0, 0].axvline(CIRCLE_MM, color="gray", linewidth=0.8, linestyle=":")
    axes[0, 0].text(CIRCLE_MM + 3, 11, "spheres", color="gray")
    axes[0, 0].set_xlim(0, 288)
    axes[0, 0].set_ylim(0, 13)
    axes[0, 0].set_xlabel("distance from the axis, mm")
    axes[0, 0].set_ylabel("width across the line, FWHM, mm")
    axes[0, 0].grid(alpha=0.3)
    axes[0, 0].legend()
    finish_figure(figure, "figure8.png",
                  "Figure 8. Widths of the models, as the kernels have them. The paper:\nvariant1 is "
                  "5.8 mm at the spheres, variant2 at the centre; it does not give variant3's form")


def draw_figure4():
    """Bars of the fastest Fourier transform and of each variant, forward and back."""
    results = json.load(open("figure4.json"))["results"]
    cases = list(dict.fromkeys(result["case"] for result in results))
    variants = list(dict.fromkeys(result["variant"] for result in results))
    bars = [("Fourier", [bench_table.fourier(results, "figure4", case) for case in cases])]
    for variant in variants:
        own = {result["case"]: result for result in results if result["variant"] == variant}
        bars += [(f"{variant}, {way}", [bench_table.best(own[case][way]) if case in own else 0 for case in cases])
                 for way in ("forward", "back")]
    figure, axes = new_figure(1, 1, width=9.0, height=4.2)
    for k, (name, seconds) in enumerate(bars):
        places = numpy.arange(len(cases)) + 0.85 * ((k + 0.5) / len(bars) - 0.5)
        axes[0, 0].bar(places, [1e3 * value for value in seconds], 0.8 / len(bars), label=name)
    axes[0, 0].set_xticks(range(len(cases)), [case.replace(", ", ",\n") for case in cases])
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter
    axes[0, 0].set_yscale("log")
    axes[0, 0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0, 0].yaxis.set_major_formatter(ScalarFormatter())
    axes[0, 0].yaxis.set_minor_formatter(NullFormatter())
    axes[0, 0].set_ylabel("one view, ms")
    axes[0, 0].legend()
    finish_figure(figure, "figure4.png",
                  "Figure 4. Projections of invariant kernels beside the Fourier transform. The paper: the transform's "
                  "time is the same\nfor all kernels; at 375 ps and 4 mm the projection takes half of it, at 2 mm 2.7 "
                  "times as long")


# --- the second paper's figures ---


def case_times():
    """Name and seconds forward and back: the paper's two methods, then what was timed here."""
    found = json.load(open("times.json"))
    rows = [(name, *seconds[:2]) for name, seconds in bench_table.CACHES.items()]
    for case in found["results"]:
        seconds = [bench_table.best(case[way]) for way in ("forward", "back")]
        none = "None: " if "threads" in case["variant"] else ""  # the paper's bar without a cache
        rows.append((f"{none}{case['variant']}\n{case['device']}", *seconds))
    return rows


def draw_caches4():
    rows = case_times()
    figure, axes = new_figure(1, 1, width=7.5, height=1.2 + 0.5 * len(rows))
    places = numpy.arange(len(rows))[::-1]
    for shift, way, colour in ((0.2, 1, "tab:blue"), (-0.2, 2, "tab:orange")):
        bars = axes[0, 0].barh(places + shift, [1e3 * row[way] for row in rows], 0.38,
                               color=colour, label=("forward", "back")[way - 1])
        labels = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in bars.datavalues]
        axes[0, 0].bar_label(bars, labels, padding=2)
    axes[0, 0].set_yticks(places, [row[0] for row in rows])
    axes[0, 0].set_xscale("log")
    axes[0, 0].set_xlabel("one view of 144 x 144 x 62 voxels, ms")
    axes[0, 0].margins(x=0.15)
    axes[0, 0].legend(loc="best")
    finish_figure(figure, "caches4.png",
                  "Figure 4 of the caches paper. It: forward slower than back, texture cache "
                  "faster than shared memory")


def draw_caches5():
    figure, axes = new_figure(1, 2, width=7.0, height=3.9)
    for column, way in enumerate(("forward", "back")):
        slice_ = planes(numpy.load(f"caches5-{way}.npy"))["transverse"]
        show(axes[0, column], slice_, f"({'ab'[column]}) {way}", (0, slice_.max()))
    finish_figure(figure, "caches5.png",
                  "Figure 5 of the caches paper: a slice projected at 30 degrees, its kernel of "
                  "45 mm along the line,\n5 to 6 mm across. Here the phantom of figure 10")


def make_report(draws):
    settings, report = read_settings(), Report()
    curves = read_curves(settings)
    report_curves(report, curves, settings)
    report_points(report, settings)
    text = f"{' '.join(f'{k}={v}' for k, v in settings.items())}\n\n{report.text()}"
    open("report.txt", "w").write(text)
    with open("curves.json", "w") as file:
        json.dump({model: {"crc": curve["crc"].tolist(), "noise": curve["noise"].tolist()}
                   for model, curve in curves.items()}, file, indent=1)
    print(text, end="")
    if draws:
        draw_figure5()
        draw_figure6()
        draw_figure7()
        draw_figure8()
        draw_figure9(curves, settings)
        draw_figure10(curves, settings)
        draw_caches5()
        if os.path.exists("figure4.json"):
            draw_figure4()
        if os.path.exists("times.json"):
            draw_caches4()
    if int(settings["counts"]) < SUFFICIENT_COUNTS or settings["size"] == "tiny":
        print(f"contrast recoveries are not judged: {settings['counts']} pairs, and "
              f"{SUFFICIENT_COUNTS} are needed")
    for what in report.contradictions:
        print(f"error: the paper's claim does not hold: {what}", file=sys.stderr)
    return 1 if report.contradictions else 0


def main(words):
    if words[:1] == ["initial"]:
        make_initial()
    elif words[:1] == ["points"] and len(words) == 3:
        make_points(words[1], [int(word) for word in words[2].split(",")])
    elif words[:1] == ["fft"]:
        make_fft(read_settings())
    elif words[:1] == ["report"]:
        return make_report("--no-figures" not in words)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
