# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
import array, inspect, logging, math, os, re, sys, threading, time

import numpy as np
import pytest

import loraster as lr
from loraster import _progress
from conftest import GRID, SLOWER, VOXEL_MM, make_operator, make_scanner


def test_the_adjoint_is_the_transpose(each, rng):
    x = rng.random(each.image_shape, np.float32)
    y = rng.random(each.data_shape, np.float32)
    left = np.vdot((each @ x).astype(np.float64), y)
    right = np.vdot(x.astype(np.float64), each.T @ y)
    # Each sum has about 10^4 terms of 24 bits, rounded independently.
    assert left == pytest.approx(right, rel=2e-6)
    assert left > 0


def test_doubles_on_the_reference_stay_doubles(scanner, rng):
    op = make_operator(scanner, "cpu")
    x, y = rng.random(op.image_shape), rng.random(op.data_shape)
    forward, back = op @ x, op.T @ y
    assert forward.dtype == back.dtype == np.float64
    # A stored element is a float32, the same one in both directions: 10^4 sums in double differ by their rounding.
    assert np.vdot(forward, y) == pytest.approx(np.vdot(x, back), rel=1e-12)


def test_the_sensitivity_is_the_adjoint_of_ones(each):
    ones = np.ones(each.data_shape, np.float32)
    np.testing.assert_allclose(each.sensitivity(), each.T @ ones, rtol=5e-6)


def test_subsets_add_up(each, rng):
    x = rng.random(each.image_shape, np.float32)
    whole, seen, sensitivity = each @ x, np.zeros(each.data_shape, np.int64), np.zeros(each.image_shape)
    for k in range(3):
        part = each.subset(k, 3)
        assert part.shape == (len(part.indices), each.shape[1])
        np.testing.assert_allclose(part @ x, whole[part.indices], rtol=5e-6, atol=1e-9)
        seen[part.indices] += 1
        sensitivity += part.sensitivity()
    assert (seen == 1).all()
    np.testing.assert_allclose(sensitivity, each.sensitivity(), rtol=5e-6)
    with pytest.raises(ValueError, match="there is no subset 3 of 3"):
        each.subset(3, 3)
    with pytest.raises(ValueError, match="a subset has no subsets"):
        each.subset(0, 3).subset(0, 2)


def test_csr_rows_and_columns_are_the_operator(native, rng):
    pytest.importorskip("scipy.sparse")
    x = rng.random(native.image_shape, np.float32)
    y = native @ x
    matrix = native.to_csr()
    assert matrix.shape == native.shape
    product = matrix.astype(np.float64) @ x.reshape(-1)
    assert np.abs(product - y).max() <= 2e-7 * y.max()
    some = matrix[100:200]
    assert (native.to_csr(rows=slice(100, 200)) != some).nnz == 0
    lor = int(np.argmax(y))
    voxels, elements = native.row(lor)
    np.testing.assert_array_equal(matrix[[lor]].toarray()[0, voxels], elements)
    lors, elements = native.column((2, 4, 5))
    number = np.ravel_multi_index((2, 4, 5), native.image_shape)
    np.testing.assert_allclose(matrix[:, [number]].toarray()[lors, 0], elements, rtol=1e-6)
    assert elements.sum() == pytest.approx(native.sensitivity()[2, 4, 5], rel=1e-5)
    with pytest.raises(ValueError, match=r"voxel \(5, 4, 2\) is outside .* the order is iz, iy, ix"):
        native.column((5, 4, 2))


def test_as_a_linear_operator(native, rng):
    pytest.importorskip("scipy.sparse")
    linear = native.aslinearoperator()
    x = rng.random(native.shape[1]).astype(np.float32)
    np.testing.assert_array_equal(linear @ x, native @ x.reshape(native.image_shape))
    y = rng.random(native.shape[0]).astype(np.float32)
    np.testing.assert_array_equal(linear.T @ y, (native.T @ y).reshape(-1))


