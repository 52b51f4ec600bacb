#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What list-mode iterations take on 1 to 10,000 GPUs, by a model that measured figures calibrate: strong and
weak scaling for total-body scanners, with memory a rank. docs/method/cluster-model.md has the equations, the
assumptions and the format of TIMINGS, which `loraster bench cluster` or a person writes."""
import argparse
import json
import math
import sys
from dataclasses import dataclass, field, replace

SCHEMA = "loraster cluster timings 1"
BYTES_OF_VALUE = 4    # of a voxel, on its way and in memory
BYTES_OF_EVENT = 16   # two crystals, time, number (docs/method/listmode.md, "Arranging events")
BYTES_OF_LINE = 8     # an event's value and its ratio
IMAGES = 4            # image, back-projection, sensitivity, and room for an exchange
MM_OF_PS = 0.149896229  # half of the way of light
PARTS = ("project", "communicate", "combine", "idle")
DEFAULT_RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 10000)
WEAK_SHARE = 1 / 64   # of a scan's events that each GPU has


@dataclass(frozen=True)
class Link:
    """A message of n bytes takes latency_s + n / bytes_per_s."""
    latency_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Network:
    """GPUs of a host among each other, and one GPU's share of what leads to other hosts."""
    gpus_per_host: int = 8
    inside: Link = Link(5e-6, 300e9)
    across: Link = Link(10e-6, 40e9)

    def split(self, ranks):
        """GPUs used of each host, and hosts."""
        of_host = min(ranks, self.gpus_per_host)
        return of_host, math.ceil(ranks / of_host)


def ring(ranks, num_bytes, link):
    """Sum on all ranks, in 2 (ranks - 1) steps of num_bytes / ranks each; what pairs of ranks that send
    each other their shares take, too."""
    return 2 * (ranks - 1) * (link.latency_s + num_bytes / ranks / link.bytes_per_s)


def tree(ranks, num_bytes, link):
    """The same up and down a binary tree, the bytes in a stream of small pieces."""
    if ranks == 1:
        return 0.0
    return 2 * (math.ceil(math.log2(ranks)) * link.latency_s + num_bytes / link.bytes_per_s)


def all_reduce(ranks, num_bytes, network, shape="best"):
    """In a host by a ring, which leaves each GPU a share; then each share among the hosts, by a ring or a
    tree. flat: all ranks alike over the slower link, which is how the program itself does it."""
    of_host, hosts = network.split(ranks)
    if shape == "flat":
        return ring(ranks, num_bytes, network.across if hosts > 1 else network.inside)
    share = num_bytes / of_host
    ways = {"ring": ring(hosts, share, network.across), "tree": tree(hosts, share, network.across)}
    across = min(ways.values()) if shape == "best" else ways[shape]
    return ring(of_host, num_bytes, network.inside) + across


@dataclass(frozen=True)
class Work:
    """What an iteration has to do."""
    voxels: int
    events: float
    exchanges: int = 1      # of the image, one a subset
    slices: float = 1.0     # that a line meets: 6 sigma of its time, in voxels

    @property
    def image_bytes(self):
        return BYTES_OF_VALUE * self.voxels


