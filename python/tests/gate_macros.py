# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Macros of scanners at their real sizes, and the places of their crystals in closed form."""

import numpy as np

WORLD = """
# A whole-body scanner.
/gate/world/geometry/setXLength 200. cm
/gate/world/geometry/setYLength 200. cm
/gate/world/geometry/setZLength 200. cm
"""

PHANTOM = """
/gate/world/daughters/name phantom
/gate/world/daughters/insert cylinder
/gate/phantom/geometry/setRmax 10 cm
/gate/phantom/geometry/setHeight 20 cm
/gate/phantom/attachPhantomSD
"""

# 48 rsectors around, 4 modules along the axis, each of 13 x 13 crystals of 4 x 4 x 20 mm, as in a Biograph TruePoint.
CYLINDRICAL = WORLD + PHANTOM + """
/control/alias radius 42.1
/gate/world/daughters/name cylindricalPET
/gate/world/daughters/insert cylinder
/gate/cylindricalPET/geometry/setRmax 480 mm
/gate/cylindricalPET/geometry/setRmin 410 mm
/gate/cylindricalPET/geometry/setHeight 22 cm
/gate/cylindricalPET/daughters/name rsector
/gate/cylindricalPET/daughters/insert box
/gate/rsector/placement/setTranslation {radius}  0 0 cm   # the crystals' fronts lie at {radius} - 1 cm
/gate/rsector/geometry/setXLength 20. mm
/gate/rsector/geometry/setYLength 52.4 mm
/gate/rsector/geometry/setZLength 217 mm
/gate/rsector/daughters/name module
/gate/rsector/daughters/insert box
/gate/module/geometry/setXLength 20. mm
/gate/module/geometry/setYLength 52.4 mm
/gate/module/geometry/setZLength 52.4 mm
/gate/module/daughters/name crystal
/gate/module/daughters/insert box
/gate/crystal/geometry/setXLength 20. mm
/gate/crystal/geometry/setYLength 4.0 mm
/gate/crystal/geometry/setZLength 4.0 mm
/gate/crystal/daughters/name LSO
/gate/crystal/daughters/insert box
/gate/LSO/geometry/setXLength 20. mm
/gate/LSO/geometry/setYLength 4.0 mm
/gate/LSO/geometry/setZLength 4.0 mm
/gate/LSO/setMaterial LSO
/gate/crystal/repeaters/insert cubicArray
/gate/crystal/cubicArray/setRepeatNumberX 1
/gate/crystal/cubicArray/setRepeatNumberY 13
/gate/crystal/cubicArray/setRepeatNumberZ 13
/gate/crystal/cubicArray/setRepeatVector 0. 4.03 4.03 mm
/gate/module/repeaters/insert linear
/gate/module/linear/setRepeatNumber 4
/gate/module/linear/setRepeatVector 0. 0. 54.0 mm
/gate/rsector/repeaters/insert ring
/gate/rsector/ring/setRepeatNumber 48
/gate/rsector/ring/setFirstAngle 3.75 deg
/gate/systems/cylindricalPET/rsector/attach rsector
/gate/systems/cylindricalPET/module/attach module
/gate/systems/cylindricalPET/crystal/attach crystal
/gate/systems/cylindricalPET/layer0/attach LSO
/gate/LSO/attachCrystalSD
/gate/digitizer/Singles/insert timeResolution
/gate/digitizer/Singles/timeResolution/setTimeResolution 0.4 ns
/gate/digitizer/Coincidences/setWindow 4.5 ns
/gate/digitizer/Coincidences/minSectorDifference 9
"""


def cylindrical_centre(rsector, module, crystal):
    """The middle of a crystal of CYLINDRICAL."""
    angle = np.radians(3.75 + rsector * 360 / 48)
    x, y = 421.0, (crystal % 13 - 6) * 4.03
    z = (module - 1.5) * 54.0 + (crystal // 13 - 6) * 4.03
    return np.stack([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle), z], axis=-1)


