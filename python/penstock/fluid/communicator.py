"""Communicator: sends and receives for programs that were transpiled with runtime_split_send_recv."""

from penstock import _penstock
from penstock.fluid.framework import Program
from penstock.fluid.transpiler.config import DistributedMode

__all__ = ['Communicator']

_MODES = {
    DistributedMode.SYNC: _penstock.CommunicatorMode.SYNC,
    DistributedMode.ASYNC: _penstock.CommunicatorMode.ASYNC,
    DistributedMode.HALF_ASYNC: _penstock.CommunicatorMode.HALF_ASYNC,
    DistributedMode.GEO: _penstock.CommunicatorMode.GEO,
}


class Communicator:
    """Stands between a trainer's program and its parameter servers. A process runs one at a time.

    Example:
        config = fluid.DistributeTranspilerConfig()
        config.sync_mode, config.runtime_split_send_recv, config.completely_not_async = False, True, True
        t = fluid.DistributeTranspiler(config)
        t.transpile(trainer_id, pservers=endpoints, trainers=2, sync_mode=False)
        exe.run(fluid.default_startup_program())
        communicator = Communicator(t.get_trainer_program(), DistributedMode.SYNC)
        communicator.start()
        ...                                   # exe.run(t.get_trainer_program()), as often as there are batches
        communicator.stop()
    """

    def __init__(self, program, mode, kwargs=None, envs=None):
        """
        program  the trainer's. It stays as it is: its recv ops say where parameters may change
        mode     of DistributedMode: SYNC (completely_not_async) or HALF_ASYNC
        kwargs   {'pserver_endpoints': [...], 'trainer_id': n} in mode SYNC; must agree with the program
        envs     {'communicator_max_merge_var_num': '1', ...}, as in Fluid: whole numbers, as text or not

        Raises ValueError for arguments that are wrong or do not fit the program, NotImplementedError for a mode
        that does not run yet.
        """
        if not isinstance(program, Program):
            raise TypeError('Communicator takes the Program of a trainer, not %s' % type(program).__name__)
        if mode not in _MODES:
            raise ValueError('the mode of a Communicator is one of DistributedMode, not %r' % (mode,))
        self._program = program
        self._mode = _MODES[mode]
        self._envs = _numbers(envs or {})
        self._started = False
        _penstock.check_communicator(program.desc, self._mode)
        _check_agrees(program, kwargs or {})

    def start(self):
        """Before the first step; after it, steps send and receive."""
        _penstock.start_communicator(self._program.desc, self._mode)
        self._started = True

    def stop(self):
        """Sends what waits, and stops. Without effect if it does not run."""
        if self.is_running():
            self._started = False
            _penstock.stop_communicator()

    def is_running(self):
        """Whether it was started and not stopped: True or False."""
        return self._started and _penstock.communicator_runs()


def _numbers(envs):
    """The settings as whole numbers; what is not for Fluid's communicators is an error."""
    numbers = {}
    for name, value in envs.items():
        if name not in _SETTINGS:
            raise ValueError('envs: a communicator has no setting %r; there are %s' % (name, ', '.join(_SETTINGS)))
        try:
            numbers[name] = int(value)
        except (TypeError, ValueError):
            raise ValueError('envs: %s must be a whole number, not %r' % (name, value)) from None
    return numbers


_SETTINGS = tuple('communicator_' + name for name in (
    'max_merge_var_num', 'send_queue_size', 'independent_recv_thread', 'min_send_grad_num_before_recv',
    'thread_pool_size', 'send_wait_times', 'is_sgd_optimizer'))


def _check_agrees(program, kwargs):
    """What a script says twice, in the program and here, must be the same."""
    attrs = {'pserver_endpoints': 'endpoints', 'trainer_id': 'trainer_id'}
    for op in program.global_block().ops:
        if op.type != 'send_barrier':
            continue
        for name, attr in attrs.items():
            if name in kwargs and kwargs[name] != op.attr(attr):
                raise ValueError('kwargs: %s is %r, but the program says %r' % (name, kwargs[name], op.attr(attr)))
