# SPDX-License-Identifier: Apache-2.0
"""Small runs of every verb on every backend, for calls to fail in."""
import gzip, io, os, re, struct, sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import SMALL_RING, write_nifti  # noqa: E402

GRID, DIRECT_GRID = "--grid 3,3,2 --voxel-mm 6,5,6", "--grid 8,7,4 --voxel-mm 4"
NUM_CRYSTALS = 8 * 16
KERNEL = "--tof-ps 60 --radial-mm 3 --axial-mm 2.5"
VIEWS = "--azimuths 2 --tilts 1 --acceptance-deg 16"
VARIANTS = ["columns", "threads", "instructions", "shared-memory", "texture-cache"]


@dataclass
class Case:
    """One small run, in a folder beside its inputs. `tolerance`: of images whose sums are made in any order; 0 = the
    same bytes. `is_timed`: what it prints and writes as JSON holds times. `keeps`: endings of what a run that failed
    may leave to go on from. `is_short`: all its calls can fail in a reasonable time. `always`: names or numbers of
    calls that are in every spread, the first so many and the last of them (`ends`). `surroundings`: variables of its
    environment. `choices`: what it chooses between by a stopwatch, each as options that settle it: it makes the same
    bytes as with one of them."""
    name: str
    backend: str
    command: str
    tolerance: float = 0.0
    is_timed: bool = False
    keeps: tuple = ()
    is_short: bool = True
    always: tuple = ()
    ends: tuple = (8, 0)
    surroundings: tuple = ()
    choices: tuple = ()

    @property
    def title(self):
        return f"{self.name}.{self.backend}" if self.backend else self.name


def make_inputs(folder, run):
    """run: runs a command of the program in the folder, and ends unless all is good."""
    def path(name):
        return Path(folder) / name
    path("ring.yaml").write_text(SMALL_RING)
    values = [0.5 + (7 * k % 11) / 11 for k in range(3 * 3 * 2)]
    write_nifti(path("x.nii.gz"), (3, 3, 2), (6, 5, 6), values)
    write_nifti(path("mu.nii"), (3, 3, 2), (6, 5, 6), [0.01 * v for v in values])
    write_nifti(path("a.nii"), (8, 7, 4), (4, 4, 4), [1.0 + k % 3 for k in range(224)])
    path("e.txt").write_text("\n".join(str(0.8 + 0.01 * (k % 30)) for k in range(NUM_CRYSTALS)))
    on = "--scanner ring.yaml --backend cpu --threads 1"
    run(f"simulate {on} --phantom spheres {GRID} --counts 20000 -o y.h5")
    run(f"project {on} --image x.nii.gz -o p.h5")
    run(f"matrix {on} {GRID} --mode sampled -o m.h5")
    for k in (1, 2):
        run(f"matrix {on} {GRID} --mode sampled --part {k}/2 -o m{k}.h5")
    run(f"direct deposit --activity a.nii --tof-ps 60 {VIEWS} --count 5000 {on} -o h.h5")
    run(f"simulate {on} --phantom spheres {GRID} --counts 2000 -o l.petsird")
    run("events convert l.petsird c.Cdh --scanner ring.yaml")


def backend_cases(backend):
    on = f"--scanner ../ring.yaml --backend {backend} --threads 2"
    is_gl = backend in ("raster", "compute")
    sampled = f"{on} --mode sampled --rays 2"
    recon = f"recon {on} {GRID} --data ../y.h5 --iterations {1 if is_gl else 2}"
    # On graphics hardware atomics add in any order.
    loose = 1e-4 if is_gl else 0.0
    yield Case("render", backend, f"render {sampled} --at 1,0,0 --module 0 -o r")
    for ending in ("h5",) if is_gl else ("h5", "npz"):
        yield Case(f"matrix_{ending}", backend, f"matrix {sampled} {GRID} -o m.{ending}", keeps=(".part", ".part-rows"))
    project = "--image ../x.nii.gz --deterministic -o y.h5"
    yield Case("project", backend, f"project {on} {project}" + ("" if backend == "native" else " --mu ../mu.nii"))
    yield Case("project_sampled", backend, f"project {sampled} {project}")
    yield Case("backproject", backend, f"backproject {on} {GRID} --data ../p.h5 -o b.nii",
               always=("pairs of stacks", "glGetProgramiv"))
    yield Case("sensitivity", backend, f"sensitivity {sampled} {GRID} --store no -o s.nii.gz")
    yield Case("simulate", backend,
               f"simulate {on} --phantom spheres {GRID} --counts 5000 --deterministic --truth t.nii -o c.h5")
    for store in ("yes", "no"):
        yield Case(f"recon_mlem_store_{store}", backend, f"{recon} --algorithm mlem --store {store} -o x.nii", loose,
                   True)
    yield Case("recon_osem", backend,
               f"{recon} --algorithm osem --subsets 2 --store no --efficiencies ../e.txt -o x.nii", loose, True,
               always=("factors", "subsets"))
    if backend in ("cpu", "compute", "raster"):
        bench = "bench correspondence --workload pair --grid 2,2,1 --mode sampled --rays 1 --repeat 1 --seconds 1"
        yield Case("bench", backend, f"{bench} --backend {backend} -o b.json", is_timed=True, keeps=(".json",),
                   is_short=not is_gl)


