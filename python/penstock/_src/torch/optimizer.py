"""DistributedOptimizer: trains a PyTorch model on several workers, through a key-value store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error, state_error
from penstock._src.kv import optimizer as optimizers
from penstock._src.torch.embedding import Embedding
from penstock._src.torch.library import torch
from penstock._src.torch.parameters import Parameters

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.kv.store import KVStore
    from penstock._src.torch.parameters import Part


class DistributedOptimizer:
    """Trains a model on several workers. Gradients are pushed to a store during the backward pass; new parameters are
    pulled before the next forward pass.

    All workers begin with the parameters of rank 0. A gradient is pushed as soon as the backward pass has completed it.
    `step` begins to pull the new parameters, in the order in which modules own them, and returns. The next
    forward pass of the model waits for them. To read parameters before, call `synchronize`.

    Who updates the parameters depends on `optimizer`:

    * a name, or an optimizer of the store: the store does. Pushed gradients are summed over the workers and divided by
      their number, so a loss that is the mean over the worker's batch trains as one worker with the joined batch does.
    * an optimizer of PyTorch: each worker does, with the mean of all workers' gradients. The store must be synchronous.

    Rows of penstock.torch.Embedding modules are updated by the optimizers of their tables: `step` pushes their
    gradients.

    Buffers of the model, such as the running means of batch normalization, are not exchanged.

    Args:
        kv (penstock.kv.KVStore): a store of any type; the keys are the names of the parameters.
        model (torch.nn.Module): its parameters are dense and in main memory.
        optimizer (str | penstock.kv.optimizer.Optimizer | torch.optim.Optimizer): see above; a name of
            penstock.kv.optimizer.create.
        backward_passes_per_step (int): the number of backward passes before each `step`; their gradients are summed.
        overlap_forward (bool): each module waits for its own parameters before its forward pass, instead of the model
            for all. Only for models in which no module uses a parameter of another module.
        **args (object): arguments of the named optimizer; `rescale_grad` is 1 / the number of workers unless given.

    Raises:
        TypeError: an argument is of another type.
        penstock.ProgramError: E-torch-parameter: a parameter is not in main memory, or not contiguous; E-torch-store:
            an optimizer of PyTorch with an asynchronous store; errors of the store and its optimizer.

    Example:
        import torch
        kv = penstock.kv.create('local')
        model = torch.nn.Linear(4, 1)
        optimizer = penstock.torch.DistributedOptimizer(kv, model, 'sgd', learning_rate=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).mean().backward()
            optimizer.step()
        optimizer.synchronize()
    """

    def __init__(
        self,
        kv: KVStore,
        model: torch.nn.Module,
        optimizer: str | optimizers.Optimizer | torch.optim.Optimizer = "sgd",
        *,
        backward_passes_per_step: int = 1,
        overlap_forward: bool = False,
        **args: Any,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"penstock.torch: model must be a torch.nn.Module, not {type(model).__name__}")
        passes = backward_passes_per_step
        if isinstance(passes, bool) or not isinstance(passes, int) or passes < 1:
            raise TypeError(f"penstock.torch: backward_passes_per_step is {passes!r}; it must be an integer from 1")
        self._kv, self._passes = kv, passes
        self._own = optimizer if isinstance(optimizer, torch.optim.Optimizer) else None
        if self._own is not None and (args or "async" in kv.type):
            raise _refused(kv, args)
        self._embeddings = [module for module in model.modules() if isinstance(module, Embedding)]
        self._parameters = Parameters(kv, model)
        if self._own is None:
            kv.set_optimizer(_of_store(kv, optimizer, args))
        else:
            self._parameters.add_gradients()
        kv.barrier()  # no push before all workers have set the optimizer
        for part in self._parameters.trained:
            part.parameter.register_post_accumulate_grad_hook(self._pusher(part))
        self._parameters.await_before_forward(model, overlap_forward)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of the model's parameters.

        Args:
            set_to_none (bool): as for torch.optim.Optimizer.zero_grad.
        """
        for embedding in self._embeddings:
            embedding.zero_grad()
        for part in self._parameters.trained:
            gradient = part.parameter.grad
            if gradient is None:
                continue
            if set_to_none:
                part.parameter.grad = None
            else:
                gradient.detach_().zero_()

    def step(self) -> None:
        """Ends a step, and begins to pull the new parameters.

        In a synchronous store, a parameter without a gradient counts as one whose gradient is zero.

        Raises:
            penstock.StateError: E-torch-step: a parameter had fewer backward passes than backward_passes_per_step.
            penstock.PeerError: another process of the job is gone.
        """
        for part in self._parameters.trained:
            if 0 < part.passes < self._passes:
                raise state_error(
                    "E-torch-step",
                    f"penstock.torch: step() after {part.passes} backward passes of {part.name}; "
                    f"backward_passes_per_step is {self._passes}",
                )
        for part in self._parameters.trained:
            if part.passes == 0 and "async" not in self._kv.type:
                self._parameters.push(part, torch.zeros_like(part.parameter))
            part.passes = 0
        for embedding in self._embeddings:
            embedding.step()
        if self._own is None:
            self._parameters.begin_pulls()
        else:
            self._parameters.take_gradients()
            self._own.step()

    def synchronize(self) -> None:
        """Waits until the parameters are those after the last step.

        Raises:
            penstock.ProgramError: the store has refused a gradient.
            penstock.PeerError: another process of the job is gone.
        """
        self._parameters.wait_for_all()

    def _pusher(self, part: Part) -> Any:  # a hook
        def push(parameter: torch.Tensor) -> None:
            part.passes += 1
            if part.passes > self._passes:
                raise state_error(
                    "E-torch-step",
                    f"penstock.torch: backward pass {part.passes} of {part.name} without a step(); "
                    f"backward_passes_per_step is {self._passes}",
                )
            if part.passes == self._passes and parameter.grad is not None:
                self._parameters.push(part, parameter.grad)

        return push


def _of_store(kv: KVStore, optimizer: object, args: dict[str, Any]) -> optimizers.Optimizer:
    if isinstance(optimizer, str):
        return optimizers.create(optimizer, **{"rescale_grad": 1.0 / kv.num_workers, **args})
    if isinstance(optimizer, optimizers.Optimizer) and not args:
        return optimizer
    raise TypeError(
        "penstock.torch: optimizer is a name with its arguments, what penstock.kv.optimizer.create() returns, or an "
        f"optimizer of PyTorch, not {type(optimizer).__name__}{' with arguments' if args else ''}"
    )


def _refused(kv: KVStore, args: dict[str, Any]) -> Exception:
    if args:
        return TypeError(f"penstock.torch: {', '.join(args)}: an optimizer of PyTorch has its own arguments")
    return program_error(
        "E-torch-store",
        f"penstock.torch: a store of type {kv.type} applies each gradient by itself, so an optimizer of PyTorch would "
        "not see the mean of all workers",
        "give the name of an optimizer of the store, or a synchronous store",
    )
