#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/reproduce/cluster_ranks.sh has found: a table, figure 6, and whether the schemes keep their word.

usage: cluster_ranks.py [--no-figures]      in the folder of that script
"""
import array
import json
import sys
from pathlib import Path

NAMES = ["one", "exact", "paper", "paper-often", "distributed"]
WORDS = {"one": "one process", "exact": "exact", "paper": "paper, composed once",
         "paper-often": "paper, composed every 2", "distributed": "distributed, exchanged every 4"}


def read(name):
    return json.loads(Path(f"{name}.json").read_text())


def image(name):
    return array.array("f", Path(f"{name}.nii").read_bytes()[352:])


def apart(a, b):
    a, b = image(a), image(b)
    return max(abs(x - y) for x, y in zip(a, b)) / max(a)


def say_table(found):
    lines = ["| scheme | iterations | seconds | sent by a rank | log-likelihood | error |",
             "|---|---|---|---|---|---|"]
    for name in NAMES:
        last = found[name]["iterations"][-1]
        sent = found[name].get("ranks", {}).get("sent_bytes", 0)
        lines.append(f"| {WORDS[name]} | {last['number']} | {last['elapsed_seconds']:.3g} "
                     f"| {sent / 2 ** 20:.3g} MiB | {last['log_likelihood']:.7g} "
                     f"| {last['image_error']:.4f} |")
    composed = found["paper"]["iterations"][-1]["composition"]
    lines += ["", "Weights of the guesses: " + " ".join(f"{w:.4f}" for w in composed["weights"]),
              f"Condition: {composed.get('condition', 'singular')}",
              f"Residual: {composed['residual']:.7g}, with negative voxels set to 0 "
              f"{composed['clipped_residual']:.7g}; of the guesses "
              + " ".join(f"{r:.7g}" for r in composed["guess_residuals"]),
              f"Negative voxels: {composed['negative_voxels']}",
              f"Seconds of the composition: {composed['seconds']:.3g}"]
    text = "\n".join(lines) + "\n"
    Path("report.txt").write_text(text)
    print(text, end="")


def check(found):
    """What must hold, as sentences where it does not."""
    difference = apart("one", "exact")
    if not difference < 1e-5:
        yield f"exact is {difference:.2g} from the image of one process"
    for name in ("paper", "paper-often"):
        for step in found[name]["iterations"]:
            composed = step["composition"]
            if composed["residual"] > min(composed["guess_residuals"]) * (1 + 1e-9):
                yield f"{name}: the composition explains the data worse than a guess"
    likelihoods = [step["log_likelihood"] for step in found["distributed"]["iterations"]]
    if any(b < a - 1e-6 * abs(a) for a, b in zip(likelihoods, likelihoods[1:])):
        yield "distributed: the likelihood falls"


def draw(found):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for name in NAMES:
        steps = found[name]["iterations"]
        errors = [step["image_error"] for step in steps]
        for axis, key in zip(axes, ("number", "elapsed_seconds")):
            axis.plot([step[key] for step in steps], errors, "o-", ms=3, label=WORDS[name])
    axes[0].set(xlabel="iterations of each rank", ylabel="error from the truth")
    axes[1].set(xlabel="seconds")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig("figure6.png", dpi=120)


def main():
    found = {name: read(name) for name in NAMES}
    say_table(found)
    if "--no-figures" not in sys.argv[1:]:
        draw(found)
    mistakes = list(check(found))
    for mistake in mistakes:
        print(f"error: {mistake}", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
