# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
import logging, os, shutil, struct, subprocess, sys

import numpy as np
import pytest

import loraster as lr
from conftest import GRID, VOXEL_MM, make_operator


@pytest.fixture(scope="module")
def native(scanner):
    """Keeps its matrix, since reconstructions project often."""
    return make_operator(scanner, "native")


@pytest.fixture(scope="module")
def counts(native, activity):
    return lr.poisson(2e4 * (native @ activity), seed=7)


def test_mlem_by_hand_is_mlem(native, counts):
    s = native.sensitivity()
    x = lr.recon.mlem(native, counts, iterations=1)
    again = lr.recon.mlem(native, counts, iterations=1, initial=x)
    y = native @ x
    ratio = np.divide(counts, y, out=np.zeros_like(y), where=y > 0)
    expected = np.divide(x * (native.T @ ratio), s, out=x.copy(), where=s > 0)
    np.testing.assert_allclose(again, expected, rtol=1e-5, atol=1e-6)


def test_a_callback_sees_the_likelihood_rise(native, counts):
    seen = []
    image = lr.recon.mlem(native, counts, iterations=5, callback=lambda done: seen.append((done, done.image)))
    likelihoods = [done.log_likelihood for done, _ in seen]
    assert [done.number for done, _ in seen] == [1, 2, 3, 4, 5]
    assert likelihoods == sorted(likelihoods)
    # EM keeps the counts: after each update the image explains as many as were measured.
    assert seen[0][0].sensitive_counts == pytest.approx(seen[0][0].measured_counts, rel=1e-5)
    np.testing.assert_array_equal(seen[-1][1], image)
    assert not np.array_equal(seen[0][1], image)


def test_a_callback_ends_the_work(native, counts):
    def stop(done):
        if done.number == 2:
            raise StopIteration

    two = lr.recon.mlem(native, counts, iterations=5, callback=stop)
    np.testing.assert_array_equal(two, lr.recon.mlem(native, counts, iterations=2, callback=lambda done: None))

    def fail(done):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        lr.recon.osem(native, counts, callback=fail)


def test_osem_is_the_programs_bit_for_bit(scanner, native, counts, tmp_path):
    lr.write(tmp_path / "scanner.yaml", scanner)
    lr.write(tmp_path / "counts.h5", counts, scanner=scanner)
    np.testing.assert_array_equal(lr.read(tmp_path / "counts.h5", scanner), counts)
    subprocess.run(
        [
            lr.program(), "recon", "--scanner", "scanner.yaml", "--data", "counts.h5", "--grid", "10,8,5",
            "--voxel-mm", "4,4,3", "--algorithm", "osem", "--subsets", "3", "--iterations", "2",
            "--backend", "native", "--store", "no", "--quiet", "-o", "image.npy",
        ],
        cwd=tmp_path,
        check=True,
    )  # fmt: skip
    op = make_operator(lr.Scanner(tmp_path / "scanner.yaml"), "native", store=False)
    image = lr.recon.osem(op, counts, iterations=2, subsets=3)
    np.testing.assert_array_equal(image, np.load(tmp_path / "image.npy"))


def test_additive_terms_are_explained(native, activity, counts):
    background = np.full(native.data_shape, 0.05, np.float32)
    with_background = lr.poisson(2e4 * (native @ activity) + background, seed=8)
    image = lr.recon.osem(native, with_background, subsets=2, iterations=4, additive=background)
    # The estimated counts add up to the measured counts, within their Poisson noise.
    explained = (native @ image).sum() + background.sum()
    assert explained == pytest.approx(with_background.sum(), rel=0.02)


def test_ramla_and_bsrem(native, counts):
    def likelihood(image):
        last = []
        lr.recon.mlem(native, counts, iterations=1, initial=image, callback=lambda done: last.append(done))
        return last[0].log_likelihood

    reference = likelihood(lr.recon.mlem(native, counts, iterations=2))
    assert likelihood(lr.recon.ramla(native, counts, subsets=3, iterations=3)) > reference
    plain = lr.recon.bsrem(native, counts, iterations=4)
    smooth = lr.recon.bsrem(native, counts, iterations=4, prior=lr.recon.RDP(beta=1.0))
    assert likelihood(plain) > reference
    with pytest.raises(TypeError, match=r"prior is a str: write prior=lr.recon.RDP\(beta=...\)"):
        lr.recon.bsrem(native, counts, prior="rdp")
    assert np.abs(np.diff(smooth, axis=2)).sum() < np.abs(np.diff(plain, axis=2)).sum()


