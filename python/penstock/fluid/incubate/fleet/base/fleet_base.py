"""Fleet and DistributedOptimizer: what every kind of fleet answers."""

import abc

from penstock.fluid import core, executor
from penstock.fluid._optimizer_base import Optimizer
from penstock.fluid.incubate.fleet.base.mode import Mode
from penstock.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker, RoleMakerBase

__all__ = ['Fleet', 'DistributedOptimizer', 'Mode']


class Fleet(abc.ABC):
    """The job as this process sees it. parameter_server.distribute_transpiler and collective have one each, `fleet`.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.collective import fleet
        fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ['127.0.0.1:6170']))
        assert fleet.is_first_worker() and fleet.split_files(['a', 'b']) == ['a', 'b']
    """

    def __init__(self, mode):
        self._is_initialized = False
        self._mode = mode
        self._optimizer = None
        self._role_maker = None
        self._executor = None

    def init(self, role_maker=None):
        """Says what this process is; before anything else.

        Args:
            role_maker (RoleMakerBase): None is PaddleCloudRoleMaker().

        Raises:
            TypeError: role_maker is none.
        """
        if role_maker is None:
            role_maker = PaddleCloudRoleMaker(is_collective=self._mode == Mode.COLLECTIVE)
        if not isinstance(role_maker, RoleMakerBase):
            raise TypeError('fleet.init takes a role maker, not %r' % (role_maker,))
        self._executor = executor.Executor(core.CPUPlace())
        self._role_maker = role_maker
        self._role_maker.generate_role()
        self._is_initialized = True

    def _role(self):
        if self._role_maker is None:
            raise RuntimeError('fleet.init(role_maker) must be called first')
        return self._role_maker

    def is_first_worker(self):
        """Whether this process is trainer 0."""
        return self._role().is_first_worker()

    def worker_index(self):
        """The number of this trainer, from 0."""
        return self._role().worker_index()

    def worker_num(self):
        """How many trainers the job has."""
        return self._role().worker_num()

    def is_worker(self):
        """Whether this process is a trainer."""
        return self._role().is_worker()

    def worker_endpoints(self, to_string=False):
        """The addresses of all trainers, as a list or comma-separated."""
        return _as_asked(self._role().get_trainer_endpoints(), to_string)

    def server_num(self):
        """How many parameter servers the job has."""
        return len(self._role().get_pserver_endpoints())

    def server_index(self):
        """The number of this parameter server, from 0."""
        return self._role().server_index()

    def server_endpoints(self, to_string=False):
        """The addresses of all parameter servers, as a list or comma-separated."""
        return _as_asked(self._role().get_pserver_endpoints(), to_string)

    def is_server(self):
        """Whether this process is a parameter server."""
        return self._role().is_server()

    def split_files(self, files):
        """This trainer's part of the files: neighbours, as equal in number as can be; the first trainers have one more.

        Args:
            files (list): the files of all trainers, in the same order on each.

        Returns:
            list: those of this trainer; empty if there are fewer files than trainers before it.
        """
        if not isinstance(files, list):
            raise TypeError('split_files takes a list of files, not %r' % (files,))
        return part_of(files, self.worker_index(), self.worker_num())

    def all_reduce_worker(self, input, output):
        """Adds up numbers over all trainers.

        Args:
            input (list|numpy.ndarray): numbers, in one dimension.
            output (list|numpy.ndarray): as many, which get the sums.
        """
        self._role().all_reduce_worker(input, output)

    def barrier_worker(self):
        """Returns when all trainers have called it."""
        self._role().barrier_worker()

    @abc.abstractmethod
    def init_worker(self):
        """Before the first step of a trainer."""

    @abc.abstractmethod
    def init_server(self, model_dir=None):
        """Before run_server() of a parameter server."""

    @abc.abstractmethod
    def run_server(self):
        """Serves until all trainers have stopped."""

    @abc.abstractmethod
    def stop_worker(self):
        """After the last step of a trainer."""

    @abc.abstractmethod
    def distributed_optimizer(self, optimizer, strategy=None):
        """The optimizer whose minimize() also makes this process's programs."""

    @abc.abstractmethod
    def save_inference_model(self, executor, dirname, feeded_var_names, target_vars, main_program=None,
                             export_for_deployment=True):
        """Saves what computes the targets, and its parameters."""

    @abc.abstractmethod
    def save_persistables(self, executor, dirname, main_program=None):
        """Saves parameters and what else outlives a step."""


def _as_asked(endpoints, to_string):
    return ','.join(endpoints) if to_string else endpoints


def part_of(files, index, count):
    """Part `index` of `count`."""
    least, more = divmod(len(files), count)
    begin = index * least + min(index, more)
    return files[begin:begin + least + (index < more)]


class DistributedOptimizer(abc.ABC):
    """An optimizer of Fluid's, and how its work is distributed."""

    def __init__(self, optimizer, strategy=None):
        if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, 'apply_gradients'):
            raise TypeError('distributed_optimizer takes an optimizer, not %r' % (optimizer,))
        self._optimizer = optimizer
        self._strategy = strategy

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """The optimizer's backward(): [(parameter, gradient)]."""
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads):
        """The optimizer's apply_gradients(): the ops that it adds."""
        return self._optimizer.apply_gradients(params_grads)

    @abc.abstractmethod
    def minimize(self, losses, scopes=None, startup_programs=None, parameter_list=None, no_grad_set=None):
        """The optimizer's minimize(), and this process's programs."""