# 72 blocks around in 4 rings of 8 x 8 crystals of 4.05 x 4.39 x 30 mm, as in an ECAT EXACT HR+. The block is placed
# above the axis; its ring comes before the linear repeater, yet GATE counts all around first.
ECAT = WORLD + """
/gate/world/daughters/name ecat
/gate/world/daughters/insert cylinder
/gate/ecat/geometry/setRmax 442.0 mm
/gate/ecat/geometry/setRmin 412.0 mm
/gate/ecat/geometry/setHeight 155.2 mm
/gate/ecat/daughters/name block
/gate/ecat/daughters/insert box
/gate/block/placement/setTranslation 0. 427.0 0.0 mm
/gate/block/geometry/setXLength 35.8 mm
/gate/block/geometry/setYLength 30.0 mm
/gate/block/geometry/setZLength 38.7 mm
/gate/block/daughters/name crystal
/gate/block/daughters/insert box
/gate/crystal/geometry/setXLength 4.05 mm
/gate/crystal/geometry/setYLength 30.0 mm
/gate/crystal/geometry/setZLength 4.39 mm
/gate/crystal/setMaterial BGO
/gate/crystal/repeaters/insert cubicArray
/gate/crystal/cubicArray/setRepeatNumberX 8
/gate/crystal/cubicArray/setRepeatNumberY 1
/gate/crystal/cubicArray/setRepeatNumberZ 8
/gate/crystal/cubicArray/setRepeatVector 4.45 0. 4.85 mm
/gate/block/repeaters/insert ring
/gate/block/ring/setRepeatNumber 72
/gate/block/repeaters/insert linear
/gate/block/linear/setRepeatNumber 4
/gate/block/linear/setRepeatVector 0. 0. 3.88 cm
/gate/systems/ecat/block/attach block
/gate/systems/ecat/crystal/attach crystal
/gate/crystal/attachCrystalSD
"""


def ecat_centre(block, crystal):
    """The middle of a crystal of ECAT."""
    angle = np.radians(block % 72 * 5.0)
    x, y = (crystal % 8 - 3.5) * 4.45, 427.0
    z = (block // 72 - 1.5) * 38.8 + (crystal // 8 - 3.5) * 4.85
    return np.stack([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle), z], axis=-1)


# Two flat panels that face each other, each of 2 x 3 blocks of 6 x 6 crystals in two layers.
PANELS = WORLD + """
/gate/world/daughters/name myPanels
/gate/world/daughters/systemType cylindricalPET
/gate/world/daughters/insert box
/gate/myPanels/geometry/setXLength 60 cm
/gate/myPanels/daughters/name panel
/gate/myPanels/daughters/insert box
/gate/panel/placement/setTranslation 10 0 0 cm
/gate/panel/daughters/name block
/gate/panel/daughters/insert box
/gate/block/daughters/name pixel
/gate/block/daughters/insert box
/gate/pixel/daughters/name front
/gate/pixel/daughters/insert box
/gate/front/placement/setTranslation -5 0 0 mm
/gate/front/geometry/setXLength 8 mm
/gate/front/geometry/setYLength 1.9 mm
/gate/front/geometry/setZLength 1.9 mm
/gate/front/setMaterial LYSO
/gate/pixel/daughters/name rear
/gate/pixel/daughters/insert box
/gate/rear/placement/setTranslation 4 0 0 mm
/gate/rear/geometry/setXLength 10 mm
/gate/rear/geometry/setYLength 1.9 mm
/gate/rear/geometry/setZLength 1.9 mm
/gate/rear/setMaterial GSO
/gate/pixel/repeaters/insert cubicArray
/gate/pixel/cubicArray/setRepeatNumberY 6
/gate/pixel/cubicArray/setRepeatNumberZ 6
/gate/pixel/cubicArray/setRepeatVector 0 2 2 mm
/gate/block/repeaters/insert cubicArray
/gate/block/cubicArray/setRepeatNumberY 2
/gate/block/cubicArray/setRepeatNumberZ 3
/gate/block/cubicArray/setRepeatVector 0 13 13 mm
/gate/panel/repeaters/insert ring
/gate/panel/ring/setRepeatNumber 2
/gate/systems/myPanels/rsector/attach panel
/gate/systems/myPanels/module/attach block
/gate/systems/myPanels/crystal/attach pixel
/gate/systems/myPanels/layer0/attach front
/gate/systems/myPanels/layer1/attach rear
/gate/front/attachCrystalSD
/gate/rear/attachCrystalSD
"""


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
