#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables, in Markdown, of what `loraster bench` writes as JSON, beside the figures of papers and of other projectors.

usage: tools/bench_table.py [FILE...] [--before FILE...]

Each FILE holds an object of bench, or several (docs/formats/json.md, "bench"); without one, standard input is read.
With --before, the seconds of the results that both sides have, medians over their objects, and their ratios."""
import argparse
import json
import math
import signal
import statistics
import sys

# --- the papers that lr/direct.h names, seconds; theirs are a GeForce GTX 285 and a GTX 480 ---
VIEWS, ITERATIONS = 120, 20
MODELS = ("invariant 5.8 mm", "variant 1", "variant 2", "variant 3")
PAPER_VIEW = {"caches": (0.10932, 0.07612), "large": (2.59, 2.56)}  # forward, back
PAPER_RAMLA = dict(zip(MODELS, (15.63, 22.43, 25.66, 24.68)))
PAPER_FOURIER = 21.48  # the same iteration
TABLE2 = {"paper 1, threads (GTX 285)": (4.94, 4.37), "paper 1, instructions (GTX 285)": PAPER_VIEW["large"]}
TABLE2_TAKEN = (("paper 1, threads (GTX 285)", 36, 0, 64, 512, "14, 13", 100),
                ("paper 1, instructions (GTX 285)", 36, 0, 64, 384, "42, 42", 38))
TABLE4 = {"invariant 5.8 mm": (7.53, 105.27, 2.85, 0.32, 7.59, 103.18, 2.85, 12.59, 311.97),
          "variant 1": (7.55, 172.88, 2.86, 0.32, 7.59, 169.81, 2.85, 12.58, 446.21)}
CACHES = {"paper 2, shared memory (GTX 480)": (0.16213, 0.14077, 0.00003, "-"),
          "paper 2, texture cache (GTX 480)": (*PAPER_VIEW["caches"], 0.00003, 24)}
CACHES_FOURIER = 40

# --- the paper that lr/listmode.h names: ms without and with time of flight, by table, image, width and 10^6 lines ---
BODY = (75, 75, 26)
PAPER_MS = {
    **{("lines", BODY, 3, lines): ms for lines, ms in {
        1: (95, 61), 2: (190, 122), 5: (475, 301), 10: (949, 600)}.items()},
    **{("widths", BODY, width, 1): ms for width, ms in {
        1: (44, 24), 3: (95, 61), 5: (215, 128), 7: (382, 226), 9: (614, 360), 11: (906, 529), 13: (1256, 731),
        15: (1668, 968)}.items()},
    **{("voxels", (n, n, n), 3, 1): ms for n, ms in {
        32: (53, 29), 48: (73, 42), 64: (95, 57), 128: (367, 232), 256: (2119, 1387)}.items()},
    **{("both", (n, n, n), width, 1): ms for (n, width), ms in {
        (32, 1): (21, 11), (48, 2): (30, 17), (64, 3): (95, 57), (128, 6): (828, 509), (192, 9): (5962, 3595),
        (256, 12): (18994, 11317)}.items()},
    **{(table, BODY, 3, 1): (95, 61) for table in ("first", "ladder", "blocks", "collisions")},
    **{("fastmath", BODY, width, 1): (0, ms) for width, ms in {3: 61, 5: 128, 7: 226}.items()}}
PAPER_SLOPE_MS = (95, 60)  # figure 5, a million lines
PAPER_FASTMATH = {3: (27, 30.7, 1.7e-6), 5: (56, 30.4, 1.3e-6), 7: (106, 31.9, 0.7e-6)}  # ms and % saved, deviation
PAPER_PEAK = (10.5, 16.5)  # 10^6 lines a second, 15 blocks of 1024 threads

# Other projectors with a million random lines and BODY, ms: forward, back and both with the update, and voxels a line,
# without and with time of flight.
PEERS_SOURCE = "one NVIDIA H200, driver 580, 2026-11-20, by CUDA's events: design notes"
PEERS = (("libparallelproj 2.0.8, Joseph", (252, 105), ((0.715, 2.828, 3.55), (0.414, 1.283, 1.71))),
         ("parallelproj 1.10.2, Joseph", (252, 105), ((0.807, 2.931, 3.75), (1.035, 1.270, 2.31))),
         ("YRT-PET, Siddon", (93, 40), ((0.892, 1.048, 1.95), (0.425, 0.467, 0.90))),
         ("YRT-PET, distance-driven, 2 voxels", (573, 245), ((4.83, 6.60, 11.4), (2.35, 2.85, 5.21))),
         ("OMEGA, orthogonal tube, 3 voxels", (485, 485), ((5.27, 5.73, 11.0), (8.63, 11.0, 19.7))),
         ("OMEGA, Siddon", (94, 94), ((0.426, 1.083, 1.52), (2.62, 2.78, 5.41))))


def best(times):
    """Seconds by the device's clock, or by the wall where it has none; 0 = not measured."""
    return times["device_seconds"] or times["wall_seconds"] or 0