def test_counts_that_nothing_explains_are_told_of_shortly(native, counts, caplog):
    unseen = native.sensitivity().sum() > 0 and native @ np.ones(native.image_shape, np.float32) == 0
    with caplog.at_level(logging.WARNING, "loraster"):
        lr.recon.mlem(native, counts + np.where(unseen, 2.0, 0.0).astype(np.float32), iterations=1)
    (message,) = [record.message for record in caplog.records]
    assert message.startswith(f"{unseen.sum()} LORs with") and len(message) < 240


RANKS = """
import numpy as np, sys
from mpi4py import MPI
import loraster as lr
from conftest import GRID, VOXEL_MM, make_scanner
comm, scanner = MPI.COMM_WORLD, make_scanner()
counts, efficiencies = np.load(sys.argv[1]), np.load(sys.argv[2])
A = lr.Operator(scanner, GRID, VOXEL_MM, backend="native", efficiencies=efficiencies,
                part=(comm.rank, comm.size), subsets=4, threads=1)
assert 0 < A.shape[0] < scanner.num_lors
image = lr.recon.osem(A, counts[A.indices], subsets=4, comm=comm)
# One rank's mistake ends the work of both: before the compiled half, in it, or at the end.
def stop(done):
    raise OverflowError("a callback fails")

y = counts[A.indices]
class OnDevice:
    __dlpack_device__ = lambda self: (2, 0)
for sentence, wrong in [
    ("y has the shape", dict(y=counts)),
    ("a list", dict(y=counts.tolist())),
    ("no arrays on its device", dict(y=OnDevice())),
    ("int32", dict(y=y.astype(np.int32))),
    ("at least 0", dict(y=-y)),
    ("an Operator is needed", dict(A=A.T)),
    ("iterations is 0", dict(iterations=0)),
    ("'<' not supported", dict(iterations="2")),
    ("was dealt for 4 subsets", dict(subsets=2)),
    ("initial has the shape", dict(initial=y)),
    ("additive has the shape", dict(additive=counts)),
    ("'int' object is not callable", dict(progress=3)),
    ("a callback fails", dict(callback=stop)),
]:
    try:
        lr.recon.osem(**(dict(A=A, y=y, subsets=4, comm=comm) | (wrong if comm.rank == 0 else {})))
        print("no error in rank", comm.rank, sentence)
    except (ValueError, TypeError, OverflowError, lr.Error) as error:
        assert (sentence if comm.rank == 0 else "rank 0 of 2 has failed") in str(error), (sentence, str(error))
# Ranks that ask for different things, of which each is good alone.
try:
    lr.recon.osem(A, y, subsets=4, iterations=2 + comm.rank, comm=comm)
    print("no error in rank", comm.rank)
except (ValueError, lr.Error) as error:
    assert ("another reconstruction" if comm.rank else "rank 1 of 2 has failed") in str(error), str(error)
heard = []
lr.recon.osem(A, y, subsets=4, iterations=1, comm=comm, callback=heard.append if comm.rank == 0 else None)
assert len(heard) == (comm.rank == 0)
# Each rank has its own lines.
ends = np.moveaxis(scanner.hits[scanner.lor_crystals(A.indices)], 1, 0).astype(np.float32, order="C")
lines = lr.Operator.of_lines(*ends, GRID, VOXEL_MM, backend="native", threads=1)
of_lines = lr.recon.mlem(lines, counts[A.indices], iterations=2, comm=comm)
# Each rank has its own events.
events = lr.ListMode(scanner, crystals=scanner.lor_crystals(A.indices[counts[A.indices] > 0]))
B = lr.Operator.of_events(events, GRID, VOXEL_MM, backend="native", kernel="exact", ranges=2, threads=1,
                          part=(comm.rank, comm.size))
of_events = lr.recon.osem(B, None, subsets=2, comm=comm)
whole = lr.Operator(scanner, GRID, VOXEL_MM, backend="native", projections=1)
try:
    lr.recon.osem(whole, counts, comm=comm)
    print("each rank had all LORs")
except ValueError as error:
    assert "each rank has all LORs" in str(error)
if comm.rank == 0:
    np.save(sys.argv[3], np.stack([image, of_lines, of_events]))
"""


