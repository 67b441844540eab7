"""ParallelExecutor, as older scripts of Fluid write it: a CompiledProgram with its Executor."""

from penstock.fluid import core, executor, framework
from penstock.fluid.compiler import BuildStrategy, CompiledProgram

__all__ = ['ParallelExecutor']


class ParallelExecutor:
    """Runs one program on this process's device, together with other trainers if there are some.

        exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, num_trainers=2, trainer_id=rank)
        loss_value, = exe.run(fetch_list=[loss.name], feed={'x': x, 'y': y})

    Args:
        use_cuda: False; there are no GPUs.
        loss_name: must be given if the program has a backward part.
        main_program: what is run; the default main program.
        share_vars_from: a ParallelExecutor that has run; variables are those of the scope in any case.
        num_trainers, trainer_id: instead of those of build_strategy, where num_trainers is not 1.
        scope: where variables are; the global one.
    """

    def __init__(self, use_cuda, loss_name=None, main_program=None, share_vars_from=None, exec_strategy=None,
                 build_strategy=None, num_trainers=1, trainer_id=0, scope=None):
        if use_cuda:
            raise NotImplementedError('ParallelExecutor: programs run on CPUs only; use_cuda must be False')
        build_strategy = build_strategy or BuildStrategy()
        if num_trainers != 1:
            build_strategy.num_trainers, build_strategy.trainer_id = num_trainers, trainer_id
        program = framework.default_main_program() if main_program is None else main_program
        shared = None if share_vars_from is None else share_vars_from._compiled
        self._compiled = CompiledProgram(program).with_data_parallel(
            loss_name=loss_name, build_strategy=build_strategy, exec_strategy=exec_strategy, share_vars_from=shared)
        self._scope = executor.global_scope() if scope is None else scope
        self._executor = executor.Executor(core.CPUPlace())

    @property
    def device_count(self):
        """How many devices this process uses."""
        return 1

    def batches(self, feeds):
        """This trainer's feeds, until those of all trainers have ended, as CompiledProgram.batches."""
        return self._compiled.batches(feeds)

    def run(self, fetch_list, feed=None, feed_dict=None, return_numpy=True):
        """As Executor.run; feed_dict is an older name of feed."""
        return self._executor.run(self._compiled, feed=feed_dict if feed is None else feed, fetch_list=fetch_list,
                                  scope=self._scope, return_numpy=return_numpy)