def text(value, form=".4g"):
    """A number; "-" for what is not known."""
    return "-" if value is None or not math.isfinite(value) else format(value, form)


def number(value):
    """Three digits, or all before the point."""
    return text(value, ".0f" if value and 1000 <= abs(value) < 1e7 else ".3g")


def table(heads, rows, aligned=False):
    """aligned: columns as wide as what they hold, for a terminal."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) if aligned else 0 for column in zip(heads, *rows)]
    print()
    for row in (heads, ["-" * max(3, width) for width in widths], *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def grid(size):
    return "x".join(map(str, size))


def mean(value, error):
    return f"{value:.1f}" if not error else f"{value:.0f} +- {error:.0f}"


# --- bench correspondence ---

def correspondence_rows(result):
    name = f"{result['backend']}, {result['mode']}" + (f" R = {result['rays']}" if result.get("rays") else "")
    if result["outcome"] != "measured":
        return [[name, "not here" if result["outcome"] == "skipped" else "FAILED", *10 * [""]]]
    rows, size = [], grid(result["grid"]["size"])
    for way in ("forward", "back"):
        found = result[way]
        nearest = max(found["ceilings"], key=lambda ceiling: ceiling["fraction"], default=None)
        rays, elements = found["rays_per_second"], found["elements_per_second"]
        rows.append([name, size, way, number(1e3 * found["wall_seconds"]), number(found["wall_us_per_voxel"]),
                     number(found["device_us_per_voxel"]), number(rays and 1e-9 * rays),
                     mean(result["elements_per_voxel"], result["elements_standard_error"]), number(1e-9 * elements),
                     f"{100 * nearest['fraction']:.2g} % {nearest['what']}" if nearest else "-",
                     "oracle" if result["is_oracle"] else number(result["matrix_error"]),
                     number(result["adjoint_error"])])
        rows += [[one["name"], "", way, "", "", number(1e6 * one["seconds"] / result["num_voxels"]), *6 * [""]]
                 for one in found["device_passes"]]
    if "update" in result:
        wall, device = result["update"]["wall_seconds"], result["update"]["device_seconds"]
        rows.append([name, size, "update", number(1e3 * wall), number(1e6 * wall / result["num_voxels"]),
                     number(device and 1e6 * device / result["num_voxels"]), *6 * [""]])
    return rows


def correspondence(found):
    device = found["device"]
    print(f"device {device['renderer']}, OpenGL {device['opengl']}" if device else "device none")
    print("\nms, us/voxel: wall clock of one projection, median. device us: the same a voxel by the device's own "
          "clock. Rates and shares of a ceiling are of the device's time where it has one. elements: exact non-zeros "
          "a voxel. error: of the matrix, against exact elements (relative L2). adjoint: |<A x, y> - <x, A^T y>| / "
          "<A x, y>.")
    for workload in found["workloads"]:
        voxel = " x ".join(f"{edge:g}" for edge in workload["grid"]["voxel_mm"])
        print(f"\n### {workload['workload']}\n\n{workload['description']}; {grid(workload['grid']['size'])} voxels "
              f"of {voxel} mm; {workload['num_lors']} LORs; "
              f"{mean(workload['elements_per_voxel'], workload['elements_standard_error'])} exact elements a voxel "
              f"(mean of {workload['elements_voxels']})")
        table(["backend, mode", "voxels", "", "ms", "us/voxel", "device us", "Glines/s", "elements", "Gelem./s",
               "of ceiling", "error", "adjoint"],
              [row for result in found["results"] if result["workload"] == workload["workload"]
               for row in correspondence_rows(result)], aligned=True)
        for result in found["results"]:
            if result["workload"] == workload["workload"] and "reason" in result:
                print(f"\n{result['backend']}, {result['mode']}: {result['reason']}.")


# --- bench direct ---

def iteration(result):
    """Seconds of 120 views forward and back, and whether they are of projections alone."""
    whole = result["ramla"]["wall_seconds"]
    return whole or VIEWS * (best(result["forward_batch"]) + best(result["back_batch"])), not whole


def fourier(results, workload, case):
    """Seconds of one volume by the fastest library, without zeros around it; 0 = none."""
    return min((best(peer["single"]) for result in results if (result["workload"], result["case"]) == (workload, case)
                for peer in result["fft"] if not peer["padded"]), default=0)


def direct_peers(results):
    rows = [[f"{result['workload']}, {result['case']}", peer["name"],
             " x ".join(map(str, peer["size"])) + (", zeros around" if peer["padded"] else ""),
             text(1e3 * best(peer["single"])), f"{1e3 * best(peer['batch']):.4g} ({peer['volumes']})",
             text(peer["error"], ".2g")] for result in results for peer in result["fft"]]
    if rows:
        print("\nBy Fourier transforms: there, times the kernel's spectrum, and back; ms a volume, by the device's "
              "clock where there is one. The kernel is that of the centre everywhere; error: relative L2 against our "
              "projection with it. Without zeros around it ends meet.")
        table(["case", "library", "voxels", "one volume", "of a batch", "error"], rows)


def direct_table2(results):
    print("\nTable II of paper 1: one view, 900 ps, 10 to 100 mm, axial 10 mm, 144 x 144 x 48; seconds. Ours: one "
          "view by itself, and the mean of views in a row.")
    rows = [[name, f"{forward:.2f}", f"{back:.2f}"] for name, (forward, back) in TABLE2.items()]
    for result in results:
        rows += [[f"{result['variant']}, {what}", *(text(best(result[way + kind])) for way in ("forward", "back"))]
                 for what, kind in (("one view", ""), (f"of {result['forward_batch']['views']} views", "_batch"))]
    table(["", "forward", "back"], rows)
    print("\nTable II of paper 1: what kernels take, by the driver's own query; registers of the paper are those of "
          "forward and back.")
    rows = list(TABLE2_TAKEN)
    for result in results:
        rows += [[f"{result['variant']}, {way}",
                  *(found[f"{key}_bytes"] for key in ("constant", "local", "shared")), found["threads"],
                  found["registers"],
                  f"{100 * found['occupancy']:.0f}"]
                 for way in ("forward", "back") for found in [result.get(f"{way}_attributes")] if found]
    table(["", "constant memory, bytes", "local memory of a thread, bytes", "shared memory of a block, bytes",
           "threads of a block", "registers of a thread", "occupancy, %"], rows)


def direct_table3(results, variants):
    print("\nTable III of paper 1: one RAMLA iteration of 40 x 3 views, 144 x 144 x 48; seconds. ~: projections "
          "alone, from the views that there was time for. The paper's read the data and take images to and fro; ours "
          "have the data on the device. Fourier: by the fastest library.")
    rows = [["paper 1", *(f"{seconds:.2f}" for seconds in (PAPER_FOURIER, *PAPER_RAMLA.values()))]]
    for variant in variants:
        own = {result["case"]: result for result in results if result["variant"] == variant}
        cells = [text(2 * VIEWS * fourier(results, "clinical", MODELS[0]) or None) if MODELS[0] in own else "-"]
        cells[0] = "~" + cells[0] if cells[0] != "-" else "-"
        for model in MODELS:
            seconds, is_estimate = iteration(own[model]) if model in own else (None, False)
            cells.append(("~" if is_estimate else "") + text(seconds))
        rows.append([variant, *cells])
    table(["", "Fourier, invariant", "invariant", "variant 1", "variant 2", "variant 3"], rows)
    for result in results:
        if result["case"] == MODELS[0] and result["load_seconds"]:
            print(f"\n{result['variant']}: loading all views once takes {result['load_seconds']:.3g} s.")


def direct_table4(results):
    print("\nTable IV of paper 1: stages of 20 iterations of 40 x 3 views; seconds. As the paper: every projection "
          "by itself, discrepancy and update on the host, scaled from the views that there was time for. Resident: "
          "20 of our iterations; update is all that is no projection. The paper's totals hold more than its stages.")
    rows = []
    for model, paper in TABLE4.items():
        name = model.replace(" 5.8 mm", "")
        rows.append([f"paper 1, {name}", *map(text, paper)])
        for result in (result for result in results if result["case"] == model):
            if "stages" in result:
                stages = result["stages"]
                forward, back = (tuple(stages[way][f"{part}_seconds"] for part in ("to_device", "project", "to_host"))
                                 for way in ("forward", "back"))
                scaled = [ITERATIONS * VIEWS * part for part in (*forward, stages["discrepancy_seconds"], *back,
                                                                 stages["update_seconds"])]
                rows.append([f"{result['variant']}, {name}, as the paper ({stages['views']} views)",
                             *map(text, (*scaled, sum(scaled)))])
            if result["ramla"]["wall_seconds"]:
                whole = ITERATIONS * result["ramla"]["wall_seconds"]
                forward, back = (ITERATIONS * VIEWS * best(result[f"{way}_batch"]) for way in ("forward", "back"))
                rows.append([f"{result['variant']}, {name}, resident",
                             *map(text, (0, forward, 0, 0, 0, back, 0, max(0.0, whole - forward - back), whole))])
    table(["", "to device", "forward", "to host", "discrepancy", "to device", "back", "to host", "update", "total"],
          rows)


def direct_figure4(results, variants):
    print("\nFigure 4 of paper 1: one view, invariant kernels; ms. The paper draws bars without numbers; its text: "
          "at 375 ps and 4 mm its projection takes half of the transform's time, at 2 mm 2.7 times as much; from 4 "
          "to 2 mm it takes 54.3 times as long, the transform 9.4 times. Fourier: by the fastest library.")
    rows = []
    for case in dict.fromkeys(result["case"] for result in results):
        transform = fourier(results, "figure4", case)
        row = [case, text(1e3 * transform or None)]
        for variant in variants:
            own = next((one for one in results if (one["case"], one["variant"]) == (case, variant)), None)
            forward, back = (best(own["forward"]), best(own["back"])) if own else (0, 0)
            row += [text(1e3 * forward), text(1e3 * back), text(forward / transform if transform else 0, ".3g")]
        rows.append(row)
    table(["", "Fourier", *(f"{variant}: {what}" if what == "forward" else what for variant in variants
                            for what in ("forward", "back", "forward / Fourier"))], rows)


def direct_caches(results):
    print("\nTable 2 of paper 2: one view, 144 x 144 x 62, 45 mm along the line, 5 to 6 mm across; seconds. "
          f"Iteration: 120 views forward and back (paper 2: Fourier transforms {CACHES_FOURIER} s on a processor).")
    table(["", "forward", "back", "tables", "iteration"],
          [[name, *(f"{seconds:.5f}" for seconds in paper[:3]), paper[3]] for name, paper in CACHES.items()] +
          [[result["variant"], *(text(best(result[work])) for work in ("forward", "back", "tables")),
            text(iteration(result)[0])] for result in results])


def direct(found):
    results = found["results"]
    variants = list(dict.fromkeys(result["variant"] for result in results))
    print(f"Backend on {results[0]['device'] if results else 'no device'}. Times are the device's where it has a "
          "clock; ms a view; share: of the fused multiply-add ceiling, 2 operations an offset and voxel.")
    rows = []
    for result in results:
        for way, back in (("forward", 0), ("back", 1)):
            share, one, batch = result[f"{way}_flop_share"], result[way], result[f"{way}_batch"]
            paper = PAPER_VIEW.get(result["workload"])
            row = [f"{result['workload']}, {result['case']}; {result['variant']}", f"{result['offsets']:.0f}", way,
                   text(1e3 * best(one)), f"{1e3 * best(batch):.4g} ({batch['views']})",
                   f"{share:.3f}" if share else "", text(1e3 * paper[back]) if paper else "", *4 * [""]]
            if not back:
                row[7:9] = text(1e3 * best(result["tables"])), text(1e3 * best(result["tables_batch"]))
                wall, device = result["ramla"]["wall_seconds"], result["ramla"]["device_seconds"] or 0
                if wall:
                    row[9:11] = f"{1e3 * device:.4g} / {1e3 * wall:.4g}", f"{1e3 * PAPER_RAMLA[result['case']]:.0f}"
            rows.append(row)
    table(["case", "offsets", "direction", "one view", "of a batch", "share", "paper", "tables, one view", "of a batch",
           "RAMLA iteration, device / wall", "paper"], rows)
    direct_peers(results)
    if not found["paper"]:
        return
    large, clinical, figure4, caches = ([result for result in results if result["workload"] == name]
                                        for name in ("large", "clinical", "figure4", "caches"))
    if large:
        direct_table2(large)
    if clinical:
        direct_table3(clinical, variants)
        direct_table4(clinical)
    if figure4:
        direct_figure4(figure4, variants)
    if caches:
        direct_caches(caches)


# --- bench listmode ---

def kernel(result, between=", TOF"):
    return result["kernel"] + (between if result["tof"] else "")


def paper_ms(result):
    key = (result["table"], tuple(result["size"]), result["width_voxels"], round(1e-6 * result["paper_lines"]))
    return PAPER_MS.get(key, (0, 0))[result["tof"]]


def listmode_row(result):
    scale = 1e3 * result["paper_lines"] / result["lines"]  # ms for the paper's number of lines
    blocks = f", {result['blocks']} x {result['block_threads']} threads" if result["block_threads"] else ""
    shares = [f"{100 * ceiling['fraction']:.2g} %" for ceiling in result["ceilings"][:2]] or 2 * ["not known"]
    wall = result["iteration"]["wall_seconds"]
    return [result["table"], " x ".join(map(str, result["size"])), result["width_voxels"], result["lines"],
            kernel(result) + blocks, result["backend"] + (f", {result['variant']}" if result["variant"] else ""),
            text(scale * best(result["forward"])), text(scale * best(result["back"])), text(scale * wall),
            text(paper_ms(result), ".0f") if paper_ms(result) else "", text(1e-6 * result["lines"] / wall),
            text(1e-9 * result["voxels_per_s"]), *shares,
            f"{result['joules']:.3g}, {result['energy_source']}" if result["joules"] else "not told",
            text(scale * result["partition_seconds"], ".3g"), text(scale * result["sort_seconds"], ".3g"),
            text(result["prepare_seconds"], ".3g")]


def listmode_fits(results):
    """T = a N + b of the tables of lines, least squares, and how long reconstructions take."""
    kinds = {}
    for result in results:
        if result["iterations"]:
            print(f"\n{kernel(result, ' with TOF')}, {result['backend']}: {result['iterations']} iterations of "
                  f"{result['subsets']} subsets of {result['lines']} events take "
                  f"{result['iterations'] * result['iteration']['wall_seconds']:.4g} s.")
        if result["table"] in ("lines", "linear"):
            kind = tuple(result[key] for key in ("table", "variant", "kernel", "tof", "backend"))
            kinds.setdefault(kind, []).append(result)
    for alike in kinds.values():
        lines = [1e-6 * result["lines"] for result in alike]
        if len(set(lines)) > 1:
            slope, constant = statistics.linear_regression(
                lines, [1e3 * result["iteration"]["wall_seconds"] for result in alike])
            print(f"\n{kernel(alike[0], ' with TOF')}, {alike[0]['backend']}: T = {slope:.4g} ms N "
                  f"{'-' if constant < 0 else '+'} {abs(constant):.3g} ms, N million lines (the paper: about "
                  f"{PAPER_SLOPE_MS[alike[0]['tof']]} ms N).")


def listmode_paper(results):
    for result in results:
        if result["image_deviation"] is not None:
            plain = next(one for one in results if one["variant"] == "sorted" and all(
                one[key] == result[key] for key in ("table", "width_voxels", "kernel", "tof")))
            before, after = (one["iteration"]["wall_seconds"] for one in (plain, result))
            saved, share, apart = PAPER_FASTMATH[result["width_voxels"]]
            print(f"\nFast math (table II), tube of {result['width_voxels']} voxels: {1e3 * (before - after):.3g} ms "
                  f"of an iteration saved, {100 * (1 - after / before):.1f} %; images "
                  f"{result['image_deviation']:.2g} apart (the paper: {saved:.0f} ms, {share:.1f} %, {apart:.2g}).")
        if result["most_collisions"]:
            print(f"\nCollisions (figure 3), {result['backend']}, {'with' if result['tof'] else 'without'} TOF: of "
                  f"32 lines drawn one after the other {100 * result['collisions']:.2g} % of the writes are to a "
                  f"voxel that another one of them writes to, at most {result['most_collisions']} of them to one "
                  "(the paper: 0.2 % at the same time, at most 3); back takes "
                  f"{best(result['back']) / best(result['forward']):.3g} times as long as forward (the paper: atomic "
                  "writes cost less than 10 %).")
    for tof in (False, True):
        peak = min((result for result in results if result["block_threads"] and result["tof"] == tof), default=None,
                   key=lambda result: result["iteration"]["wall_seconds"])
        if peak:
            print(f"\nBlocks (figure 6), {'with' if tof else 'without'} TOF: the most are "
                  f"{1e-6 * peak['lines'] / peak['iteration']['wall_seconds']:.4g} million lines a second, with "
                  f"blocks of {peak['block_threads']} threads, about {peak['blocks']} for each multiprocessor (the "
                  f"paper: {PAPER_PEAK[tof]:.1f}).")


def listmode_peers(results):
    ours = [result for result in results if result["table"] == "first"]
    if ours:
        print(f"\nPeers ({PEERS_SOURCE}), and ours here; ms for a million lines.")
        table(["projector", "TOF", "voxels a line", "forward", "back", "iteration"],
              [[name, "yes" if tof else "no", visits[tof], *(text(one, ".3g") for one in ms[tof])]
               for name, visits, ms in PEERS for tof in (0, 1)] +
              [[f"LORaster, {result['kernel']}, {result['backend']}", "yes" if result["tof"] else "no",
                f"{result['visits_a_line']:.0f}",
                *(text(1e9 * seconds / result["lines"], ".3g") for seconds in (
                    best(result["forward"]), best(result["back"]), result["iteration"]["wall_seconds"]))]
               for result in ours])


def listmode(found):
    results = found["results"]
    print("Random lines; times are for the paper's number of them. ms: forward and back by the device's clock where "
          "it has one; iteration (both, ratio and update) by the wall; events partitioned (the paper: 12 ms a "
          "million) and sorted where they have TOF (64 ms, and 262 ms for 5 million) once. Loads and adds: voxels of "
          "lines, forward as a share of the loads of shared memory that the device reaches, back of its integer "
          "atomics there. J: of an iteration, where a driver tells it (NVML: the card; RAPL: the processors).")
    table(["table", "image", "width", "lines", "kernel", "backend", "forward", "back", "iteration", "paper",
           "10^6 lines/s", "10^9 voxels/s", "loads", "adds", "J", "partition", "sort", "prepared, s"],
          map(listmode_row, results))
    listmode_fits(results)
    listmode_paper(results)
    listmode_peers(results)


# --- bench cluster ---

def size(number_of_bytes):
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while number_of_bytes >= 1024 and len(units) > 1:
        number_of_bytes /= 1024
        units.pop(0)
    return f"{number_of_bytes:.0f} bytes" if units[0] == "bytes" else f"{number_of_bytes:.1f} {units[0]}"


def cluster(runs):
    """Runs of several numbers of ranks in one table; over one: times as fast as one rank."""
    alone = {run["scaling"]: run["results"][0]["seconds"] for run in runs if run["rank_count"] == 1}
    table(["scaling", "ranks", "scheme", "iterations", "seconds", "project", "exchange", "wait", "compose",
           "sent by a rank", "memory", "image error", "over one"],
          [[run["scaling"], run["rank_count"], found["scheme"], found["iterations"][-1]["number"],
            *(f"{found[key]:.3f}" for key in ("seconds", "project_seconds", "exchange_seconds", "waiting_seconds",
                                              "compose_seconds")),
            size(found["sent_bytes"]), size(found["peak_memory_bytes"]),
            f"{found['iterations'][-1]['image_error']:.4f}",
            f"{alone[run['scaling']] / found['seconds']:.2f}" if run["scaling"] in alone else ""]
           for run in runs for found in run["results"]])


# --- before and after ---

LABELS = ("workload", "case", "table", "size", "width_voxels", "lines", "kernel", "tof", "backend", "mode", "rays",
          "variant", "blocks", "block_threads", "subsets", "scheme", "num_voxels")


def seconds_of(value, name=()):
    """All seconds of a result, by their names."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from seconds_of(inner, (*name, key))
        elif key.endswith("seconds") and "spread" not in key and isinstance(inner, (int, float)) and inner > 0:
            yield " ".join((*name, key.removesuffix("seconds").strip("_"))).strip(), inner