def test_two_ranks_make_the_image_of_one(scanner, counts, rng, tmp_path):
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun")
    efficiencies = rng.uniform(0.5, 1.0, scanner.num_lors).astype(np.float32)
    np.save(tmp_path / "counts.npy", counts)
    np.save(tmp_path / "efficiencies.npy", efficiencies)
    run = subprocess.run(
        ["mpirun", "-n", "2", "--oversubscribe", sys.executable, "-c", RANKS,
         *(tmp_path / name for name in ("counts.npy", "efficiencies.npy", "images.npy"))],
        env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                 OMPI_MCA_btl="self,vader", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                 OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_hwloc_base_binding_policy="none",
                 PYTHONPATH=os.pathsep.join([os.path.dirname(__file__), *sys.path])),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    image, of_lines, of_events = np.load(tmp_path / "images.npy")
    op = make_operator(scanner, "native", efficiencies=efficiencies)
    # Subsets have the same LORs as in one process, and only the sums of back-projections are rounded per rank.
    one = lr.recon.osem(op, counts, subsets=4)
    np.testing.assert_allclose(image, one, rtol=1e-4, atol=1e-5 * one.max())
    ends = np.moveaxis(scanner.hits[scanner.lor_crystals()], 1, 0).astype(np.float32, order="C")
    one = lr.recon.mlem(lr.Operator.of_lines(*ends, GRID, VOXEL_MM, backend="native"), counts, iterations=2)
    np.testing.assert_allclose(of_lines, one, rtol=1e-4, atol=1e-5 * one.max())
    # Subsets have other events than in one process, but the image explains the same number of counts.
    sensitivity = make_operator(scanner, "native", projections=1).sensitivity()
    assert (sensitivity * of_events).sum() == pytest.approx((counts > 0).sum(), rel=0.02)


