"""Programs whose gradients ranks exchange, and the initial values of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, program_error, state_error
from penstock._src.base.same_arguments import arguments_of
from penstock._src.executor.scopes import global_scope
from penstock._src.hvd import ranked_programs
from penstock._src.hvd.broadcast import broadcast_async_
from penstock._src.hvd.compression import Compression
from penstock._src.hvd.handles import synchronize
from penstock._src.hvd.job import the_job
from penstock._src.hvd.operations import Adasum, Average, Sum
from penstock._src.hvd.process_sets import global_process_set
from penstock._src.hvd.tensors import is_tensor
from penstock._src.hvd.texts import ARRAYS
from penstock._src.ir import framework
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType
from penstock._src.mixed_precision.decorator import OptimizerWithMixedPrecision
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from penstock._penstock import LoDTensor
    from penstock._src.hvd.compression import Method
    from penstock._src.hvd.job import Job
    from penstock._src.hvd.process_sets import ProcessSet
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


_NO_RANK = "localhost:1"  # the address of a rank that is not there
_REDUCTIONS = {Average: "mean", Sum: "sum", Adasum: "adasum"}


@with_texts(ARRAYS)
def DistributedOptimizer(
    optimizer: Optimizer,
    compression: Method = Compression.none,
    op: object = Average,
    backward_passes_per_step: int = 1,
    named_parameters: object = None,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Sequence[Any] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> _DistributedOptimizer:
    """Wraps an optimizer so that `minimize` makes a program in which each rank trains on its part of the batch.

    Clipping, regularization and updates use the reduced gradient, so all ranks keep the same parameters. The startup
    program joins the ranks and sends the values of rank 0 to all. Exchanges overlap with the backward pass.

    `backward` returns reduced gradients, so that a program may change them before `apply_gradients`, or compute its own
    update from them. A process may wrap any number of optimizers, for one program or several, with one startup program
    or several, each with arguments of its own.

    Args:
        optimizer (Optimizer): its learning rate is not scaled; see `scale_learning_rate`.
        compression (Compression): Compression.fp16 exchanges dense gradients in half precision.
        op (object): the reduction of the gradients: Average, Sum, or Adasum, which needs 2, 4, 8, ... ranks and dense
            gradients. Horovod's Adasum combines updates; this one combines gradients, as the paper does.
        backward_passes_per_step (int): the number of runs of the program in one step. Their gradients are summed, then
            exchanged and applied in the last run. A learning-rate schedule counts runs. Above 1, `minimize` must add
            the update.
        named_parameters (object): accepted for Horovod's scripts: a program knows its parameters.
        gradient_predivide_factor (float): must be 1: a mean is divided once.
        num_groups (int): accepted for Horovod's scripts: small gradients are exchanged together.
        groups (list | None): as `num_groups`.
        sparse_as_dense (bool): accepted for Horovod's scripts: sparse gradients are exchanged as rows, with the same
            result.
        process_set (ProcessSet): must be the set of all ranks.

    Returns:
        An optimizer.

    Raises:
        NotImplementedError: `gradient_predivide_factor` or `process_set` is given.
        penstock.StateError: `init` has not been called (E-hvd-init).
        penstock.ProgramError: an argument is wrong (E-hvd-op); from minimize: the program already exchanges these
            gradients (E-parallel-twice), or does not support the setting (E-parallel-adasum, E-parallel-accumulate).

    {example}
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        optimizer = hvd.DistributedOptimizer(fluid.optimizer.Momentum(hvd.scale_learning_rate(0.1), 0.9))
        optimizer.minimize(loss)
    """
    job = the_job("DistributedOptimizer")
    if not isinstance(optimizer, (Optimizer, OptimizerWithMixedPrecision)):
        raise TypeError(f"hvd.DistributedOptimizer takes an optimizer, not {type(optimizer).__name__}")
    if gradient_predivide_factor != 1.0:
        raise not_built(
            f"hvd.DistributedOptimizer: gradient_predivide_factor={gradient_predivide_factor!r} is not built; "
            "gradients are "
            "divided once, after the sum"
        )
    if process_set is not global_process_set:
        raise not_built(
            "hvd.DistributedOptimizer: programs exchange gradients with all ranks of the job, "
            "not with a process set; start a job of these ranks"
        )
    if op not in _REDUCTIONS:
        raise program_error(
            "E-hvd-op", f"hvd.DistributedOptimizer: op is {op!r}; it must be hvd.Average, Sum or Adasum"
        )
    if compression not in (Compression.none, Compression.fp16):
        raise program_error(
            "E-hvd-op",
            f"hvd.DistributedOptimizer: compression is {compression!r}; programs know "
            "hvd.Compression.none and hvd.Compression.fp16",
        )
    runs = backward_passes_per_step
    if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs < 2**31:
        raise program_error(
            "E-hvd-op", f"hvd.DistributedOptimizer: backward_passes_per_step is {runs!r}; it must be an integer from 1"
        )
    return _DistributedOptimizer(optimizer, job, _REDUCTIONS[op], compression is Compression.fp16, runs)


class _DistributedOptimizer:
    def __init__(self, optimizer: Any, job: Job, reduction: str, halved: bool, runs: int) -> None:
        self._optimizer, self._job = optimizer, job
        self._reduction, self._halved, self._runs = reduction, halved, runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    @arguments_of(Optimizer.minimize)
    def minimize(
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> Any:  # as the optimizer does
        """Minimizes as the optimizer does, then replaces the loss's program and the startup program by those of this
        rank."""
        startup = framework.default_startup_program() if startup_program is None else startup_program
        made = self._optimizer.minimize(loss, startup, *rest, **named)
        self._exchange(loss.block.program, startup)
        return made

    @arguments_of(Optimizer.backward)
    def backward(self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any) -> Any:
        """Adds the backward pass, as the optimizer does, and the exchange of its gradients between ranks."""
        if self._runs > 1:
            raise program_error(
                "E-parallel-accumulate",
                f"hvd.DistributedOptimizer: backward_passes_per_step={self._runs} sums gradients before the update, "
                "which backward() does not know; call minimize()",
            )
        startup = framework.default_startup_program() if startup_program is None else startup_program
        pairs = self._optimizer.backward(loss, startup, *rest, **named)
        self._exchange(loss.block.program, startup)
        return pairs

    def _exchange(self, main: Program, startup: Program) -> None:
        """Adds the exchange of all gradients that ranks do not exchange yet, and of initial values."""
        elastic = self._job.round is not None
        job = the_job("DistributedOptimizer") if elastic else self._job
        addresses = job.addresses
        if elastic and len(addresses) == 1:
            addresses = [*addresses, _NO_RANK]  # a later round may have more ranks
        if len(addresses) > 1 or self._runs > 1:
            ranked = _penstock.data_parallel(
                main.desc,
                addresses,
                job.rank,
                1,
                self._reduction,
                halved=self._halved,
                startup=startup.desc,
                runs_per_update=self._runs,
            )
            main._rebind(ranked[0])
            startup._rebind(ranked[1])
        if elastic:
            ranked_programs.keep(main, startup, job)


def _tensor(name: str) -> LoDTensor:
    variable = global_scope().find_var(name)
    if variable is None or not variable.is_initialized():
        raise state_error(
            "E-hvd-value", f"hvd: {name} has no value in the global scope yet; run the start-up program first"
        )
    return variable.get_tensor()


def _give_variables(names: list[str], root_rank: int) -> None:
    """Broadcasts the root's values of variables of the global scope."""
    rank = the_job("broadcast_parameters").rank
    tensors = [(name, _tensor(name)) for name in names]
    arrays = [numpy.array(tensor) for _, tensor in tensors]
    handles = [broadcast_async_(array, root_rank, name) for (name, _), array in zip(tensors, arrays)]
    for (_, tensor), array, handle in zip(tensors, arrays, handles):
        synchronize(handle)
        if rank != root_rank:
            tensor.set(array)