@dataclass(frozen=True)
class Model:
    """Seconds of an iteration: a fixed part and one that ranks share."""
    work: Work
    network: Network = field(default_factory=Network)
    project: tuple = (0.0, 0.0)   # fixed, shared
    combine: tuple = (0.0, 0.0)
    idle: float = 0.0             # of the shared projection, from two ranks on
    overlap: float = 0.0          # share of the projection behind which exchanges hide
    forward: float = 0.45         # share of the projection that is forward

    def parts(self, ranks, shape="best"):
        """Seconds of project, communicate, combine and idle of an iteration, exact."""
        shared = self.project[1] / ranks
        spent = self.project[0] + shared
        moved = self.work.exchanges * all_reduce(ranks, self.work.image_bytes, self.network, shape)
        return {"project": spent,
                "communicate": max(0.0, moved - self.overlap * spent),
                "combine": self.combine[0] + self.combine[1] / ranks,
                "idle": self.idle * shared if ranks > 1 else 0.0}

    def seconds(self, ranks, shape="best"):
        return sum(self.parts(ranks, shape).values())

    def paper_seconds(self, ranks, local_iterations):
        """Of an iteration where ranks iterate by themselves and compose their guesses after some: every
        guess goes to every rank, which projects each of them forward over its own events."""
        if ranks == 1:
            return self.seconds(1)
        of_host, hosts = self.network.split(ranks)
        inside = (of_host - 1) * self._message(self.network.inside)
        across = of_host * (hosts - 1) * self._message(self.network.across)
        composed = inside + across + self.forward * self.project[1]
        parts = self.parts(ranks)
        return parts["project"] + parts["idle"] + sum(self.combine) + composed / local_iterations

    def _message(self, link):
        return link.latency_s + self.work.image_bytes / link.bytes_per_s

    def scaled(self, work):
        """The same machine with other work: projections as events and slices, updates as voxels."""
        lines = work.events * work.slices / (self.work.events * self.work.slices)
        voxels = work.voxels * work.exchanges / (self.work.voxels * self.work.exchanges)
        fixed = work.exchanges / self.work.exchanges
        return replace(self, work=work,
                       project=(self.project[0] * fixed, self.project[1] * lines),
                       combine=(self.combine[0] * fixed, self.combine[1] * voxels))

    def weak(self, ranks):
        """As many times the events as there are ranks."""
        return self.scaled(replace(self.work, events=self.work.events * ranks))

    def memory(self, ranks, scheme="exact"):
        """Bytes of a rank: images in full, events in shares; guesses of all ranks where they are
        composed."""
        images = IMAGES + (ranks if scheme == "paper" else 0)
        return (images * self.work.image_bytes
                + (BYTES_OF_EVENT + BYTES_OF_LINE) * self.work.events / ranks)


# --- calibration ---


def fit_two(rows):
    """Least squares of y = a p + b q with a, b >= 0, relative to y; rows of (p, q, y)."""
    rows = [(p / y, q / y) for p, q, y in rows if y > 0]
    if not rows:
        return 0.0, 0.0
    pp, pq, qq = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    p1, q1 = (sum(r[i] for r in rows) for i in (0, 1))
    det = pp * qq - pq * pq
    tries = [(p1 / pp if pp > 0 else 0.0, 0.0), (0.0, q1 / qq if qq > 0 else 0.0)]
    if det > 1e-12 * pp * qq:
        tries.append(((p1 * qq - q1 * pq) / det, (q1 * pp - p1 * pq) / det))

    def error(pair):
        return sum((pair[0] * p + pair[1] * q - 1) ** 2 for p, q in rows)
    return min((pair for pair in tries if min(pair) >= 0), key=error)


def fit_parts(runs, name):
    """(fixed, shared) seconds. Of one number of ranks projections are taken as shared, and updates, which
    do not tell launches from work, as fixed."""
    rows = [(1.0, 1.0 / run["ranks"], run["seconds"][name]) for run in runs]
    if len({run["ranks"] for run in runs}) == 1:
        rows = [(0.0, q, y) if name == "project" else (p, 0.0, y) for p, q, y in rows]
    return fit_two(rows)


def fit_link(runs, work, is_across):
    """Of runs within a host, or of one GPU each on several; None where there are none."""
    rows = []
    for run in runs:
        ranks, hosts = run["ranks"], run["hosts"]
        if ranks < 2 or (hosts == ranks) != is_across or (not is_across and hosts > 1):
            continue
        rows.append((2.0 * work.exchanges * (ranks - 1),
                     2.0 * work.exchanges * (ranks - 1) / ranks * work.image_bytes,
                     run["seconds"]["communicate"]))
    if not any(row[2] > 0 for row in rows):
        return None
    if len({row[:2] for row in rows}) == 1:
        rows = [(0.0, q, y) for _, q, y in rows]
    latency, per_byte = fit_two(rows)
    return Link(latency, 1.0 / per_byte if per_byte > 0 else math.inf)


