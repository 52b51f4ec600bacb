# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Operators in PyTorch's networks: gradients by the adjoint, batches, subsets.

    projector = loraster.torch.Projector(operator)
    loss = torch.nn.functional.poisson_nll_loss(projector(network(y)), y, log_input=False)
    loss.backward()

The gradient of A x is A^T, in every backend the transpose to rounding; gradients of gradients, forward-mode gradients
and torch.func.vmap work, too. In torch.compile a projection is a break of the graph: what stands before and behind it
is compiled. Worker processes that are forked, as DataLoader's are, may project with the backends "native" and "cpu"; an
operator cannot be sent to a process that is started anew, but made there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

import torch

from .operator import Operator

__all__ = ["Projector"]


def _apply(operator: Operator, x: torch.Tensor, transposed: bool) -> torch.Tensor:
    """A or A^T of each of the arrays that x holds along its leading dimensions."""
    image, data = operator.image_shape, operator.data_shape
    given: tuple[int, ...] = data if transposed else image
    made: tuple[int, ...] = image if transposed else data
    batch = x.shape[: max(x.ndim - len(given), 0)]
    if tuple(x.shape[len(batch) :]) != given:
        kind = "data" if transposed else "images [nz][ny][nx]"
        raise ValueError(
            f"x has the shape {tuple(x.shape)}, and (..., {str(given)[1:]} is wanted: {kind} behind the batch"
        )
    x = x.detach().contiguous()
    result = torch.empty((*batch, *made), dtype=x.dtype, device=x.device)
    call = operator.adjoint if transposed else operator.forward
    for one, out in zip(x.reshape(-1, *given), result.view(-1, *made)):
        call(one, out=out)
    return result


if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def _not_compiled(method: Method) -> Method: ...

else:
    _not_compiled = torch.compiler.disable


class _Projection(torch.autograd.Function):
    """A x or A^T y, linear in its first argument."""

    @staticmethod
    def forward(x: torch.Tensor, operator: Operator, transposed: bool) -> torch.Tensor:
        return _apply(operator, x, transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.operator, ctx.transposed = inputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _Projection.apply(gradients[0], ctx.operator, not ctx.transposed), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return _Projection.apply(tangents[0], ctx.operator, ctx.transposed)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: torch.Tensor, operator: Operator, transposed: bool) -> Any:
        return _Projection.apply(x.movedim(in_dims[0], 0), operator, transposed), 0


class Projector(torch.nn.Module):
    """A projector as a module: projector(x) is A x, projector.adjoint(y) is A^T y, both with gradients.

    x: [..., nz, ny, nx], y: [..., num_lors] (or the shape of the operator's data) with any leading dimensions, float32,
    with the operator's backend "cpu" float64 as well, on the host or on the device on which the operator computes.
    Results have the same type and device. The module has no parameters; .to() does not move the operator. Copies of a
    network share it.
    """

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.operator = operator

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(nz, ny, nx)"""
        return self.operator.image_shape

    @property
    def data_shape(self) -> tuple[int, ...]:
        return self.operator.data_shape

    @_not_compiled
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = _Projection.apply(x, self.operator, False)
        return projected

    @_not_compiled
    def adjoint(self, y: torch.Tensor) -> torch.Tensor:
        image: torch.Tensor = _Projection.apply(y, self.operator, True)
        return image

    def sensitivity(self, device: Optional[torch.device | str] = None) -> torch.Tensor:
        """A^T 1, float32 [nz][ny][nx]; on the host, or on the operator's device."""
        image: torch.Tensor = self.operator.sensitivity(torch.empty(self.image_shape, device=device))
        return image

    def subset(self, k: int, n: int) -> Projector:
        """Subset k of n as a projector, of the data at projector.subset(k, n).operator.indices."""
        return Projector(self.operator.subset(k, n))

    def extra_repr(self) -> str:
        return repr(self.operator)

    def __deepcopy__(self, memo: dict[int, Any]) -> Projector:
        return Projector(self.operator)
