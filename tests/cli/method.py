# SPDX-License-Identifier: Apache-2.0
"""An outsider's ray tracer: scanners, coincidence and sampled elements written down from docs/method alone, in plain
Python. It shares nothing with the program."""
import math


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def add(a, factor, b):
    return tuple(x + factor * y for x, y in zip(a, b))


def inward(centre, u, v):
    """Section 1: the sign of u x v that looks towards the z axis."""
    normal = cross(u, v)
    tiny = 1e-9 * math.sqrt(dot(centre, centre))
    outward = dot(normal, (centre[0], centre[1], 0))
    outward = outward if abs(outward) > tiny else dot(normal, centre)
    return tuple(-x for x in normal) if outward > tiny else normal


class Module:
    """The keys of an entry of `modules:`; place = position around the ring, first crystal ring."""

    def __init__(self, entry, place=(0, 0)):
        self.front = tuple(entry["center_mm"])
        self.u, self.v = tuple(entry["u"]), tuple(entry["v"])
        self.crystals, self.pitch = entry["crystals"], entry["pitch_mm"]
        self.face, self.depth = entry["face_mm"], entry["depth_mm"]
        self.normal = inward(self.front, self.u, self.v)
        self.position, self.first_ring = place

    def at(self, depth, along_u, along_v):
        return add(add(add(self.front, -depth, self.normal), along_u, self.u), along_v, self.v)

    def middle(self, axis, index):
        return (index - (self.crystals[axis] - 1) / 2) * self.pitch[axis]

    def volume_centre(self, p, q):
        return self.at(self.depth / 2, self.middle(0, p), self.middle(1, q))


class Scanner:
    """modules: [Module]; rules: keys of `coincidence:`; depth: detection_depth_mm."""

    def __init__(self, modules, rules=None, depth=0.0, positions=0):
        self.modules, self.rules, self.depth = modules, rules or {}, depth
        self.positions = positions

    def counts(self, a, b):
        """Section 2. Crystals are (module, p, q)."""
        one, other = self.modules[a[0]], self.modules[b[0]]
        field = self.rules.get("field_of_view_mm")
        if field is not None:
            start, end = one.volume_centre(*a[1:]), other.volume_centre(*b[1:])
            dx, dy = end[0] - start[0], end[1] - start[1]
            if abs(start[0] * dy - start[1] * dx) / math.hypot(dx, dy) > field / 2 + 1e-9:
                return False
        rings = abs(one.first_ring + a[2] - other.first_ring - b[2])
        apart = abs(one.position - other.position)
        return (rings <= self.rules.get("max_ring_difference", rings) and min(apart, self.positions - apart) >=
                self.rules.get("min_module_difference", -1 - apart))


def ring_scanner(ring, module, rules, depth):
    """The ring form: centres at first_angle_deg + k 360 / modules, u towards increasing angle."""
    modules = []
    for level in range(ring["rings"]):
        z = (level - (ring["rings"] - 1) / 2) * ring["ring_pitch_mm"]
        for k in range(ring["modules"]):
            angle = math.radians(ring["first_angle_deg"] + k * 360 / ring["modules"])
            entry = dict(module, u=(-math.sin(angle), math.cos(angle), 0), v=(0, 0, 1),
                         center_mm=(ring["radius_mm"] * math.cos(angle), ring["radius_mm"] * math.sin(angle), z))
            modules.append(Module(entry, (k, level * module["crystals"][1])))
    return Scanner(modules, rules, depth, ring["modules"])


class View:
    """One sample point w before a scanner: section 3."""

    def __init__(self, scanner, w):
        self.scanner, self.w = scanner, w
        self.centres = [m.at(scanner.depth, 0, 0) for m in scanner.modules]
        offsets = [add(w, -1, c) for c in self.centres]
        self.heights = [dot(m.normal, o) for m, o in zip(scanner.modules, offsets)]
        self.distances = [dot(o, o) for o in offsets]
        self.facing = [k for k, height in enumerate(self.heights) if height > 0]

    def is_primary(self, i, j):
        one, other = self.distances[i], self.distances[j]
        return i < j if abs(one - other) <= 1e-9 * max(one, other) else one > other

    def meet(self, j, ray):
        """(s, cells, edge): the line meets module j's rectangle at w + s ray, or s = None; cells is None in a gap and
        from behind; edge is the distance from the nearest edge, in pitches."""
        module = self.scanner.modules[j]
        towards = dot(module.normal, ray)
        if towards == 0 or self.heights[j] == 0:
            return None, None, math.inf
        s = -self.heights[j] / towards
        hit = add(add(self.w, s, ray), -1, self.centres[j])
        inside, on_face, edge, cells = True, self.heights[j] > 0, math.inf, []
        for axis, direction in enumerate((module.u, module.v)):
            size, pitch = module.crystals[axis], module.pitch[axis]
            at = dot(direction, hit)
            cell = math.floor(at / pitch + size / 2)
            room = module.face[axis] / 2 - abs(at - module.middle(axis, cell))
            inside = inside and abs(at) <= size * pitch / 2
            on_face = on_face and room >= 0 and 0 <= cell < size
            to_cell = abs(at / pitch + size / 2 - round(at / pitch + size / 2))
            edge = min(edge, abs(room) / pitch, to_cell)
            cells.append(cell)
        return s if inside else None, cells if on_face else None, edge

    def lines(self, rays):
        """(primary crystal, secondary crystal or None, weight, edge) of every sampled line."""
        for i in self.facing:
            nearer = any(j != i and self.is_primary(i, j) for j in self.facing)
            module = self.scanner.modules[i]
            step = [module.face[axis] / rays for axis in range(2)]
            for y in range(rays * module.crystals[1] if nearer else 0):
                for x in range(rays * module.crystals[0]):
                    along = [module.middle(axis, at // rays) + (at % rays + 0.5 - rays / 2) * step[axis] for axis,
                             at in enumerate((x, y))]
                    ray = add(module.at(self.scanner.depth, *along), -1, self.w)
                    length = math.sqrt(dot(ray, ray))
                    weight = (step[0] * step[1] * self.heights[i] / length ** 3 / (2 * math.pi))
                    crystal, edge = self.other_end(i, ray)
                    yield (i, x // rays, y // rays), crystal, weight, edge

    def other_end(self, i, ray):
        """The crystal that the line from primary i meets first on the other side of w, unless it is stopped on its way
        to i, and the distance from the nearest edge."""
        first, crystal, edge, stopped = -math.inf, None, math.inf, False
        for j in range(len(self.scanner.modules)):
            if j == i:
                continue
            s, cells, distance = self.meet(j, ray)
            edge = min(edge, distance)
            if s is not None and first < s < 0:
                first, crystal = s, (j, *cells) if cells and self.is_primary(i, j) else None
            stopped = stopped or (s is not None and 0 < s < 1)
        return None if stopped else crystal, edge


def row(scanner, w, rays, borderline=0.0):
    """({(i, p, q, j, r, s): probability}, primary crystals with a line within `borderline` of a pitch of an edge)."""
    elements, doubtful = {}, set()
    for primary, secondary, weight, edge in View(scanner, w).lines(rays):
        if edge < borderline:
            doubtful.add(primary)
        if secondary and scanner.counts(primary, secondary):
            key = min(primary, secondary) + max(primary, secondary)
            elements[key] = elements.get(key, 0.0) + weight
    return elements, doubtful