def _is_state(variable: Variable) -> bool:
    return variable.persistable and variable.type == VarType.LOD_TENSOR


@with_texts(ARRAYS)
def broadcast_parameters(params: Mapping[str, Array] | Program | Sequence[Any], root_rank: int) -> None:
    """Sets the values of all ranks to those of one rank, by name.

    Args:
        params (dict | list | Program): arrays or PyTorch tensors by name, such as `model.state_dict()`, or (name,
            array), which are changed in place; or a Program: its persistable tensors in the global scope. All ranks
            must pass the same names.
        root_rank (int): the rank whose values all ranks receive.

    Raises:
        TypeError: a value is not an array.
        penstock.StateError: a variable has no value yet (E-hvd-value).

    {example}
        weights = {'w': np.ones(3, 'float32')}
        hvd.broadcast_parameters(weights, root_rank=0)
    """
    the_job("broadcast_parameters")
    if isinstance(params, Program):
        names = sorted(v.name for v in params.global_block().vars.values() if _is_state(v))
        _give_variables(names, root_rank)
        return
    pairs = sorted(params.items()) if isinstance(params, dict) else list(params)
    for name, array in pairs:
        if not isinstance(array, numpy.ndarray) and not is_tensor(array):
            raise TypeError(f"hvd.broadcast_parameters: {name} must be a numpy array, not {type(array).__name__}")
    for handle in [broadcast_async_(array, root_rank, str(name)) for name, array in pairs]:
        synchronize(handle)


@with_texts(ARRAYS)
def broadcast_optimizer_state(optimizer: Optimizer, root_rank: int, model: object = None) -> None:
    """Sets the state of an optimizer in the global scope, its moments and learning rate, to that of one rank.

    Args:
        optimizer (Optimizer): its `minimize` has been called.
        root_rank (int): the rank whose state all ranks receive.
        model (object): accepted for Horovod's scripts.

    Raises:
        penstock.StateError: a variable has no value yet (E-hvd-value).

    {example}
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        optimizer = fluid.optimizer.Adam(0.01)
        optimizer.minimize(loss)
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    """
    the_job("broadcast_optimizer_state")
    rates = [variable.name for variable in optimizer._learning_rate_map.values()]
    names = sorted({*optimizer.get_opti_var_name_list(), *rates})
    _give_variables([name for name in names if global_scope().find_var(name) is not None], root_rank)
