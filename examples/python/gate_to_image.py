# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Reads a scanner from a macro of GATE and coincidences from a ROOT file, and reconstructs the trues by OSEM."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import uproot
from numpy.typing import NDArray

import loraster as lr

# In a simulation, camera.mac and coincidences.root exist. Here the script writes both, the second with uproot.
MACRO = """
/gate/world/daughters/name cylindricalPET
/gate/world/daughters/insert cylinder
/gate/cylindricalPET/geometry/setRmin 60 mm
/gate/cylindricalPET/geometry/setRmax 90 mm
/gate/cylindricalPET/geometry/setHeight 20 mm
/gate/cylindricalPET/daughters/name rsector
/gate/cylindricalPET/daughters/insert box
/gate/rsector/placement/setTranslation 70 0 0 mm
/gate/rsector/geometry/setXLength 10 mm
/gate/rsector/geometry/setYLength 18 mm
/gate/rsector/geometry/setZLength 8 mm
/gate/rsector/daughters/name crystal
/gate/rsector/daughters/insert box
/gate/crystal/geometry/setXLength 10 mm
/gate/crystal/geometry/setYLength 2 mm
/gate/crystal/geometry/setZLength 2 mm
/gate/crystal/setMaterial LSO
/gate/crystal/repeaters/insert cubicArray
/gate/crystal/cubicArray/setRepeatNumberX 1
/gate/crystal/cubicArray/setRepeatNumberY 8
/gate/crystal/cubicArray/setRepeatNumberZ 2
/gate/crystal/cubicArray/setRepeatVector 0 2.2 2.2 mm
/gate/rsector/repeaters/insert ring
/gate/rsector/ring/setRepeatNumber 20
/gate/systems/cylindricalPET/rsector/attach rsector
/gate/systems/cylindricalPET/crystal/attach crystal
/gate/crystal/attachCrystalSD
/gate/digitizer/Coincidences/minSectorDifference 7
"""
with open("camera.mac", "w") as file:
    file.write(MACRO)
geometry = lr.gate.read_geometry("camera.mac")
grid, voxel_mm = (56, 56, 2), (1.0, 1.0, 2.0)
A = lr.Operator(geometry.scanner, grid, voxel_mm, backend="native", samples=1)
expected = A @ lr.phantom("derenzo", grid, voxel_mm)
rng = np.random.default_rng(seed=1)
lors = np.repeat(np.arange(len(expected)), rng.poisson(1e6 * expected / expected.sum()))
pairs = geometry.scanner.lor_crystals(lors)
is_random = rng.random(len(pairs)) < 0.3
pairs[is_random, 1] = rng.permutation(pairs[is_random, 1])
place_of = np.argsort(geometry.number_of.ravel())
columns: dict[str, NDArray[Any]] = {"eventID1": np.arange(len(pairs)), "eventID2": np.arange(len(pairs)) + is_random}
for k, side in enumerate("12"):
    columns[f"time{side}"] = columns[f"comptonPhantom{side}"] = np.zeros(len(pairs))
    for level, index in zip(geometry.levels, np.unravel_index(place_of[pairs[:, k]], geometry.number_of.shape)):
        columns[f"{level}ID{side}"] = index.astype(np.int32)
with uproot.recreate("coincidences.root") as root:
    root["Coincidences"] = columns

# The rest is the same for files of a simulation.
acquisition = lr.gate.read("coincidences.root", geometry="camera.mac")
print(acquisition)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="compressed", sharey=True)
for axis, title, which in ((axes[0], "All prompts", None), (axes[1], "Trues", acquisition.events.is_true)):
    counts = acquisition.list_mode(which).histogram()
    A = lr.Operator(acquisition.scanner, grid, voxel_mm, backend="native", samples=1)
    image = lr.recon.osem(A, counts, iterations=4, subsets=8)
    shown = axis.imshow(image[0], extent=(-28, 28, -28, 28), origin="lower", cmap="gray_r", vmin=0, vmax=6e4)
    axis.set(title=f"{title}: {counts.sum() / 1e6:.2f} million", xlabel="x (mm)")
    axis.invert_xaxis()  # +x at the left, as in medical viewers
axes[0].set_ylabel("y (mm)")
figure.colorbar(shown, ax=axes, label="decays per voxel")
figure.savefig("gate_to_image.png", dpi=90)