def fit_idle(runs, shared):
    """Of the seconds of the projection that ranks share."""
    shares = [run["seconds"]["idle"] * run["ranks"] / shared for run in runs
              if run["ranks"] > 1 and shared > 0]
    return sum(shares) / len(shares) if shares else 0.0


def read_network(given):
    network = Network()
    for name in ("inside", "across"):
        if name in given:
            network = replace(network, **{name: Link(**given[name])})
    return replace(network, gpus_per_host=given.get("gpus_per_host", network.gpus_per_host))


def calibrate(timings, overlap=0.0):
    """A Model of a file's contents. What the runs tell of the network goes before what the file says of
    it, and that before this program's assumptions."""
    if timings.get("schema") != SCHEMA:
        raise ValueError(f'"schema" must be "{SCHEMA}"')
    given = timings["work"]
    work = Work(given["voxels"], given["events"], given.get("exchanges", 1), given.get("slices", 1.0))
    runs = timings["runs"]
    if not runs:
        raise ValueError("there are no runs")
    for run in runs:
        missing = [name for name in PARTS if name not in run.get("seconds", {})]
        if missing or run["ranks"] < 1 or not 1 <= run["hosts"] <= run["ranks"]:
            raise ValueError(f"a run of {run.get('ranks')} ranks lacks {missing or 'sense'}")
    network = read_network(timings.get("network", {}))
    inside, across = (fit_link(runs, work, is_across) for is_across in (False, True))
    network = replace(network, inside=inside or network.inside, across=across or network.across)
    project = fit_parts(runs, "project")
    return Model(work, network, project, fit_parts(runs, "combine"), fit_idle(runs, project[1]), overlap)


def of_bench(found):
    """A run of `loraster bench cluster`: its scheme exact, per iteration. What no clock counts is taken
    as the update."""
    exact, = (scheme for scheme in found["results"] if scheme["scheme"] == "exact")
    count = len(exact["iterations"])
    seconds = {name: exact[key] / count for name, key in (("project", "project_seconds"),
                                                          ("communicate", "exchange_seconds"),
                                                          ("idle", "waiting_seconds"))}
    seconds["combine"] = max(0.0, exact["seconds"] / count - sum(seconds.values()))
    of_host = found.get("ranks", {}).get("on_this_machine", found["rank_count"])
    return {"ranks": found["rank_count"], "hosts": math.ceil(found["rank_count"] / of_host),
            "seconds": seconds, "bytes_moved": exact["sent_bytes"] / count}


def read_bench(runs):
    """What tools/bench_cluster.sh has gathered as timings: strong scaling, a LOR for an event."""
    strong = [run for run in runs if run["verb"] == "bench cluster" and run["scaling"] == "strong"]
    if not strong:
        raise ValueError("there are no runs of bench cluster with strong scaling")
    first = strong[0]
    grid = first["grid"]["size"]
    if any((run["grid"]["size"], run["num_lors"]) != (grid, first["num_lors"]) for run in strong):
        raise ValueError("its runs are of different grids or scanners")
    return {"schema": SCHEMA, "device": first["device"],
            "source": f"loraster bench cluster, {first['scanner']}, backend {first['backend']}",
            "work": {"family": "correspondence", "voxels": math.prod(grid), "events": first["num_lors"]},
            "runs": [of_bench(run) for run in strong]}


def bytes_share(model, timings):
    """Bytes that ranks sent over those that a ring would, or None."""
    pairs = [(run["bytes_moved"], 2 * model.work.exchanges * (1 - 1 / run["ranks"]) * model.work.image_bytes)
             for run in timings["runs"] if run["ranks"] > 1 and run.get("bytes_moved", 0) > 0]
    return sum(a for a, _ in pairs) / sum(b for _, b in pairs) if pairs else None


