# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Macros of scanners at their real sizes, and the places of their crystals in closed form."""

import numpy as np


def gate(*commands):
    return "".join(f"/gate/{command}\n" for command in commands)


def volume(mother, name, edges=(), at="", shape="box"):
    """A volume in another one: its place, with a unit, and its lengths along x, y and z, each with its own."""
    return gate(f"{mother}/daughters/name {name}", f"{mother}/daughters/insert {shape}",
                *([f"{name}/placement/setTranslation {at}"] if at else []),
                *(f"{name}/geometry/set{axis}Length {edge}" for axis, edge in zip("XYZ", edges)))


def repeated(name, repeater, *settings):
    return gate(f"{name}/repeaters/insert {repeater}", *(f"{name}/{repeater}/{setting}" for setting in settings))


def array(name, vector, **numbers):
    """Copies in a cubicArray: their numbers along X, Y and Z, and the steps."""
    counts = [f"setRepeatNumber{axis} {number}" for axis, number in numbers.items()]
    return repeated(name, "cubicArray", *counts, f"setRepeatVector {vector}")


def row(name, number, vector):
    return repeated(name, "linear", f"setRepeatNumber {number}", f"setRepeatVector {vector}")


def ring(name, number, *settings):
    return repeated(name, "ring", f"setRepeatNumber {number}", *settings)


def attached(system, *crystals, **volumes):
    """The volume of each level of the system, and those that are crystals."""
    return gate(*(f"systems/{system}/{level}/attach {name}" for level, name in volumes.items()),
                *(f"{name}/attachCrystalSD" for name in crystals))


WORLD = "\n# A whole-body scanner.\n" + gate(*(f"world/geometry/set{axis}Length 200. cm" for axis in "XYZ"))
PHANTOM = "\n" + volume("world", "phantom", shape="cylinder") + gate(
    "phantom/geometry/setRmax 10 cm", "phantom/geometry/setHeight 20 cm", "phantom/attachPhantomSD")

# 48 rsectors around, 4 modules along the axis, each of 13 x 13 crystals of 4 x 4 x 20 mm, as in a Biograph TruePoint.
CYLINDRICAL = (
    WORLD + PHANTOM + "\n/control/alias radius 42.1\n" + volume("world", "cylindricalPET", shape="cylinder")
    + gate(*(f"cylindricalPET/geometry/set{size}" for size in ("Rmax 480 mm", "Rmin 410 mm", "Height 22 cm")))
    + volume("cylindricalPET", "rsector", ("20. mm", "52.4 mm", "217 mm"),
             "{radius}  0 0 cm   # the crystals' fronts lie at {radius} - 1 cm")
    + volume("rsector", "module", ("20. mm", "52.4 mm", "52.4 mm"))
    + volume("module", "crystal", ("20. mm", "4.0 mm", "4.0 mm"))
    + volume("crystal", "LSO", ("20. mm", "4.0 mm", "4.0 mm")) + gate("LSO/setMaterial LSO")
    + array("crystal", "0. 4.03 4.03 mm", X=1, Y=13, Z=13) + row("module", 4, "0. 0. 54.0 mm")
    + ring("rsector", 48, "setFirstAngle 3.75 deg")
    + attached("cylindricalPET", "LSO", rsector="rsector", module="module", crystal="crystal", layer0="LSO")
    + gate("digitizer/Singles/insert timeResolution", "digitizer/Singles/timeResolution/setTimeResolution 0.4 ns",
           "digitizer/Coincidences/setWindow 4.5 ns", "digitizer/Coincidences/minSectorDifference 9")
)


def cylindrical_centre(rsector, module, crystal):
    """The middle of a crystal of CYLINDRICAL."""
    angle = np.radians(3.75 + rsector * 360 / 48)
    x, y = 421.0, (crystal % 13 - 6) * 4.03
    z = (module - 1.5) * 54.0 + (crystal // 13 - 6) * 4.03
    return np.stack([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle), z], axis=-1)


# 72 blocks around in 4 rings of 8 x 8 crystals of 4.05 x 4.39 x 30 mm, as in an ECAT EXACT HR+. The block is placed
# above the axis; its ring comes before the linear repeater, yet GATE counts all around first.
ECAT = (
    WORLD + "\n" + volume("world", "ecat", shape="cylinder")
    + gate(*(f"ecat/geometry/set{size} mm" for size in ("Rmax 442.0", "Rmin 412.0", "Height 155.2")))
    + volume("ecat", "block", ("35.8 mm", "30.0 mm", "38.7 mm"), "0. 427.0 0.0 mm")
    + volume("block", "crystal", ("4.05 mm", "30.0 mm", "4.39 mm")) + gate("crystal/setMaterial BGO")
    + array("crystal", "4.45 0. 4.85 mm", X=8, Y=1, Z=8) + ring("block", 72) + row("block", 4, "0. 0. 3.88 cm")
    + attached("ecat", "crystal", block="block", crystal="crystal")
)


def ecat_centre(block, crystal):
    """The middle of a crystal of ECAT."""
    angle = np.radians(block % 72 * 5.0)
    x, y = (crystal % 8 - 3.5) * 4.45, 427.0
    z = (block // 72 - 1.5) * 38.8 + (crystal // 8 - 3.5) * 4.85
    return np.stack([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle), z], axis=-1)


# Two flat panels that face each other, each of 2 x 3 blocks of 6 x 6 crystals in two layers.
PANELS = (
    WORLD + "\n/gate/world/daughters/name myPanels\n/gate/world/daughters/systemType cylindricalPET\n"
    + gate("world/daughters/insert box", "myPanels/geometry/setXLength 60 cm")
    + volume("myPanels", "panel", at="10 0 0 cm") + volume("panel", "block") + volume("block", "pixel")
    + volume("pixel", "front", ("8 mm", "1.9 mm", "1.9 mm"), "-5 0 0 mm") + gate("front/setMaterial LYSO")
    + volume("pixel", "rear", ("10 mm", "1.9 mm", "1.9 mm"), "4 0 0 mm") + gate("rear/setMaterial GSO")
    + array("pixel", "0 2 2 mm", Y=6, Z=6) + array("block", "0 13 13 mm", Y=2, Z=3) + ring("panel", 2)
    + attached("myPanels", "front", "rear", rsector="panel", module="block", crystal="pixel", layer0="front",
               layer1="rear")
)


def panels_centre(panel, block, pixel, layer):
    """The middle of a crystal of PANELS."""
    x, y = 100.0 + np.where(layer == 0, -5.0, 4.0), (block % 2 - 0.5) * 13 + (pixel % 6 - 2.5) * 2
    z = (block // 2 - 1) * 13.0 + (pixel // 6 - 2.5) * 2
    sign = 1.0 - 2.0 * panel
    return np.stack([sign * x, sign * y, z], axis=-1)


# The same crystals as CYLINDRICAL, in the generic system.
GENERIC = CYLINDRICAL.replace("daughters/name cylindricalPET", "daughters/name scanner").replace(
    "/gate/cylindricalPET/", "/gate/scanner/"
)
for _level, _name in enumerate(("rsector", "module", "crystal", "layer0"), 1):
    GENERIC = GENERIC.replace(f"/gate/systems/cylindricalPET/{_name}/", f"/gate/systems/scanner/level{_level}/")