def test_parts_that_make_no_sense_are_refused(scanner, counts):
    with pytest.raises(ValueError, match="no part 2 of 2"):
        make_operator(scanner, "native", part=(2, 2))
    op = make_operator(scanner, "native", part=(1, 2), subsets=3)
    with pytest.raises(ValueError, match="make the operator with subsets=2"):
        lr.recon.osem(op, counts[op.indices], subsets=2)


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda y: dict(y=-y), "at least 0"),
        (lambda y: dict(y=0 * y), "y holds no counts: every number is 0, of which no image comes"),
        (lambda y: dict(y=y, additive=y), "additive is y itself"),
        (lambda y: dict(y=y[1:]), "y has the shape"),
        (lambda y: dict(y=y, additive=y[1:]), "additive has the shape"),
        (lambda y: dict(y=y, initial=y), "initial has the shape"),
        (lambda y: dict(y=y, subsets=100000), "subset"),
        (lambda y: dict(y=y, iterations=0), "iterations is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(native, counts, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        lr.recon.osem(native, **change(counts))


def test_list_mode(scanner, native, activity, rng):
    counts = lr.poisson(1e3 * (native @ activity), seed=9)
    lors = np.repeat(np.arange(scanner.num_lors), counts.astype(np.int64))
    rng.shuffle(lors)
    events = lr.ListMode(scanner, crystals=scanner.lor_crystals(lors))
    assert len(events) == counts.sum() and not events.has_tof
    np.testing.assert_array_equal(events.histogram(), counts)
    op = lr.Operator.of_events(events, GRID, VOXEL_MM, kernel="exact", ranges=2, backend="native")
    x = rng.random(op.image_shape, np.float32)
    # Elements of the exact kernel equal the elements of the events' LORs.
    np.testing.assert_allclose(op @ x, (native @ x)[lors], rtol=2e-5, atol=1e-9)
    with pytest.raises(ValueError, match="make the operator with as many ranges"):
        lr.recon.osem(op, None, subsets=4)
    image = lr.recon.osem(op, None, iterations=2, subsets=2)
    assert (native.sensitivity() * image).sum() == pytest.approx(len(events), rel=0.02)
    part = op.subset(1, 2)
    np.testing.assert_array_equal(part @ x, (op @ x)[part.indices])


def test_events_out_of_coincidence_are_told_of(scanner, caplog):
    with caplog.at_level(logging.WARNING, "loraster"):
        lr.ListMode(scanner, crystals=[[3, 4], [5, 6]])
    assert "2 of 2 events join crystals that are not in coincidence" in caplog.text


def test_list_mode_comes_back_from_a_file(scanner, rng, tmp_path):
    lors = rng.choice(np.flatnonzero(scanner.lor_of(scanner.lor_crystals()) >= 0), 1000)
    times = rng.permutation(1000)
    tof_mm = 6.0 * rng.integers(-4, 5, 1000)
    events = lr.ListMode(scanner, crystals=scanner.lor_crystals(lors), time_ms=times, delayed=times % 7 == 0,
                         tof_mm=tof_mm, tof_bin_mm=6.0, tof_resolution_ps=200)  # fmt: skip
    lr.write(tmp_path / "events.petsird", events)
    again, order = lr.read(tmp_path / "events.petsird", scanner), np.argsort(times)
    np.testing.assert_array_equal(again.lors, lors[order])
    np.testing.assert_array_equal(again.time_ms, np.arange(1000))
    np.testing.assert_array_equal(again.delayed, events.delayed[order])
    turned = np.where(again.crystals[:, 0] == events.crystals[order, 0], 1, -1)
    np.testing.assert_allclose(turned * again.tof_mm, tof_mm[order], atol=1e-3)
    assert again.tof_resolution_ps == pytest.approx(200)
    with pytest.raises(ValueError, match=r"\.petsird"):
        lr.write(tmp_path / "events.nii", events)


def test_time_of_flight_adds_up(scanner):
    ends = np.tile(np.array([[3, 24 * 6 + 3]], np.int32), (401, 1))
    places = np.linspace(-100, 100, 401).astype(np.float32)
    assert scanner.lor_of(ends[:1])[0] >= 0
    with pytest.raises(ValueError, match="tof_resolution_ps"):
        lr.ListMode(scanner, crystals=ends, tof_mm=places)
    tof = lr.ListMode(scanner, crystals=ends, tof_mm=places, tof_resolution_ps=200)
    plain = lr.ListMode(scanner, crystals=ends[:1])
    x = np.ones((GRID[2], GRID[1], GRID[0]), np.float32)
    a = lr.Operator.of_events(tof, GRID, VOXEL_MM, kernel="line", backend="cpu")
    b = lr.Operator.of_events(plain, GRID, VOXEL_MM, kernel="line", backend="cpu")
    # Elements are densities per mm of tof_mm, here each 0.5 mm.
    assert 0.5 * (a @ x).sum() == pytest.approx((b @ x)[0], rel=1e-4)
    same = lr.ListMode(scanner, crystals=ends, tof_ps=places / 0.149896229, tof_resolution_ps=200)
    np.testing.assert_allclose(same.tof_mm, places, rtol=1e-6, atol=1e-5)


def test_direct_from_events(scanner):
    ends = scanner.lor_crystals(np.arange(0, scanner.num_lors, 37))
    ends = ends[scanner.lor_of(ends) >= 0]
    events = lr.ListMode(scanner, crystals=ends, tof_mm=np.zeros(len(ends)), tof_resolution_ps=300)
    histo = lr.direct.deposit(events, (32, 32, 24), 4.0, azimuths=6, tilts=3, acceptance_deg=40)
    op = lr.Operator.direct(
        (32, 32, 24), 4.0, views=lr.direct.views(6, 3, 40), tof_ps=300, radial_mm=5, axial_mm=5, backend="cpu"
    )
    assert histo.shape == op.data_shape
    assert 0 < histo.sum() <= len(ends)


def test_images_come_back_from_files(activity, tmp_path):
    for name in ("image.nii.gz", "image.hv", "image.mha"):
        lr.write(tmp_path / name, activity, voxel_mm=VOXEL_MM)
        values, voxel_mm, origin_mm = lr.read(tmp_path / name)
        np.testing.assert_array_equal(values, activity)
        np.testing.assert_allclose(voxel_mm, VOXEL_MM, rtol=1e-6)
        np.testing.assert_allclose(origin_mm, [-18, -14, -6], atol=1e-5)
    with pytest.raises(ValueError, match="nothing.nii"):
        lr.read(tmp_path / "nothing.nii")
    with pytest.raises(TypeError, match="voxel_mm"):
        lr.write(tmp_path / "image.nii", activity)


def test_frames_of_a_file_come_along(activity, tmp_path):
    lr.write(tmp_path / "one.nii", activity, voxel_mm=VOXEL_MM)
    file = bytearray((tmp_path / "one.nii").read_bytes())
    file[40:42] = file[48:50] = struct.pack("<h", 4)  # dim[0] and dim[4] of the header: four axes, and four volumes
    second = (2 * activity).astype("<f4")
    (tmp_path / "four.nii").write_bytes(file + second.tobytes() + 2 * file[352:])
    values, voxel_mm, _ = lr.read(tmp_path / "four.nii")
    np.testing.assert_array_equal(values, np.stack([activity, second, activity, activity]))
    np.testing.assert_array_equal(lr.read(tmp_path / "four.nii:2").values, second)
    with pytest.raises(ValueError, match="has no frame 5: it has 4"):
        lr.read(tmp_path / "four.nii:5")
    np.testing.assert_allclose(voxel_mm, VOXEL_MM, rtol=1e-6)
    with pytest.raises(ValueError, match="image has 4 dimensions, and 3 are needed, .*: take one of its frames"):
        lr.write(tmp_path / "again.nii", lr.Image(values, voxel_mm))


def test_poisson_counts_depend_on_the_seed_alone():
    expected = np.full(10000, 3.0)
    counts = lr.poisson(expected, seed=1)
    np.testing.assert_array_equal(counts, lr.poisson(expected, seed=1))
    assert (counts != lr.poisson(expected, seed=2)).any()
    # The limits are five standard errors; those of mean and variance are 0.017 and 0.045.
    assert abs(counts.mean() - 3) < 0.09 and abs(counts.var() - 3) < 0.23
    with pytest.raises(ValueError):
        lr.poisson(-expected, seed=1)