def find_error(model, timings):
    """The largest difference of a run's sum from the model's, relative; of runs that hosts share."""
    worst = 0.0
    for run in timings["runs"]:
        of_host = math.ceil(run["ranks"] / run["hosts"])
        there = replace(model, network=replace(model.network, gpus_per_host=of_host), overlap=0.0)
        measured = sum(run["seconds"][name] for name in PARTS)
        worst = max(worst, abs(there.seconds(run["ranks"], "ring") / measured - 1))
    return worst


# --- total-body scanners ---


@dataclass(frozen=True)
class Case:
    name: str
    length_mm: float
    tof_ps: float
    voxel_mm: float = 2.0
    across_mm: float = 600.0
    events: float = 5e9     # of a scan
    subsets: int = 20

    def work(self):
        size = [round(edge / self.voxel_mm) for edge in (self.across_mm, self.across_mm, self.length_mm)]
        sigma_mm = self.tof_ps * MM_OF_PS / (2 * math.sqrt(2 * math.log(2)))
        return Work(size[0] * size[1] * size[2], self.events, self.subsets,
                    6 * sigma_mm / self.voxel_mm)


@dataclass(frozen=True)
class Measured:
    """The measured work itself, on more ranks."""
    name: str = "the measured work"
    voxel_mm: float = math.nan


CASES = (Case("united-imaging-uexplorer", 1940.0, 505.0), Case("siemens-vision-quadra", 1060.0, 228.0))


# --- what is told ---


def duration(seconds):
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def size(num_bytes):
    return f"{num_bytes / 2**30:.3g} GiB"


def tell_calibration(model, timings):
    network = model.network
    print(f"Calibrated on {timings.get('device', 'a device')}: {timings.get('source', 'no source')}.\n")
    print("| parameter | value |\n|---|---|")
    for name, pair in (("project", model.project), ("combine", model.combine)):
        print(f"| {name}, fixed and shared | {duration(pair[0])}, {duration(pair[1])} |")
    print(f"| idle | {100 * model.idle:.2g} % of the shared projection |")
    for name, link in (("within a host", network.inside), ("to other hosts", network.across)):
        print(f"| {name} | {1e6 * link.latency_s:.3g} us, {link.bytes_per_s / 1e9:.3g} GB/s |")
    print(f"| GPUs a host | {network.gpus_per_host} |")
    print(f"| farthest from a run | {100 * find_error(model, timings):.2g} % |")
    share = bytes_share(model, timings)
    if share is not None:
        print(f"| bytes sent, over those of a ring | {share:.3g} |")
    print()


def tell_strong(case, model, ranks):
    work = model.work
    edge = f" of {case.voxel_mm:g} mm" if math.isfinite(case.voxel_mm) else ""
    print(f"Strong scaling, {case.name}: {work.voxels / 1e6:.3g} million voxels{edge}, "
          f"{work.events:.3g} events, {work.exchanges} subsets; seconds an iteration.\n")
    print("| GPUs | project | communicate, flat | ring | tree | idle | all | efficiency | paper's way | "
          "memory a rank |\n|---|---|---|---|---|---|---|---|---|---|")
    one = model.seconds(1)
    for count in ranks:
        parts, best = model.parts(count), model.seconds(count)
        ways = " | ".join(duration(model.parts(count, shape)["communicate"])
                          for shape in ("flat", "ring", "tree"))
        print(f"| {count} | {duration(parts['project'])} | {ways} | {duration(parts['idle'])} | "
              f"{duration(best)} | "
              f"{100 * one / best / count:.3g} % | {duration(model.paper_seconds(count, 3))} | "
              f"{size(model.memory(count))} |")
    print()


def few_events(model):
    return model.scaled(replace(model.work, events=WEAK_SHARE * model.work.events))