def test_out_is_written_and_returned(native, activity):
    y = np.full(native.data_shape, np.nan, np.float32)
    assert native.forward(activity, out=y) is y
    np.testing.assert_array_equal(y, native @ activity)
    x = np.full(native.image_shape, np.nan, np.float32)
    assert native.adjoint(y, out=x) is x
    np.testing.assert_array_equal(x, native.T @ y)
    s = np.full(native.image_shape, np.nan, np.float32)
    assert native.sensitivity(out=s) is s and np.isfinite(s).all()


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    "wrong, error, sentence",
    [
        (lambda x: x.astype(np.float64), TypeError, r"float64, and float32 .* write x.astype\('float32'\)"),
        (lambda x: x.astype(np.int32), TypeError, "int32"),
        (lambda x: x.astype(np.complex64), TypeError, "complex64"),
        (lambda x: x.astype(">f4"), TypeError, r"type dtype\('>f4'\).* write x.astype\('float32'\)"),
        (lambda x: x.astype(object), TypeError, r"type dtype\('O'\)"),
        (lambda x: np.ma.masked_less(x, 0.5), TypeError, r"x is a masked array, .* fill it by .filled\(0\)"),
        (lambda x: x.tolist(), TypeError, "x is a list, .* numpy.asarray"),
        (lambda x: None, TypeError, "x is a NoneType"),
        (lambda x: "x.nii", TypeError, r"x is a str: write lr.read\('x.nii'\).values"),
        (lambda x: np.zeros(make_scanner().num_lors, np.float32), ValueError, "these are data: write A.T @ x"),
        (lambda x: x[:-1], ValueError, r"shape \(4, 8, 10\), and \(5, 8, 10\)"),
        (lambda x: x.reshape(-1), ValueError, r"write x.reshape\(5, 8, 10\)"),
        (lambda x: np.ascontiguousarray(x.T), ValueError,
         r"was the grid given as x.shape\? Write x.shape\[::-1\] there, or, .* numpy.ascontiguousarray\(x.T\)"),
        (lambda x: np.asfortranarray(x), ValueError, "C order"),
        (lambda x: np.repeat(x, 2, axis=2)[..., ::2], ValueError, "gaps between its numbers"),
        (lambda x: np.where(x == x.max(), np.nan, x).astype(np.float32), ValueError, "finite"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(native, activity, wrong, error, sentence):
    with pytest.raises(error, match=sentence):
        native @ wrong(activity)


@pytest.mark.parametrize(
    "wrong, error, sentence",
    [
        (lambda y: y.astype(np.float64), TypeError, "out has numbers of type float64"),
        (read_only, ValueError, "out is read-only"),
        (lambda y: y[1:], ValueError, "out has the shape"),
        (lambda y: np.repeat(y, 2)[::2], ValueError, "out is not in C order"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused(native, activity, wrong, error, sentence):
    with pytest.raises(error, match=sentence):
        native.forward(activity, out=wrong(np.zeros(native.data_shape, np.float32)))


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(backend="cuda"), "cuda"),
        (dict(backend="nothing"), "nothing"),
        (dict(mode="nothing"), "write one of 'auto', 'sampled', 'exact'"),
        (dict(rays=-1), "rays"),
        (dict(efficiencies=np.ones(3, np.float32)), "efficiencies has 3 numbers"),
        (dict(efficiencies=np.full(576, -1, np.float32)), "of crystals: number 0 is -1: it must be finite and not negative"),
        (dict(efficiencies=np.full(576, np.nan, np.float32)), "number 0 is nan"),
        (dict(efficiencies=np.zeros(576, np.float32)), "0 everywhere, and no crystal would count"),
        (dict(psf_mm=-1.0), "FWHM|width"),
        (dict(samples=2.5), "samples is 2.5: a whole number is wanted"),
        (dict(rays=2**40), "rays is 1099511627776: whole numbers from"),
        (dict(part=(0, 2, 1)), "part has 3 numbers"),
        (dict(attenuation=np.ones((2, 2, 2), np.float32)), "attenuation has the shape"),
    ],
)
def test_operators_that_make_no_sense_are_refused(scanner, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        lr.Operator(scanner, GRID, VOXEL_MM, **arguments)


@pytest.mark.parametrize(
    "wrong, error, sentence",
    [
        (lambda scanner: lr.Operator("s.yaml", GRID, VOXEL_MM), TypeError, r"write lr.Scanner\('s.yaml'\)"),
        (lambda scanner: lr.ListMode("s.yaml", crystals=[[0, 300]]), TypeError, r"write lr.Scanner\('s.yaml'\)"),
        (lambda scanner: lr.write("y.h5", np.zeros(3), scanner="s.yaml"), TypeError, r"write lr.Scanner\('s.yaml'\)"),
        (lambda scanner: lr.view("s.yaml"), TypeError, r"write lr.Scanner\('s.yaml'\)"),
        (lambda scanner: lr.Operator.of_events("e.petsird", GRID, VOXEL_MM), TypeError,
         r"write lr.ListMode\(scanner, 'e.petsird'\)"),
        (lambda scanner: lr.Operator(scanner, GRID, VOXEL_MM, attenuation="mu.nii"), TypeError,
         r"attenuation is a str: write lr.read\('mu.nii'\).values"),
        (lambda scanner: lr.Operator(scanner, 20, 2.0), TypeError, "grid is 20: give nx, ny, nz"),
        (lambda scanner: lr.Operator(scanner, (10.5, 8, 5), 4.0), ValueError, "grid is 10.5: a whole number"),
        (lambda scanner: lr.Operator(scanner, GRID, "4"), TypeError, "voxel_mm is '4': a number is wanted"),
        (lambda scanner: lr.Operator(scanner, GRID, 4.0, threads="all"), TypeError, "threads is 'all': a number"),
        (lambda scanner: lr.Operator(scanner, GRID, 4.0, store="yes"), TypeError, "store is 'yes': True or False"),
        (lambda scanner: lr.Operator(scanner, GRID, 4.0, mode=1), TypeError, "mode is 1: a str is wanted"),
        (lambda scanner: lr.Operator(scanner, GRID, 4.0, part=("0", 2)), TypeError, "part is '0': a number"),
        (lambda scanner: lr.Operator(scanner, GRID, 4.0, mu=1), TypeError,
         "Operator has no argument mu: did you mean attenuation"),
        (lambda scanner: lr.Operator(scanner, GRID, 4.0, psf=1), TypeError, "no argument psf: did you mean psf_mm"),
        (lambda scanner: make_operator(scanner, "native").subset(0.5, 2), ValueError, "k is 0.5: a whole number"),
        (lambda scanner: lr.direct.views(azimuths=8.5), ValueError, "azimuths is 8.5: a whole number"),
        (lambda scanner: lr.poisson(np.ones(3), seed=-1), ValueError, "seed is -1: whole numbers from 0 to"),
        (lambda scanner: lr.poisson(np.ma.masked_less(np.ones(3), 2), seed=1), TypeError, "expected is a masked array"),
        (lambda scanner: lr.Scanner.ring(radius_mm="50", modules=12, crystals=6, pitch_mm=4, depth_mm=9), TypeError,
         "radius_mm is '50': a number is wanted"),
        (lambda scanner: lr.Scanner.ring(radius_mm=50, modules=12.7, crystals=6, pitch_mm=4, depth_mm=9), ValueError,
         "modules is 12.7: a whole number is wanted"),
        (lambda scanner: lr.Scanner.ring(radius_mm=50, modules=12, crystals=(6.5, 4), pitch_mm=4, depth_mm=9),
         ValueError, "crystals is 6.5: a whole number is wanted"),
        (lambda scanner: lr.Operator.of_events(lr.ListMode(scanner, crystals=np.zeros((0, 2), int)), GRID, 4.0),
         ValueError, "events has no events"),
        (lambda scanner: lr.Operator.direct((8, 8, 4), 4.0, views=lr.direct.views(4, 1), tof_ps=0.2), ValueError,
         r"tof_ps is 0.2: it looks like ns: give 200 \(ps, FWHM\)"),
        (lambda scanner: lr.ListMode(scanner, crystals=[[0, 300]], tof_resolution_ps=0.2), ValueError,
         "tof_resolution_ps is 0.2: it looks like ns: give 200"),
        (lambda scanner: lr.ListMode(scanner, crystals=[[0, 300]], tof_ps=[1.2e7], tof_resolution_ps=200), ValueError,
         r"event 0 has tof_ps 1.2e\+07, beyond the scanner's bore: is it in fs\?"),
        (lambda scanner: lr.ListMode(scanner, crystals=[[0, 300, 5]]), ValueError,
         r"crystals has the shape \(1, 3\), and \(n, 2\) is wanted"),
        (lambda scanner: lr.ListMode(scanner, crystals=[[0, 300], [0.7, 1600.2]]), ValueError,
         r"event 1 names the crystal 0.7: whole numbers are wanted; is it the right column\?"),
        (lambda scanner: lr.ListMode(scanner, crystals=[[0, float("nan")]]), ValueError, "names the crystal nan: whole"),
        (lambda scanner: lr.ListMode(scanner, crystals=[[0, 2**32]]), ValueError, "numbers up to 2147483647 are wanted"),
        (lambda scanner: scanner.lor_of([[0.5, 300]]), ValueError, "names the crystal 0.5: whole numbers"),
        (lambda scanner: scanner.lor_crystals([1.5]), ValueError, "row 0 names the LOR 1.5: whole numbers"),
        (lambda scanner: lr.write("y.nii", np.zeros(3, np.float32), voxel_mm=2.5), ValueError,
         "image has 1 dimension, and 3 are needed, .*: data go with scanner="),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_answered_by_what_to_write(scanner, wrong, error, sentence):
    with pytest.raises(error, match=sentence):
        wrong(scanner)


def test_whole_numbers_may_be_floats_and_paths_bytes(scanner, tmp_path):
    lr.write(tmp_path / "s.yaml", make_scanner(max_ring_difference=0.0))
    assert lr.Scanner(os.fsencode(tmp_path / "s.yaml")).num_lors < scanner.num_lors
    op = lr.Operator(scanner, np.float64(GRID), VOXEL_MM, backend="native", samples=1.0, threads=np.int64(2))
    assert op.image_shape == GRID[::-1] and op.subset(0.0, np.float32(2)).data_shape == op.subset(0, 2).data_shape


@pytest.mark.parametrize("product", [lambda A, x: A * x, lambda A, x: x * A, lambda A, x: A.dot(x), lambda A, x: x @ A])
def test_other_products_are_answered_by_the_right_one(native, activity, product):
    with pytest.raises(TypeError, match="write @, and the array last"):
        product(native, activity)


TIMES = np.array([[10, 154]] * 9), np.linspace(-1, 1, 9)
LINES = np.random.default_rng(5).normal(size=(9, 3))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda scanner, k: make_operator(scanner, "native", efficiencies=np.full(576, (1, 100)[k], np.float32)),
         "efficiencies of crystals: the efficiencies are 100 on average"),
        (lambda scanner, k: make_operator(scanner, "native", psf_mm=(4, 15)[k]), "much wider than the crystals of 4 mm"),
        (lambda scanner, k: make_operator(scanner, "native", psf_mm=(1.7, 0.15)[k]), "0.15 mm changes nothing on voxels"),
        (lambda scanner, k: lr.ListMode(scanner, crystals=TIMES[0], tof_ps=(300, 0.3)[k] * TIMES[1],
                                        tof_resolution_ps=400), "tof_ps is 0.3 at most, .*: are they in ns?"),
        (lambda scanner, k: lr.ListMode(scanner, crystals=TIMES[0], tof_mm=(45, 300)[k] * TIMES[1],
                                        tof_resolution_ps=400), "bore of radius .*: are they in ps?"),
        (lambda scanner, k: lr.Operator.of_lines((90, 9)[k] * LINES, (-90, -9)[k] * LINES, (50, 50, 50), 2.0),
         "ends of all lines lie inside the grid"),
    ],
)  # fmt: skip
def test_what_looks_like_another_unit_is_told_of(scanner, caplog, make, sentence):
    for k in range(2):  # what is right first
        with caplog.at_level(logging.WARNING, "loraster"):
            make(scanner, k)
        assert len(caplog.records) == k, caplog.text
    assert re.search(sentence, caplog.text)


def test_help_has_the_arguments():
    for function in (lr.Operator.__init__, lr.recon.mlem, lr.recon.osem, lr.recon.ramla, lr.recon.bsrem):
        for name in {"grid", "attenuation", "y", "callback"} & {*inspect.signature(function).parameters}:
            assert f"{name}:" in function.__doc__


def test_voxels_that_look_like_m_are_told_of(scanner, caplog):
    with caplog.at_level(logging.WARNING, "loraster"):
        lr.Operator(scanner, (50, 50, 2), 0.02, backend="native", store=False)
    assert "were the voxels' edges given in cm or m? They are taken as mm" in caplog.text


def test_grids_that_make_no_sense_are_refused(scanner):
    for grid, voxel_mm in [((10, 8), 4.0), ((10, 8, 0), 4.0), ((10, 8, 5), (1.0, 2.0)), ((10, 8, 5), -1.0)]:
        with pytest.raises(ValueError):
            lr.Operator(scanner, grid, voxel_mm)


def test_read_only_inputs_and_buffers_are_taken(native, activity):
    y = native @ activity
    np.testing.assert_array_equal(native @ read_only(activity), y)
    buffer = array.array("f", np.ones(native.data_shape, np.float32).tobytes())
    np.testing.assert_array_equal(native.T @ buffer, native.T @ np.ones(native.data_shape, np.float32))


def test_arrays_of_the_array_api(native, activity):
    xp = pytest.importorskip("array_api_strict")
    result = native @ xp.asarray(activity)
    assert type(result) is type(xp.asarray(activity))
    np.testing.assert_array_equal(np.asarray(result), native @ activity)


def test_arrays_of_torch(native, activity):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(activity)
    result = native @ x
    assert isinstance(result, torch.Tensor) and result.dtype == torch.float32
    np.testing.assert_array_equal(result.numpy(), native @ activity)
    with pytest.raises(TypeError, match="x.float"):
        native @ x.double()


def test_efficiencies_of_crystals_are_those_of_lors(scanner, native, activity, rng):
    efficiencies = rng.uniform(0.5, 1.0, scanner.num_crystals).astype(np.float32)
    ends = scanner.lor_crystals()
    product = efficiencies[ends[:, 0]] * efficiencies[ends[:, 1]]
    y = native @ activity
    for given in (efficiencies, product):
        op = make_operator(scanner, "native", store=False, efficiencies=given)
        np.testing.assert_allclose(op @ activity, product * y, rtol=1e-6, atol=1e-12)


def test_attenuation_of_a_uniform_map_lies_between_its_bounds(scanner, native, activity):
    mu = np.full(native.image_shape, 0.01, np.float32)
    y = native @ activity
    op = make_operator(scanner, "native", store=False, attenuation=mu)
    survival = (op @ activity)[y > 0] / y[y > 0]
    longest = np.linalg.norm(np.multiply(GRID, VOXEL_MM))
    assert survival.max() <= 1 and survival.min() >= np.exp(-0.01 * longest) and survival.min() < 0.8
    # The same map is given as an image with its own grid.
    image = lr.Image(mu, VOXEL_MM)
    np.testing.assert_array_equal(make_operator(scanner, "native", store=False, attenuation=image) @ activity,
                                  op @ activity)


def test_a_map_in_another_unit_or_place_is_told_of(scanner, caplog):
    mu = np.full((GRID[2], GRID[1], GRID[0]), 0.096, np.float32)
    with caplog.at_level(logging.WARNING, "loraster"):
        make_operator(scanner, "native", store=False, attenuation=mu / 10)
        assert not caplog.records
        make_operator(scanner, "native", store=False, attenuation=mu)
    assert "it looks like 1/cm; if so, divide it by 10" in caplog.text
    with pytest.raises(ValueError, match="Hounsfield units\\? An H up to 47 becomes 1/mm"):
        make_operator(scanner, "native", store=False, attenuation=1000 * mu)
    with pytest.raises(ValueError, match="misses the scanner"):
        make_operator(scanner, "native", store=False, attenuation=lr.Image(mu / 10, VOXEL_MM, (500, 0, 0)))


def test_blur_is_a_gaussian_before_the_projection(scanner, native):
    def weights(voxel_mm, num, middle):
        """A Gaussian of 5 mm FWHM, integrated over voxels, as far as four standard deviations."""
        sigma = 5.0 / 2.3548200450309493
        reach = math.ceil(4 * sigma / voxel_mm)
        edges = [math.erf((k - 0.5) * voxel_mm / sigma / math.sqrt(2)) for k in range(-reach, reach + 2)]
        kernel = np.diff(edges) / (edges[-1] - edges[0])
        return np.array([kernel[k - middle + reach] if abs(k - middle) <= reach else 0 for k in range(num)])

    point = np.zeros(native.image_shape, np.float32)
    point[2, 4, 5] = 1
    axes = [weights(VOXEL_MM[2 - k], native.image_shape[k], (2, 4, 5)[k]) for k in range(3)]
    blurred = np.einsum("i,j,k->ijk", *axes).astype(np.float32)
    op = make_operator(scanner, "native", store=False, psf_mm=5.0)
    expected = native @ blurred
    # The Gaussian beyond four standard deviations, where the kernel is cut, weighs 6e-5.
    np.testing.assert_allclose(op @ point, expected, atol=2e-4 * expected.max())


def test_correspondence_of_a_point(scanner):
    op = make_operator(scanner, "cpu", mode="sampled", rays=4, store=False)
    seen = op.correspondence((5.0, 0.0, 2.0), module=6)  # the farther side
    assert seen.module.shape == (4 * 4, 4 * 6)
    assert seen.weight.max() > 0 and (seen.weight[seen.module < 0] == 0).all()
    assert seen._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(IndexError, match="no module 24"):
        op.correspondence((0, 0, 0), module=24)


def test_threads_take_turns(native, activity):
    y, results, errors, turns = native @ activity, [], [], 4 if SLOWER == 1 else 2

    def work():
        try:
            results.extend(native @ activity for _ in range(turns))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 4 * turns
    assert all((one == y).all() for one in results)


def test_other_threads_run_meanwhile():
    grid = (12, 12, 4) if SLOWER == 1 else (8, 8, 4)
    op = lr.Operator(lr.Scanner("ge-explore-vista-dr"), grid, 1.5, backend="native", store=False)
    x, out = np.ones(op.image_shape, np.float32), np.empty(op.data_shape, np.float32)
    done, turns = threading.Event(), [0]

    def count():
        while not done.is_set():
            turns[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    op.forward(x, out=out)
    before, start = turns[0], time.perf_counter()
    op.forward(x, out=out)
    seconds, after = time.perf_counter() - start, turns[0]
    done.set()
    thread.join()
    # A step of the other thread takes 1 ms or more on busy processors. If the lock were held, it would make no step.
    assert after - before > 20 * seconds


def test_progress_and_messages(scanner, caplog):
    told = []
    with caplog.at_level(logging.DEBUG, "loraster"):
        op = lr.Operator(
            scanner, GRID, VOXEL_MM, backend="cpu", store=True, progress=lambda *report: told.append(report)
        )
    assert told and all(0 <= done <= total for _, done, total in told)
    assert op.info["stored"] and op.info["num_elements"] > 0
    with caplog.at_level(logging.WARNING, "loraster"):
        layered = lr.Scanner.ring(
            radius_mm=50, modules=12, crystals=(4, 2), pitch_mm=4, depth_mm=20, layers_mm=(10, 10)
        )
        lr.Operator(layered, (4, 4, 2), 4.0, backend="native", store=False)
    assert any("LYSO is assumed" in record.message for record in caplog.records)


def calls_of(op):
    """Each long call of an operator, given what it tells its progress to."""
    x, y = np.ones(op.image_shape, np.float32), np.ones(op.data_shape, np.float32)
    return [
        lambda progress: op.forward(x, progress=progress),
        lambda progress: op.adjoint(y, progress=progress),
        lambda progress: op.subset(0, 2).sensitivity(progress=progress),
        lambda progress: lr.recon.mlem(op, y, iterations=1, progress=progress),
    ]


def test_each_call_has_its_own_progress(native):
    for call in calls_of(native):
        told = []
        call(lambda *report: told.append(report))
        assert told and all(0 <= done <= total for _, done, total in told)
        before = len(told)
        call(None)
        assert len(told) == before


def test_progress_is_a_bar_or_lines(native, monkeypatch, capsys):
    call = calls_of(native)[0]
    pytest.importorskip("tqdm")
    call(True)
    assert "projecting forward:" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(_progress, "_LINES_S", 0.0)
    call(True)
    assert re.match(r"projecting forward: \d+ %\n", capsys.readouterr().err)


def test_long_work_that_nobody_listens_to_is_told_of_once(scanner, monkeypatch, caplog):
    op = make_operator(scanner, "native", store=False)
    monkeypatch.setattr(_progress, "PATIENCE_S", 0.0)
    call = calls_of(op)[0]
    with caplog.at_level(logging.WARNING, "loraster"):
        call(False)
        call(lambda *report: None)
        assert not caplog.records
        call(None)
        call(None)
    assert [record.message.partition(":")[0] for record in caplog.records] == ["projecting forward"]
    assert "progress=True" in caplog.text


def test_a_call_hears_of_the_sensitivity_of_another_operator(scanner, rng):
    """B has A's sensitivity, which A makes during a call of B's: that one's listener stops it."""
    lors = np.flatnonzero(scanner.lor_of(scanner.lor_crystals()) >= 0)
    events = lr.ListMode(scanner, crystals=scanner.lor_crystals(rng.choice(lors, 500)))
    first = lr.Operator.of_events(events, GRID, VOXEL_MM, backend="native")
    second = lr.Operator.of_events(events, GRID, VOXEL_MM, backend="native", sensitivity_of=first)

    def stop(what, done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        second.sensitivity(progress=stop)
    told = []
    np.testing.assert_array_equal(first.sensitivity(progress=lambda *report: told.append(report)), second.sensitivity())
    assert told


def test_the_matrix_is_kept_where_many_projections_pay(scanner):
    op = make_operator(scanner, "native")
    assert op.info["stored"] and "kept" in repr(op)
    once = make_operator(scanner, "native", projections=1)
    for other in (once, make_operator(scanner, "native", max_memory_bytes=1000)):
        assert not other.info["stored"] and "kept" not in repr(other)
    x = np.ones(op.image_shape, np.float32)
    # A kept element is rounded to 6e-8 of itself.
    np.testing.assert_allclose(op @ x, once @ x, rtol=5e-6)
    assert not make_operator(scanner, "compute", mode="exact").info["stored"]


def test_tilted_modules_go_to_a_backend_that_can(scanner):
    out = np.array([[1, 0.1, 0.2], [-1, -0.1, -0.25]])
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    along = np.cross([0, 0, 1], out)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    tilted = lr.Scanner.from_arrays(50 * out, -out, along, crystals=(4, 4), pitch=4, depth=15)
    with pytest.raises(ValueError, match="use backend cpu, or compute on a graphics processor"):
        lr.Operator(tilted, (4, 4, 4), 2.0, backend="native")
    op = lr.Operator(tilted, (4, 4, 4), 2.0, backend=None, samples=1)
    assert op.info["backend"] in ("compute", "cpu")
    assert (op @ np.ones(op.image_shape, np.float32)).max() > 0


def test_penetration_is_of_sampled_mode(scanner):
    with pytest.raises(ValueError, match="penetra"):
        lr.Operator(scanner, GRID, VOXEL_MM, backend="native", mode="exact", penetration=True)
    op = lr.Operator(scanner, GRID, VOXEL_MM, backend="native", samples=1, penetration=True, projections=1)
    assert op.info["mode"] == "sampled" and op.info["penetration"]


def test_a_listener_that_raises_ends_the_work(scanner):
    def stop(what, done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        lr.Operator(scanner, GRID, VOXEL_MM, backend="cpu", store=True, progress=stop)


def test_direct_operators(rng):
    op = lr.Operator.direct((32, 32, 12), 4.0, views=lr.direct.views(4, 1), tof_ps=200, backend="cpu")
    assert op.data_shape == (4, 12, 32, 32)
    x = rng.random(op.image_shape, np.float32)
    y = rng.random(op.data_shape, np.float32)
    assert np.vdot((op @ x).astype(np.float64), y) == pytest.approx(np.vdot(x.astype(np.float64), op.T @ y), rel=2e-6)
    part = op.subset(1, 2)
    np.testing.assert_array_equal(part @ x, (op @ x)[part.indices])
    with pytest.raises(ValueError, match="correspondence images"):
        op.correspondence((0, 0, 0), 0)


def test_a_scanner_of_other_rules_has_other_lors(scanner):
    assert make_scanner(field_of_view_mm=20).num_lors < scanner.num_lors
