# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""PyTorch: gradients by the adjoint, batches, subsets, compiled and forked."""

import copy, subprocess, sys, warnings

import numpy as np
import pytest

import loraster as lr
from conftest import make_operator

torch = pytest.importorskip("torch")
from loraster.torch import Projector  # noqa: E402


@pytest.fixture(scope="module")
def projector(native):
    return Projector(native)


@pytest.fixture(scope="module")
def small():
    """An operator in double precision of few numbers."""
    scanner = lr.Scanner.ring(radius_mm=30, modules=6, crystals=(2, 2), pitch_mm=8, depth_mm=10)
    return Projector(lr.Operator(scanner, (3, 3, 2), 6.0, backend="cpu"))


def tensor(rng, shape, dtype=np.float32):
    return torch.from_numpy(rng.random(shape).astype(dtype))


def test_projections_are_those_of_the_operator(each, rng):
    projector = Projector(each)
    x, y = tensor(rng, each.image_shape), tensor(rng, each.data_shape)
    torch.testing.assert_close(projector(x), each @ x, rtol=1e-6, atol=0)
    torch.testing.assert_close(projector.adjoint(y), each.T @ y, rtol=2e-6, atol=0)
    np.testing.assert_allclose(projector.sensitivity().numpy(), each.sensitivity(), rtol=2e-6)
    assert not list(projector.parameters()) and not projector.state_dict()


def test_gradients_in_double(small, rng):
    """Numerical derivatives, first and second, forward and backward mode, and over a batch."""
    x = tensor(rng, (2, *small.image_shape), np.float64).requires_grad_()
    y = tensor(rng, (1, *small.data_shape), np.float64).requires_grad_()
    assert torch.autograd.gradcheck(small, x, check_forward_ad=True)
    assert torch.autograd.gradcheck(small.adjoint, y, check_forward_ad=True)
    # The second derivatives of a Poisson likelihood are not zero, although the projection is linear.
    counts = torch.poisson(100 * small(x).detach())
    assert torch.autograd.gradgradcheck(
        lambda x: (small(x) - counts * torch.log(small(x) + 0.01)).sum(), x[:1].detach().requires_grad_()
    )


def test_the_gradient_is_the_adjoint(each, rng):
    projector = Projector(each)
    x = tensor(rng, each.image_shape).requires_grad_()
    weights = tensor(rng, each.data_shape)
    (weights * projector(x)).sum().backward()
    torch.testing.assert_close(x.grad, each.T @ weights, rtol=2e-6, atol=0)
    x.grad = None
    projector(x).sum().backward()  # the gradient of a sum is one number that is repeated
    np.testing.assert_allclose(x.grad.numpy(), each.sensitivity(), rtol=5e-6)


def test_batches(projector, rng):
    x = tensor(rng, (2, 3, *projector.image_shape))
    y = projector(x)
    assert y.shape == (2, 3, *projector.data_shape)
    for i, j in np.ndindex(2, 3):
        torch.testing.assert_close(y[i, j], projector(x[i, j]), rtol=0, atol=0)
    assert projector(x[:0]).shape == (0, 3, *projector.data_shape)
    torch.testing.assert_close(projector(x.transpose(0, 1)), y.transpose(0, 1), rtol=0, atol=0)
    torch.testing.assert_close(torch.func.vmap(projector, in_dims=1)(x), y.transpose(0, 1), rtol=0, atol=0)


def test_what_does_not_fit(projector):
    nz, ny, nx = projector.image_shape
    with pytest.raises(ValueError, match=rf"shape \(2, {nx}\), and \(\.\.\., {nz}, {ny}, {nx}\) is wanted: images"):
        projector(torch.zeros(2, nx))
    with pytest.raises(ValueError, match="is wanted: data behind the batch"):
        projector.adjoint(torch.zeros(projector.image_shape))
    with pytest.raises(TypeError, match=r"float64.*float32 is wanted"):
        projector(torch.zeros(projector.image_shape, dtype=torch.float64))


def test_subsets_add_up(projector, rng):
    x = tensor(rng, projector.image_shape).requires_grad_()
    whole = projector(x)
    for k in range(4):
        part = projector.subset(k, 4)
        torch.testing.assert_close(part(x), whole[torch.from_numpy(part.operator.indices)], rtol=5e-6, atol=1e-9)
    sum(projector.subset(k, 4)(x).sum() for k in range(4)).backward()
    np.testing.assert_allclose(x.grad.numpy(), projector.operator.sensitivity(), rtol=5e-6)


def test_a_network_learns(projector, activity):
    """One unrolled step of MLEM whose step size is learned: the loss falls."""
    truth = torch.from_numpy(np.asarray(activity, np.float32))[None]
    y, sensitivity = projector(truth), projector.sensitivity()
    power = torch.nn.Parameter(torch.tensor(0.2))
    optimizer = torch.optim.SGD([power], lr=0.5)
    x = torch.full_like(truth, float(truth.mean()))
    losses = []
    for _ in range(5):
        update = projector.adjoint(y / (projector(x) + 1e-9)) / (sensitivity + 1e-9)
        loss = torch.mean((x * (update + 1e-6) ** power - truth) ** 2) / torch.mean(truth**2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert all(later < earlier for earlier, later in zip(losses, losses[1:]))


def test_copies_share_the_operator(projector):
    network = torch.nn.Sequential(projector, torch.nn.Linear(1, 1))
    assert copy.deepcopy(network)[0].operator is projector.operator
    with pytest.raises(TypeError, match="cannot be pickled"):
        import pickle

        pickle.dumps(projector)


def test_compiled_code_breaks_around_a_projection(projector, rng):
    x = tensor(rng, projector.image_shape)

    def model(x):
        return torch.sin(projector(2 * x))

    torch._dynamo.reset()
    explanation = torch._dynamo.explain(model)(x)
    assert explanation.graph_count == 2 and explanation.graph_break_count == 1
    compiled = torch.compile(model, backend="aot_eager")
    given, plain = x.clone().requires_grad_(), x.clone().requires_grad_()
    torch.testing.assert_close(compiled(given), model(plain))
    compiled(given).sum().backward()
    model(plain).sum().backward()
    torch.testing.assert_close(given.grad, plain.grad)


class Simulated(torch.utils.data.Dataset):
    """Pairs of an image and its projection, made when they are asked for."""

    def __init__(self, projector):
        self.projector = projector

    def __len__(self):
        return 4

    def __getitem__(self, index):
        image = torch.rand(self.projector.image_shape, generator=torch.Generator().manual_seed(index))
        return image, self.projector(image)


@pytest.mark.parametrize("backend", ["native", "cpu"])
def test_forked_workers_project(scanner, backend):
    projector = Projector(make_operator(scanner, backend))
    dataset = Simulated(projector)
    first = dataset[0]  # the parent's threads have worked before the fork
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks of processes with threads
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=2, num_workers=2, timeout=60, multiprocessing_context="fork"
        )
        images, data = zip(*loader)
    torch.testing.assert_close(torch.cat(images)[0], first[0])
    torch.testing.assert_close(torch.cat(data), projector(torch.cat(images)), rtol=0, atol=0)


def test_triton_may_come_after_opengl(scanner):
    """Mesa shares its LLVM with what is loaded later, and Triton has another one."""
    pytest.importorskip("triton")
    make_operator(scanner, "compute", samples=1)
    code = ("import loraster as lr\n"
            "op = lr.Operator(lr.Scanner('two-opposed-modules'), (4, 4, 4), 2.0, backend='compute')\n" "import triton")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