def tell_weak(case, model, ranks):
    print(f"Weak scaling, {case.name}: {model.work.events:.3g} events a GPU.\n")
    print("| GPUs | events | all | efficiency | memory a rank | the same, paper's way |\n"
          "|---|---|---|---|---|---|")
    one = model.seconds(1)
    for count in ranks:
        more = model.weak(count)
        print(f"| {count} | {more.work.events:.3g} | {duration(more.seconds(count))} | "
              f"{100 * one / more.seconds(count):.3g} % | {size(more.memory(count))} | "
              f"{size(more.memory(count, 'paper'))} |")
    print()


def draw(models, ranks, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    pyplot.rcParams.update({"font.size": 8, "axes.titlesize": 8})
    figure, axes = pyplot.subplots(1, len(models) + 1, figsize=(11, 3.4), layout="constrained")
    for axis, (case, model) in zip(axes, models):
        several = [n for n in ranks if n > 1]
        axis.plot(ranks, [model.parts(n)["project"] for n in ranks], "--", label="project")
        for shape, line in (("best", "--"), ("flat", ":")):
            axis.plot(several, [model.parts(n, shape)["communicate"] for n in several], line,
                      label="communicate" + (", flat" if shape == "flat" else ""))
        axis.plot(ranks, [model.seconds(n) for n in ranks], "k-", label="all, exact")
        axis.plot(ranks, [model.paper_seconds(n, 3) for n in ranks], "C3-", label="all, paper's way")
        axis.plot(ranks, [model.seconds(1) / n for n in ranks], ":", color="gray", label="ideal")
        axis.set(xscale="log", yscale="log", xlabel="GPUs", ylabel="s an iteration", title=case.name)
        axis.set_ylim(bottom=model.seconds(1) / 1e4)
        axis.legend()
    for case, model in models:
        part = few_events(model)
        for scheme, line in ((model, "-"), (part, "--")):
            axes[-1].plot(ranks, [100 * scheme.seconds(1) / scheme.weak(n).seconds(n) for n in ranks],
                         line, label=f"{case.name}, {scheme.work.events:.2g} a GPU")
    axes[-1].set(xscale="log", xlabel="GPUs", ylabel="efficiency, %", ylim=(0, 105),
                title="weak scaling: events a GPU")
    axes[-1].legend()
    figure.savefig(path, dpi=110)


def report(args, timings, model):
    ranks = [int(word) for word in args.ranks.split(",")] if args.ranks else list(DEFAULT_RANKS)
    if min(ranks) < 1:
        raise ValueError("--ranks: numbers of at least 1")
    if timings["work"].get("family") == "listmode":
        models = [(case, model.scaled(case.work())) for case in CASES]
    else:
        models = [(Measured(), model)]
    if args.json:
        found = {"model": {"project": model.project, "combine": model.combine, "idle": model.idle},
                 "error": find_error(model, timings),
                 "cases": {case.name: [{"ranks": n, "seconds": scaled.parts(n),
                                        "weak_seconds": few_events(scaled).weak(n).parts(n),
                                        "memory_bytes": scaled.memory(n)} for n in ranks]
                           for case, scaled in models}}
        print(json.dumps(found))
    else:
        tell_calibration(model, timings)
        for case, scaled in models:
            tell_strong(case, scaled, ranks)
            tell_weak(case, few_events(scaled), ranks)
    if args.chart:
        draw(models, ranks, args.chart)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("timings", metavar="TIMINGS",
                        help="JSON of measured runs, or of tools/bench_cluster.sh")
    parser.add_argument("--ranks", metavar="LIST", help="numbers of GPUs, such as 1,8,64")
    parser.add_argument("--overlap", type=float, default=0.0, metavar="SHARE",
                        help="of the projection, behind which exchanges hide; 0 to 1, default 0")
    parser.add_argument("--chart", metavar="FILE", help="also draw a PNG; needs python3-matplotlib")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    args = parser.parse_args()
    try:
        with open(args.timings, encoding="utf-8") as file:
            timings = json.load(file)
        if isinstance(timings, list):
            timings = read_bench(timings)
        report(args, timings, calibrate(timings, args.overlap))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"error: {args.timings}: {error}")


if __name__ == "__main__":
    main()
