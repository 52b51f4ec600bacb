#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""LORaster and parallelproj 2 through their Python interfaces, on one device, in one process.

    tools/compare_parallelproj.py [--small] [--events N] [--repeat N] [--backend NAME] [--parts PART,...] [--json FILE]

The scanner is GE's Discovery MI, which both libraries model with the same numbers, and the image that of parallelproj's
own benchmarks. Lines are parallelproj's sinogram and list-mode events, and both libraries are given the same ends of
them. Lines of LORaster are those of Operator.of_lines (kernel "line"); its exact elements are those of Operator and
Operator.of_events, for all LORs of the same scanner. Tensors are PyTorch's, on the GPU where there is one.

Parts: plain (sinogram without time of flight), tof (a 34th of its views, with it), list (events), osem (ten updates of
list mode and of the sinogram), exact (LORaster's exact elements in each of these). --small is a scanner for processors.

Needs torch, scipy, array-api-compat, parallelproj, parallelproj_core: docs/performance.md says how these are built."""
import argparse
import gc
import json
import math
import statistics
import sys
import time

import array_api_compat.torch as xp
import loraster as lr
import numpy as np
import parallelproj_core
import torch
from parallelproj.pet_lors import RegularPolygonPETLORDescriptor
from parallelproj.pet_scanners import RegularPolygonPETScannerGeometry
from parallelproj.projectors import ListmodePETProjector, RegularPolygonPETProjector
from parallelproj.tof import TOFParameters
from scipy.spatial import cKDTree

MM_PER_PS = 0.299792458 / 2
SUBSETS = 10
VISITS = [3 * k % SUBSETS for k in range(SUBSETS)]  # LORaster's order of ten subsets (lr_osem_visits)
PARTS = "plain,tof,list,osem,exact"


class Case:
    """One scanner, one grid and one resolution, as both libraries know them."""

    def __init__(self, small, device):
        self.device = device
        self.sides, self.per_side, spacing = 34, 4 if small else 16, 16.125 if small else 4.03125
        if small:
            self.scanner = lr.Scanner.ring(radius_mm=372.05, modules=34, crystals=(4, 6), pitch_mm=(spacing, 32),
                                           depth_mm=25, first_angle_deg=90, min_module_difference=4,
                                           tof_resolution_ps=375.4)
            self.grid, self.voxel_mm = (54, 54, 18), (11.12, 11.12, 11.12)
        else:
            self.scanner = lr.Scanner("ge-discovery-mi")
            self.grid, self.voxel_mm = (215, 215, 71), (2.78, 2.78, 2.78)
        self.trim = 4 * self.per_side + 1
        self.rings_mm = np.unique(self.scanner.hits[:, 2].round(4))
        self.spacing = spacing
        resolution_ps = self.scanner.tof_resolution_ps
        self.lines_tof = dict(tof_resolution_ps=resolution_ps, tof_bin_mm=13 * 13.02 * MM_PER_PS)
        self.tof = TOFParameters(num_tofbins=29, tofbin_width=self.lines_tof["tof_bin_mm"], num_sigmas=3.0,
                                 sigma_tof=resolution_ps * MM_PER_PS / math.sqrt(8 * math.log(2)))
        self.phantom = torch.from_numpy(lr.phantom("spheres", self.grid, self.voxel_mm)).to(device)


class Peer:
    """parallelproj's scanner; `axis` is that of the image along the scanner's, 0 or 2."""

    def __init__(self, case, axis):
        self.case, self.axis = case, axis
        rings = xp.asarray(case.rings_mm, dtype=xp.float32, device=case.device)
        # Its first side lies on another axis for each order of axes.
        scanner = RegularPolygonPETScannerGeometry(xp, case.device, 372.05, case.sides, rings, axis,
                                                   num_lor_endpoints_per_side=case.per_side, lor_spacing=case.spacing,
                                                   phi0=math.pi / 2 if axis == 0 else 0.0)
        self.ends = scanner.all_lor_endpoints.to(torch.float32)
        self.lors = RegularPolygonPETLORDescriptor(scanner, radial_trim=case.trim)
        self.image_shape = case.grid[::-1] if axis == 0 else case.grid
        self.voxel_mm = case.voxel_mm[::-1] if axis == 0 else case.voxel_mm

    def image(self, ours):
        """An image of LORaster's order in that of this one, and back."""
        return ours if self.axis == 0 else ours.permute(2, 1, 0).contiguous()

    def points(self, theirs):
        """Points [..., 3] of this order as [n, 3] x, y, z."""
        points = theirs.reshape(-1, 3)
        return points[:, [2, 1, 0]].contiguous() if self.axis == 0 else points

    def sinogram(self, views=None, tof=False):
        views = None if views is None else xp.asarray(views, device=self.case.device)
        projector = RegularPolygonPETProjector(self.lors, self.image_shape, self.voxel_mm, views=views,
                                               cache_lor_endpoints=True)
        if tof:
            projector.tof_parameters = self.case.tof
        return projector

    def events(self, pairs, bins):
        projector = ListmodePETProjector(self.ends[pairs[:, 0]], self.ends[pairs[:, 1]], self.image_shape,
                                         self.voxel_mm)
        # Bins are numbered from 0 there, and from the middle one here.
        projector.tof_parameters, projector.event_tofbins = self.case.tof, bins + 14
        projector.tof = True
        return projector


def simulate(case, peer, count):
    """Events of the phantom: pairs [n, 2] of the peer's ends, and bins of time of flight [n] int16, 0 in the middle.

    Photon pairs leave uniform points of voxels in uniform directions; ends are those whose angle and ring are nearest
    to where the line leaves a cylinder through the crystals."""
    device, ring_size = case.device, case.sides * case.per_side
    make = torch.Generator(device=device).manual_seed(20260)
    ends = peer.points(peer.ends)
    angle, by_angle = torch.sort(torch.atan2(ends[:ring_size, 1], ends[:ring_size, 0]))
    between = torch.cat([(angle[1:] + angle[:-1]) / 2, angle.new_tensor([2 * math.pi]) + (angle[0] + angle[-1]) / 2
                         - math.pi])
    ring_mm = torch.as_tensor(case.rings_mm, dtype=torch.float32, device=device)
    ring_between = (ring_mm[1:] + ring_mm[:-1]) / 2
    reach_mm = float(ring_mm[-1] + (ring_mm[1] - ring_mm[0]) / 2)
    share = torch.cumsum(case.phantom.reshape(-1).double(), 0)
    size, edge = torch.tensor(case.grid, device=device), torch.tensor(case.voxel_mm, device=device)
    found, left = [], count
    while left > 0:
        n = min(8_000_000, 6 * left + 1000)
        voxel = torch.searchsorted(share, torch.rand(n, generator=make, device=device, dtype=torch.float64) * share[-1])
        index = torch.stack([voxel % size[0], voxel // size[0] % size[1], voxel // (size[0] * size[1])], 1)
        point = (index + torch.rand((n, 3), generator=make, device=device) - size / 2) * edge
        way = torch.randn((n, 3), generator=make, device=device)
        way /= way.norm(dim=1, keepdim=True)
        a, b = (way[:, :2] ** 2).sum(1), (way[:, :2] * point[:, :2]).sum(1)
        root = torch.sqrt(b * b - a * ((point[:, :2] ** 2).sum(1) - 374.0**2))
        kept, pair = torch.ones(n, dtype=torch.bool, device=device), []
        for sign in (-1, 1):
            hit = point + ((sign * root - b) / a)[:, None] * way
            place = torch.searchsorted(between, torch.atan2(hit[:, 1], hit[:, 0])) % ring_size
            kept &= hit[:, 2].abs() < reach_mm
            pair.append(torch.searchsorted(ring_between, hit[:, 2].contiguous()) * ring_size + by_angle[place])
        pair = torch.stack(pair, 1)
        apart = (pair[:, 0] % ring_size - pair[:, 1] % ring_size).abs()
        kept &= torch.minimum(apart, ring_size - apart) > case.trim
        pair, point = pair[kept], point[kept]
        start, end = ends[pair[:, 0]], ends[pair[:, 1]]
        along = ((point - (start + end) / 2) * (end - start)).sum(1) / (end - start).norm(dim=1)
        along += case.tof.sigma_tof * torch.randn(len(along), generator=make, device=device)
        bins = torch.round(along / case.tof.tofbin_width).clamp(-14, 14).to(torch.int16)
        found.append((pair[:left], bins[:left]))
        left -= len(found[-1][0])
    return torch.cat([pairs for pairs, _ in found]), torch.cat([bins for _, bins in found])


class Clock:
    """Medians of calls by the wall and by CUDA's events, kept as rows for a table."""

    def __init__(self, device, repeat):
        self.device, self.repeat, self.rows = device, repeat, []

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def seconds(self, call):
        """Seconds of one call by the wall, and its result."""
        self.wait()
        start = time.perf_counter()
        result = call()
        self.wait()
        return time.perf_counter() - start, result

    def time(self, what, who, call, repeat=0):
        """Adds a row; the result of the last call. Two calls come before those that count."""
        wall_ms, device_ms, result = [], [], None
        for k in range(2 + (repeat or self.repeat)):
            result = None
            on_device = self.device == "cuda"
            begin, end = (torch.cuda.Event(enable_timing=True) if on_device else None for _ in range(2))
            self.wait()
            start = time.perf_counter()
            if on_device:
                begin.record()
            result = call()
            if on_device:
                end.record()
            self.wait()
            wall_ms.append(1e3 * (time.perf_counter() - start))
            if on_device:
                device_ms.append(begin.elapsed_time(end))
        wall_ms, device_ms = wall_ms[2:], device_ms[2:]
        self.add(what, who, statistics.median(wall_ms), statistics.median(device_ms) if device_ms else None)
        return result

    def add(self, what, who, wall_ms, device_ms=None):
        self.rows.append(dict(what=what, who=who, wall_ms=wall_ms, device_ms=device_ms))
        events = "" if device_ms is None else f"{device_ms:12.3f} ms by events"
        print(f"{what:42s} {who:24s} {wall_ms:12.3f} ms by the wall{events}", flush=True)

    def note(self, what, value):
        self.rows.append(dict(what=what, value=value))
        print(f"{what}: {value}", flush=True)


def let_go():
    """Gives memory that PyTorch keeps back to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def apart(a, b):
    """The difference of two tensors, relative to the second, in the L2 norm."""
    a, b = a.reshape(-1).double(), b.reshape(-1).double()
    return float((a - b).norm() / b.norm())


def mismatch(x, y, forward, back):
    """How far <A x, y> is from <x, A^T y>, relatively."""
    one = float(torch.dot(forward.reshape(-1).double(), y.reshape(-1).double()))
    other = float(torch.dot(x.reshape(-1).double(), back.reshape(-1).double()))
    return abs(one - other) / abs(one)


def project(clock, what, case, peers, projector_of, operators):
    """Times forward and adjoint of each peer's projector and of each operator (name, operator, factor of its values).

    The first operator, of the same lines, is compared with the first peer."""
    x, first = case.phantom, None
    for peer in peers:
        name = f"parallelproj, axis {peer.axis}"
        projector = projector_of(peer)
        image = peer.image(x)
        forward = clock.time(f"{what}, forward", name, lambda: projector(image))
        y = torch.rand(forward.shape, generator=torch.Generator(case.device).manual_seed(1), device=case.device)
        back = clock.time(f"{what}, adjoint", name, lambda: projector.adjoint(y))
        clock.note(f"{what}, {name}, adjoint mismatch", mismatch(image, y, forward, back))
        if first is None:
            first = forward, y, peer.image(back)
        del projector, image, forward, back, y
        let_go()
    for name, A, factor in operators:
        before = A.info["to_device_bytes"], A.info["to_host_bytes"]
        forward = clock.time(f"{what}, forward", name, lambda: A @ x)
        same = first is not None and factor
        y = first[1].reshape(-1) if same else torch.rand(forward.shape, device=case.device)
        back = clock.time(f"{what}, adjoint", name, lambda: A.T @ y)
        clock.note(f"{what}, {name}, adjoint mismatch", mismatch(x, y, forward, back))
        if same:
            clock.note(f"{what}, {name}, forward from parallelproj's", apart(forward * factor, first[0]))
            clock.note(f"{what}, {name}, adjoint from parallelproj's", apart(back * factor, first[2]))
            clock.note(f"{what}, {name}, adjoint from parallelproj's, within the phantom",
                       apart(back[x > 0] * factor, first[2][x > 0]))
        clock.note(f"{what}, {name}, bytes to device and host",
                   [A.info["to_device_bytes"] - before[0], A.info["to_host_bytes"] - before[1]])
        del forward, y, back


def lines_of(clock, what, who, peer, projector, backend, bins=None, **options):
    """LORaster's operator of a projector's lines; its making is a row."""
    if isinstance(projector, ListmodePETProjector):
        start, end = projector.event_start_coordinates, projector.event_end_coordinates
    else:
        start, end = peer.lors.get_lor_coordinates(views=projector.views)
    start, end = peer.points(start), peer.points(end)
    if bins is not None:
        if len(bins) != len(start):
            num = len(bins)
            start, end = (ends.repeat_interleave(num, 0) for ends in (start, end))
            bins = bins.repeat(len(start) // num)
        options |= dict(tof_mm=(bins * peer.case.tof.tofbin_width).float(), **peer.case.lines_tof)
    let_go()
    seconds, A = clock.seconds(lambda: lr.Operator.of_lines(start, end, peer.case.grid, peer.case.voxel_mm,
                                                            backend=backend, **options))
    clock.add(f"{what}, made once", who, 1e3 * seconds)
    return A


def update(clock, what, case, peer, projectors, data, sensitivities, ours):
    """Ten updates of OSEM: parallelproj's as its examples write them, and loraster.recon.osem of (name, A, y).

    A call of osem has more than updates, so that ten more of them have a row of their own."""
    x0 = peer.image(torch.ones_like(case.phantom))
    shares = [torch.where(s > 0, 1 / s, 0) for s in sensitivities]

    def theirs():
        x = x0
        for k in VISITS:
            ratio = (1 if data[k] is None else data[k]) / projectors[k](x).clamp_min(1e-9)
            x = x * projectors[k].adjoint(ratio) * shares[k]
        return x

    reference = peer.image(clock.time(f"{what}, ten updates", f"parallelproj, axis {peer.axis}", theirs))
    for name, A, y in ours:
        first, _ = clock.seconds(lambda: lr.recon.osem(A, y, iterations=1, subsets=SUBSETS))
        clock.add(f"{what}, the first call", name, 1e3 * first)
        image = clock.time(f"{what}, ten updates", name, lambda: lr.recon.osem(A, y, iterations=1, subsets=SUBSETS))
        ten = clock.rows[-1]["wall_ms"]
        clock.time(f"{what}, twenty updates", name, lambda: lr.recon.osem(A, y, iterations=2, subsets=SUBSETS), 3)
        clock.add(f"{what}, ten more updates", name, clock.rows[-1]["wall_ms"] - ten)
        known = reference > 0.05 * reference.max()
        scale = float((image[known] * reference[known]).sum() / (image[known] ** 2).sum())
        clock.note(f"{what}, {name}, image from parallelproj's, scaled", apart(scale * image[known], reference[known]))


def check_geometry(clock, case, peer):
    """Numbers of LORaster's crystals for the peer's ends, which must be at the same places."""
    distance, crystal = cKDTree(case.scanner.hits).query(peer.points(peer.ends).cpu().numpy())
    clock.note("ends of lines apart in mm, at most", float(distance.max()))
    if distance.max() > 1e-3 or len(set(crystal)) != len(crystal):
        sys.exit("the two libraries' scanners differ")
    return torch.from_numpy(crystal.astype(np.int32)).to(case.device)


def sinograms(clock, case, peers, parts, backend):
    """The parts plain, tof, and osem of the sinogram; the operator of all its lines, for sensitivities."""
    peer = peers[0]
    whole = peer.sinogram()
    clock.note("sinogram", list(whole.out_shape))
    A = lines_of(clock, "sinogram", "LORaster, line", peer, whole, backend)
    if "plain" in parts:
        operators = [("LORaster, line", A, 1.0)]
        if "exact" in parts:
            E = lr.Operator(case.scanner, case.grid, case.voxel_mm, store=False)
            clock.note("exact: LORs, backend", [int(E.shape[0]), E.info["backend"]])
            operators.append(("LORaster, exact", E, 0.0))
        project(clock, "sinogram", case, peers, lambda p: p.sinogram(), operators)
    if "tof" in parts:
        views = np.arange(0, peer.lors.num_views, case.sides)
        bins = torch.arange(-14, 15, device=case.device)
        T = lines_of(clock, "TOF sinogram", "LORaster, line", peer, peer.sinogram(views), backend, bins)
        clock.note("TOF sinogram", [int(T.shape[0]) // 29, 29])
        project(clock, "TOF sinogram", case, peers, lambda p: p.sinogram(views, True),
                [("LORaster, line", T, case.tof.tofbin_width)])
        del T
        let_go()
    if "osem" in parts:
        views = np.arange(peer.lors.num_views // SUBSETS * SUBSETS)
        projectors = [peer.sinogram(views[k::SUBSETS]) for k in range(SUBSETS)]
        scale = 2e8 / float(sum(p(peer.image(case.phantom)).double().sum() for p in projectors))
        torch.manual_seed(2)
        data = [torch.poisson(scale * p(peer.image(case.phantom))) for p in projectors]
        sensitivities = [p.adjoint(torch.ones_like(y)) for p, y in zip(projectors, data)]
        ends = [peer.lors.get_lor_coordinates(views=xp.asarray(views[k::SUBSETS], device=case.device))
                for k in range(SUBSETS)]
        start, end = (torch.cat([peer.points(pair[side]) for pair in ends]) for side in (0, 1))
        del ends
        let_go()
        S = lr.Operator.of_lines(start, end, case.grid, case.voxel_mm, backend=backend, ranges=SUBSETS)
        ours = [("LORaster, line", S, torch.cat([y.reshape(-1) for y in data]))]
        del start, end
        if "exact" in parts:
            E = lr.Operator(case.scanner, case.grid, case.voxel_mm, store=False)
            expected = E @ case.phantom
            ours.append(("LORaster, exact", E, torch.poisson(expected * (2e8 / float(expected.double().sum())))))
        update(clock, "sinogram OSEM", case, peer, projectors, data, sensitivities, ours)
    return A


def list_mode(clock, case, peers, parts, backend, num_events, crystal, A):
    """The parts list, and osem of list mode."""
    peer = peers[0]
    pairs, bins = simulate(case, peer, num_events)
    clock.note("events", len(pairs))
    operators = {}
    operators["LORaster, line"] = lines_of(clock, "TOF list mode", "LORaster, line", peer, peer.events(pairs, bins),
                                           backend, bins, ranges=SUBSETS, sensitivity_of=A)
    if "exact" in parts:
        events = lr.ListMode(case.scanner, crystals=crystal[pairs].cpu().numpy(),
                             tof_mm=(bins * case.tof.tofbin_width).float().cpu().numpy(),
                             tof_bin_mm=case.tof.tofbin_width)
        seconds, operators["LORaster, exact"] = clock.seconds(lambda: lr.Operator.of_events(
            events, case.grid, case.voxel_mm, kernel="exact", ranges=SUBSETS, backend=backend))
        clock.add("TOF list mode, made once", "LORaster, exact", 1e3 * seconds)
    if "list" in parts:
        factors = {"LORaster, line": case.tof.tofbin_width, "LORaster, exact": 0.0}
        project(clock, "TOF list mode", case, peers, lambda p: p.events(pairs, bins),
                [(name, op, factors[name]) for name, op in operators.items()])
        ring_size = case.sides * case.per_side
        order = torch.argsort(pairs[:, 0] % ring_size - pairs[:, 1] % ring_size)
        project(clock, "TOF list mode, sorted as in its benchmark", case, peers,
                lambda p: p.events(pairs[order], bins[order]), [])
    if "osem" in parts:
        bounds = [len(pairs) * k // SUBSETS for k in range(SUBSETS + 1)]
        projectors = [peer.events(pairs[a:b], bins[a:b]) for a, b in zip(bounds, bounds[1:])]
        whole = peer.sinogram()
        seen = whole.adjoint(torch.ones(whole.out_shape, device=case.device)) / SUBSETS
        ones = torch.ones(len(pairs), device=case.device)
        update(clock, "TOF list-mode OSEM", case, peer, projectors, [None] * SUBSETS, [seen] * SUBSETS,
               [(name, op, ones) for name, op in operators.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a small scanner and image, for processors")
    parser.add_argument("--events", type=int, default=40_000_000)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--backend", default="auto", help="LORaster's, of lines and events")
    parser.add_argument("--axes", default="0,2", help="the image's axes along the scanner for parallelproj, the first "
                        "for OSEM, too")
    parser.add_argument("--parts", default=PARTS, help=PARTS)
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not parallelproj_core.cuda_enabled:
        sys.exit("parallelproj_core was built without CUDA: it would measure its processor's code")
    clock, parts = Clock(device, args.repeat), args.parts.split(",")
    clock.note("device", torch.cuda.get_device_name() if device == "cuda" else "processor")
    clock.note("libparallelproj, torch", [parallelproj_core.__version__, torch.__version__])
    case = Case(args.small, device)
    peers = [Peer(case, int(axis)) for axis in args.axes.split(",")]
    crystal = check_geometry(clock, case, peers[0])
    try:
        A = sinograms(clock, case, peers, parts, args.backend)
        clock.note("LORaster's backend of lines", [A.info["backend"], A.info["device"]])
        if "list" in parts or "osem" in parts:
            list_mode(clock, case, peers, parts, args.backend, args.events, crystal, A)
    finally:
        if args.json:
            with open(args.json, "w") as file:
                json.dump(clock.rows, file, indent=1)


if __name__ == "__main__":
    main()