def direct_cases(backend):
    on = f"--backend {backend} --threads 2"
    project, loose = f"direct project --image ../a.nii {KERNEL} {VIEWS}", 0.0 if backend == "cpu" else 1e-4
    for variant in VARIANTS if backend == "cuda" else ():
        yield Case(f"direct_project_{variant}", backend, f"{project} {on} --variant {variant} -o h.h5", loose)
    if backend != "cuda":
        yield Case("direct_deposit", backend, "direct deposit --activity ../a.nii --scanner ../ring.yaml --tof-ps 60 "
                   f"--count 500 {VIEWS} {on} -o h.h5")
    for storage in ["buffers"] if backend == "cpu" else ["buffers", "textures"]:
        kind = on if backend == "cpu" else f"{on} --storage {storage}"
        yield Case(f"direct_project_{storage}", backend, f"{project} {kind} -o h.h5", loose)
        yield Case(f"direct_back_{storage}", backend, f"direct project --histo ../h.h5 {KERNEL} {kind} -o b.nii", loose)
        for algorithm, block in (("ramla", 1), ("osem", 10)):
            yield Case(f"direct_recon_{algorithm}_{storage}", backend,
                       f"recon --operator direct --data ../h.h5 {KERNEL} --iterations 1 --algorithm {algorithm} "
                       f"--views-per-block {block} {kind} -o x.nii", loose, True)


def listmode_cases(backend):
    yield Case("recon_listmode", backend,
               f"recon --operator listmode --scanner ../ring.yaml --backend {backend} --threads 2 {GRID} --events "
               "../l.petsird --tof-ps 200 --sensitivity-lines 500 --iterations 1 -o x.nii",
               1e-4 if backend == "cuda" else 0.0, is_timed=True, always=("lines", "sums of an image"))


def plain_cases():
    scanner, on = "--scanner ../ring.yaml", "--scanner ../ring.yaml --backend cpu --threads 2"
    rows, stores = (".part", ".part-rows"), ("--store yes", "--store no")
    yield Case("check", "", f"scanner check ../ring.yaml {GRID} --png c.png", always=("the list of LORs",))
    yield Case("show", "", "scanner show ../ring.yaml")
    yield Case("list", "", "scanner list")
    yield Case("phantom", "", f"phantom spheres {GRID} -o p.mha")
    for ending in ("geom", "hscan", "yaml"):
        yield Case(f"convert_{ending}", "", f"scanner convert ../ring.yaml s.{ending}")
    yield Case("events_show", "", "events show ../l.petsird", always=("a YAML document",))
    yield Case("events_castor", "", "events convert ../l.petsird c.Cdh")
    yield Case("events_petsird", "", f"events convert ../c.Cdh e.petsird {scanner}")
    yield Case("direct_lut", "", f"direct lut {KERNEL} {DIRECT_GRID} -o t.png")
    yield Case("direct_factors", "", f"direct factors {scanner} --efficiencies ../e.txt --mu ../mu.nii --directions 2 "
               f"--threads 2 {VIEWS} {DIRECT_GRID} -o n.h5")
    yield Case("matrix_verify", "", "matrix verify ../m.h5 --compare 2 --backend cpu")
    yield Case("matrix_join", "", "matrix join ../m1.h5 ../m2.h5 -o m.h5")
    yield Case("render_compare", "cpu", f"render {on} --at 1,0,0 --module 0 --compare 1,2 -o r")
    for ending in ("mtx", "tsv", "hpm"):
        yield Case(f"matrix_{ending}", "cpu", f"matrix {on} --mode sampled --rays 2 {GRID} -o m.{ending}", keeps=rows,
                   always=("modules",))
    yield Case("matrix_lors", "cpu", f"matrix {on} {GRID} --by lor --lors 0:40 --efficiencies ../e.txt -o m.h5",
               keeps=rows)
    yield Case("matrix_at", "cpu", f"matrix {on} --at 1,0,0 -o m.tsv")
    yield Case("matrix_lor", "cpu", f"matrix {on} {GRID} --lor 0,1,1,4,1,1 -o l.nii")
    yield Case("simulate_events", "cpu", f"simulate {on} --phantom spheres {GRID} --counts 2000 -o e.petsird")
    yield Case("recon_events", "cpu", f"recon {on} {GRID} --events ../l.petsird --iterations 1 --png x.png -o x.hv",
               is_timed=True, choices=stores)
    yield Case("recon_mu", "cpu", f"recon {on} {GRID} --data ../y.h5 --mu ../mu.nii --mu-as factors --iterations 1 "
               "--efficiencies ../e.txt -o x.mhd", is_timed=True, choices=stores)


