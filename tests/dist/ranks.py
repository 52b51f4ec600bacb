# SPDX-License-Identifier: Apache-2.0
"""Runs programs by mpirun: for the tests of this folder."""
import array, atexit, os, shutil, subprocess, sys, tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import preloadable, write_nifti  # also for those who import this file

MPIRUN = shutil.which("mpirun")
FULL = bool(os.environ.get("LORASTER_FULL"))
HANG_S = 300
RING = """\
name: small ring
ring: {radius_mm: 30, modules: 8, rings: 1}
module: {crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
coincidence: {field_of_view_mm: 30}
tof: {resolution_ps: 400}
"""
GRID = "--grid 12,11,5 --voxel-mm 2"


def need_mpirun(program):
    """Ends the test as skipped where there is no MPI."""
    if MPIRUN is None or not (Path(program).parent / "lr_mpi.so").exists():
        print("skipped: no mpirun" if MPIRUN is None else "skipped: built without MPI")
        sys.exit(77)


def in_folder():
    """Goes into a folder that lasts as long as the test and holds ring.yaml."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    os.chdir(folder.name)
    Path("ring.yaml").write_text(RING)


def image(name):
    return array.array("f", Path(name).read_bytes()[352:])


def apart(a, b):
    """The largest difference of two images, as a share of the first one's largest voxel."""
    a, b = image(a), image(b)
    return max(abs(x - y) for x, y in zip(a, b)) / max(a)


def environment(program):
    # MPI's own libraries never free some of their memory.
    sanitizer = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
    return dict(os.environ, ASAN_OPTIONS=sanitizer, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                LORASTER_PLUGINS=str(Path(program).parent), LORASTER_CACHE="off",
                OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_btl="self,vader",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                OMPI_MCA_hwloc_base_binding_policy="none")


def command(ranks, words):
    return [MPIRUN, "-n", str(ranks)] + [str(word) for word in words]


def mpirun(program, ranks, *words, code=0):
    """What the ranks print together; they must end with that exit code (None: any but 0)."""
    done = subprocess.run(command(ranks, words), env=environment(program), capture_output=True, text=True,
                          timeout=HANG_S)
    said = f"{ranks} ranks of {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode != 0 if code is None else done.returncode == code, said
    return done


def run_topics(topics):
    """topics: {name: function}; the third word of the command line names one."""
    topics[sys.argv[3]]()
    print(f"{sys.argv[3]}: good")
