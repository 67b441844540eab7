"""The parameters of a PyTorch model as keys of a store: what is pushed, what is pulled, and who waits for it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.torch.library import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from penstock._src.kv.store import KVStore
    from penstock._src.kv.tickets import Ticket

_GRADIENT = "@GRAD"


@dataclasses.dataclass(eq=False)
class Part:
    """A parameter of the model."""

    name: str
    parameter: torch.nn.Parameter
    number: int  # in the order in which modules own them, nearly that of the forward pass
    passes: int = 0  # backward passes since the last step
    pull: Ticket | None = None  # of the value that the next forward pass reads


class Parameters:
    """The parameters of a model. The keys of a store are their names; rank 0 gives the values."""

    def __init__(self, kv: KVStore, model: torch.nn.Module) -> None:
        self._kv = kv
        self._parts = [Part(name, one, number) for number, (name, one) in enumerate(model.named_parameters())]
        for part in self._parts:
            _check(part)
        self.trained = [part for part in self._parts if part.parameter.requires_grad]
        self._of = {part.parameter: part for part in self._parts}
        self._pushed = ""  # ends the names of the keys to which gradients are pushed
        if self._parts:
            values = [part.parameter.detach() for part in self._parts]
            kv.broadcast([part.name for part in self._parts], values, out=values).wait()

    def add_gradients(self) -> None:
        """Adds keys for sums of gradients; the parameters are updated by the workers."""
        self._pushed = _GRADIENT
        if self.trained:
            zeros = [torch.zeros_like(part.parameter) for part in self.trained]
            self._kv.init([part.name + _GRADIENT for part in self.trained], zeros)

    def push(self, part: Part, gradient: torch.Tensor) -> None:
        """Pushes a gradient; of those that wait, what the forward pass needs first goes first."""
        self._kv.push(part.name + self._pushed, gradient.contiguous(), priority=-part.number)

    def begin_pulls(self) -> None:
        """Begins to pull all parameters, in the order in which modules own them: nearly that of the forward pass."""
        for part in self.trained:
            part.pull = self._kv.pull(part.name, out=part.parameter.detach())

    def take_gradients(self) -> None:
        """Replaces the gradients by the mean of all workers', and waits for it."""
        for part in self.trained:
            if part.parameter.grad is None:
                part.parameter.grad = torch.zeros_like(part.parameter)
            part.parameter.grad = part.parameter.grad.contiguous()
        keys = [part.name + _GRADIENT for part in self.trained]
        gradients = [part.parameter.grad for part in self.trained]
        if keys:
            self._kv.pull(keys, out=gradients).wait()
        for gradient in gradients:
            gradient.div_(self._kv.num_workers)

    def wait_for_all(self) -> None:
        """Waits for all parameters that are on their way."""
        for part in self._parts:
            _wait_for(part)

    def await_before_forward(self, model: torch.nn.Module, each_alone: bool) -> None:
        """Makes the forward pass wait: of the model for all parameters, or of each module for its own."""
        for module, parts in self._units(model, each_alone):
            module.register_forward_pre_hook(_waiter(parts))

    def _units(self, model: torch.nn.Module, each_alone: bool) -> Iterator[tuple[torch.nn.Module, list[Part]]]:
        if not each_alone:
            yield model, self._parts
            return
        for module in model.modules():
            own = [self._of[one] for one in module.parameters(recurse=False)]
            if own:
                yield module, own


def _check(part: Part) -> None:
    parameter = part.parameter
    where = parameter.device.type
    if where != "cpu" or parameter.layout != torch.strided or not parameter.is_contiguous():
        how = f"on {where}" if where != "cpu" else "not a contiguous tensor"
        raise program_error(
            "E-torch-parameter",
            f"penstock.torch: parameter {part.name} is {how}; a store exchanges contiguous tensors in main memory",
        )


def _wait_for(part: Part) -> None:
    if part.pull is not None:
        part.pull.wait()
        part.pull = None


def _waiter(parts: list[Part]) -> Any:  # a hook
    def wait(_module: torch.nn.Module, _inputs: object) -> None:
        for part in parts:
            _wait_for(part)

    return wait
