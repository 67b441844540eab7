"""Programs whose gradients ranks exchange, and the values that ranks begin with."""

import numpy

from penstock import _penstock
from penstock._errors import program_error, state_error
from penstock.fluid import core, framework
from penstock.fluid.executor import global_scope
from penstock.fluid.optimizer import Optimizer
from penstock.hvd._arrays import Adasum, Average, Sum, broadcast_async_, synchronize
from penstock.hvd._job import the_job
from penstock.hvd.compression import Compression

_REDUCTIONS = {Average: 'mean', Sum: 'sum', Adasum: 'adasum'}


def DistributedOptimizer(optimizer, compression=Compression.none, op=Average, backward_passes_per_step=1):
    """An optimizer whose minimize() makes a program of which each rank runs its part of the batch.

    optimizer    one of fluid.optimizer; its learning rate is taken as it is (see scale_learning_rate)
    compression  Compression.fp16: dense gradients are exchanged in half precision
    op           what becomes of the gradients of all ranks: their mean (Average), Sum, or Adasum, which takes 2, 4, 8,
                 ... ranks and dense gradients. Horovod's Adasum combines what the optimizer makes of gradients
    backward_passes_per_step  so many runs of the program are one step: gradients of all but the last are kept, those of
                 all are added, exchanged and applied in the last. Dense gradients; a learning-rate schedule counts runs

    Clipping, regularization and updates see the reduced gradient, so all ranks keep the same parameters. The start-up
    program joins the ranks and gives all of them rank 0's values. Exchanges run beside the backward pass.

        optimizer = hvd.DistributedOptimizer(fluid.optimizer.Momentum(hvd.scale_learning_rate(0.1), 0.9))
        optimizer.minimize(loss)
        exe.run(fluid.default_startup_program())
        loss_value, = exe.run(feed=my_part, fetch_list=[loss])    # this rank's own

    Raises: penstock.StateError E-hvd-init; penstock.ProgramError E-hvd-op (arguments); and, of minimize(),
    E-parallel-twice (the program exchanges gradients already), E-parallel-adasum, E-parallel-accumulate.
    """
    job = the_job('DistributedOptimizer')
    if not isinstance(optimizer, Optimizer):
        raise TypeError('hvd.DistributedOptimizer takes an optimizer, not %s' % type(optimizer).__name__)
    if op not in _REDUCTIONS:
        raise program_error('E-hvd-op', 'hvd.DistributedOptimizer: op is %r; it must be hvd.Average, Sum or Adasum' %
                            (op,))
    if compression not in (Compression.none, Compression.fp16):
        raise program_error('E-hvd-op', 'hvd.DistributedOptimizer: compression is %r; programs know '
                            'hvd.Compression.none and hvd.Compression.fp16' % (compression,))
    runs = backward_passes_per_step
    if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs < 2**31:
        raise program_error('E-hvd-op', 'hvd.DistributedOptimizer: backward_passes_per_step is %r; it must be an '
                            'integer from 1' % (runs,))
    return _DistributedOptimizer(optimizer, job, _REDUCTIONS[op], compression is Compression.fp16, runs)


class _DistributedOptimizer:

    def __init__(self, optimizer, job, reduction, halved, runs):
        self._optimizer, self._job = optimizer, job
        self._reduction, self._halved, self._runs = reduction, halved, runs

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """As the optimizer's; the loss's program, and the start-up program, become this rank's."""
        main = loss.block.program
        startup = framework.default_startup_program() if startup_program is None else startup_program
        made = self._optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        if len(self._job.addresses) > 1 or self._runs > 1:
            ranked = _penstock.data_parallel(main.desc, self._job.addresses, self._job.rank, 1, self._reduction,
                                             halved=self._halved, startup=startup.desc, runs_per_update=self._runs)
            main._rebind(ranked[0])
            startup._rebind(ranked[1])
        return made


def _tensor(name):
    variable = global_scope().find_var(name)
    if variable is None or not variable.is_initialized():
        raise state_error('E-hvd-value',
                          'hvd: %s has no value in the global scope yet; run the start-up program first' % name)
    return variable.get_tensor()


def _give_variables(names, root_rank):
    """All ranks get the root's values of variables of the global scope."""
    rank = the_job('broadcast_parameters').rank
    tensors = [(name, _tensor(name)) for name in names]
    arrays = [numpy.array(tensor) for _, tensor in tensors]
    handles = [broadcast_async_(array, root_rank, name) for (name, _), array in zip(tensors, arrays)]
    for (_, tensor), array, handle in zip(tensors, arrays, handles):
        synchronize(handle)
        if rank != root_rank:
            tensor.set(array)


def _is_state(variable):
    return variable.persistable and variable.type == core.VarType.LOD_TENSOR


def broadcast_parameters(params, root_rank):
    """All ranks get the values of rank root_rank, by name.

    params  a dict or a list of (name, array): arrays that are changed in place; or a Program: its persistable tensors
            in the global scope, which the start-up program has filled or a file. All ranks give the same names

        if hvd.rank() == 0:
            fluid.io.load_persistables(exe, 'model')
        hvd.broadcast_parameters(fluid.default_main_program(), root_rank=0)
    """
    the_job('broadcast_parameters')
    if isinstance(params, framework.Program):
        names = sorted(v.name for v in params.global_block().vars.values() if _is_state(v))
        return _give_variables(names, root_rank)
    pairs = sorted(params.items()) if isinstance(params, dict) else list(params)
    for name, array in pairs:
        if not isinstance(array, numpy.ndarray):
            raise TypeError('hvd.broadcast_parameters: %s must be a numpy array, not %s' % (name, type(array).__name__))
    for handle in [broadcast_async_(array, root_rank, str(name)) for name, array in pairs]:
        synchronize(handle)


def broadcast_optimizer_state(optimizer, root_rank):
    """All ranks get rank root_rank's state of an optimizer whose minimize() was called: its moments and their kin, and
    its learning rate, in the global scope."""
    the_job('broadcast_optimizer_state')
    rates = [variable.name for variable in optimizer._learning_rate_map.values()]
    names = sorted({*optimizer.get_opti_var_name_list(), *rates})
    _give_variables([name for name in names if global_scope().find_var(name) is not None], root_rank)