def describe(key, value):
    """Words of a label: "cuda", "lines 1000", "tof"."""
    if isinstance(value, str):
        return value
    return key if value is True else f"{key} {grid(value) if isinstance(value, list) else value}"


def medians(objects):
    found = {}
    for one in objects:
        of_all = (one["verb"], one.get("scaling"), one.get("rank_count"))
        for result in one["results"]:
            label = (*of_all, *(describe(key, result[key]) for key in LABELS if result.get(key)))
            for name, seconds in seconds_of(result):
                found.setdefault((label, name), []).append(seconds)
    return {key: (statistics.median(all_of_it), len(all_of_it)) for key, all_of_it in found.items()}


def ratios(before, after):
    commits = [", ".join(dict.fromkeys(one["commit"] for one in side)) for side in (before, after)]
    print(f"Medians, ms; before: {commits[0]}; after: {commits[1]}.")
    before, after = medians(before), medians(after)
    table(["result", "seconds of", "runs", "before", "after", "after / before"],
          [[", ".join(str(word) for word in label if word), name or "all", f"{before[label, name][1]}, {runs}",
            text(1e3 * before[label, name][0]), text(1e3 * seconds), f"{seconds / before[label, name][0]:.3f}"]
           for (label, name), (seconds, runs) in after.items() if (label, name) in before], aligned=True)