def all_cases(kind):
    """The runs for that kind of call: those of OpenGL and CUDA where these are called at all."""
    if kind != "cuda":
        yield Case("info", "", "info --json")
    if kind == "gl":  # of devices that EGL does not list, and of "auto" that goes by one of hardware
        yield Case("info", "hardware", "info --json", always=(1, "eglMakeCurrent"), ends=(8, 8),
                   surroundings=(("INJECT_HARDWARE", "1"),))
    if kind in ("allocs", "threads"):
        yield from plain_cases()
    gl, own = ["raster", "compute"], ["cpu", "native"]
    for backend in {"gl": gl, "cuda": []}.get(kind, own + gl):
        yield from (case for case in backend_cases(backend) if backend == "raster" or not case.name == "render")
    for backend in {"gl": ["compute"], "cuda": ["cuda"]}.get(kind, ["cpu", "compute"]):
        yield from direct_cases(backend)
    for backend in {"gl": ["compute"], "cuda": ["cuda"]}.get(kind, ["cpu", "native", "compute"]):
        yield from listmode_cases(backend)
    if kind != "cuda" and os.environ.get("LORASTER_FULL"):
        yield Case("demo", "", "demo --quick --threads 2 -o d", 1e-4, True, is_short=False, always=("glColorMask",),
                   ends=(1, 0))


def same_values(a, b, tolerance):
    scale = max(map(abs, a), default=0.0)
    return len(a) == len(b) and all(abs(p - q) <= tolerance * scale for p, q in zip(a, b))


def same_image(one, other, tolerance):
    values = (struct.unpack_from(f"<{(len(raw) - 352) // 4}f", raw, 352) for raw in (one, other))
    return one[:352] == other[:352] and same_values(*values, tolerance)


def same_hdf5(one, other, tolerance):
    import h5py
    import numpy

    def numbers(raw):
        found = {}
        with h5py.File(io.BytesIO(raw)) as file:
            file.visititems(lambda name, item: found.update({name: item[()]})
                            if isinstance(item, h5py.Dataset) else None)
        return {name: value for name, value in found.items() if getattr(value, "dtype", numpy.dtype("O")).kind in "fiu"}

    a, b = numbers(one), numbers(other)
    return set(a) == set(b) and all(same_values(numpy.ravel(a[name]).astype(float), numpy.ravel(b[name]).astype(float),
                                                tolerance) for name in a)


def same_file(name, one, other, tolerance):
    """Whether two files differ by no more than the order of sums: those that are neither images nor
    data are drawn from such, and have about one length."""
    try:
        if name.endswith(".nii.gz"):
            return same_image(gzip.decompress(one), gzip.decompress(other), tolerance)
        if name.endswith(".nii"):
            return same_image(one, other, tolerance)
        if name.endswith(".h5"):
            return same_hdf5(one, other, tolerance)
    except (OSError, EOFError, struct.error):
        return False
    return name.endswith((".png", ".txt")) and abs(len(one) - len(other)) < 0.1 * len(one)


NUMBER = rb"-?[0-9]+(?:[.][0-9]+)?(?:e[+-]?[0-9]+)?"


def same_text(one, other, tolerance):
    """Whether two texts are alike but for numbers, of which none differs by more than its share."""
    pairs = list(zip(re.findall(NUMBER, one), re.findall(NUMBER, other)))
    return (re.sub(NUMBER, b"#", one) == re.sub(NUMBER, b"#", other) and
            all(abs(float(a) - float(b)) <= tolerance * abs(float(a)) for a, b in pairs))


def without_times(text):
    """Numbers count as one, whether there or not, and so does where they are from: what is left
    says what was measured, not how long it took."""
    text = re.sub(rb'"(first_run|rates_from)": *[a-z"]+', b"", text)
    text = re.sub(rb"[|] +- +(?=[|])", b"| # ", text)
    text = re.sub(rb"[0-9.]+(e[+-][0-9]+)?|null", b"#", text)
    return re.sub(rb"[\s|-]+", b"", text)