def read(names):
    """The objects of files, one after the other or in a list."""
    decoder, objects = json.JSONDecoder(), []
    for name in names:
        with open(sys.stdin.fileno() if name == "-" else name, encoding="utf-8") as file:
            rest = file.read().strip()
        while rest:
            found, end = decoder.raw_decode(rest)
            objects += found if isinstance(found, list) else [found]
            rest = rest[end:].strip()
    for one in objects:
        if not str(one.get("verb", "")).startswith("bench ") or "results" not in one:
            raise ValueError("this is nothing that loraster bench has written")
    return objects


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", metavar="FILE", nargs="*", default=["-"],
                        help="JSON of bench; default: standard input")
    parser.add_argument("--before", metavar="FILE", nargs="+", help="that of before: ratios of seconds")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # its reader may have seen enough
    try:
        objects, before = read(arguments.files), read(arguments.before or [])
    except (OSError, ValueError) as problem:
        sys.exit(f"error: {problem}")
    if before:
        ratios(before, objects)
        return
    writers = {"bench correspondence": correspondence, "bench direct": direct, "bench listmode": listmode}
    runs = [one for one in objects if one["verb"] == "bench cluster"]
    for one in objects:
        if one["verb"] != "bench cluster" or one is runs[0]:
            print(f"`{one['command']}`\n\nLORaster {one['version']}, commit {one['commit']}, {one['date']}; "
                  f"processor {one['processor']}.\n")
            cluster(runs) if one["verb"] == "bench cluster" else writers[one["verb"]](one)
            print()


if __name__ == "__main__":
    main()
