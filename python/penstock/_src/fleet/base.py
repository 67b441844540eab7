"""Fleet and DistributedOptimizer: the interface of every kind of fleet."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, overload

from penstock._src.base.argument_texts import MINIMIZE
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import state_error
from penstock._src.base.same_arguments import arguments_of
from penstock._src.executor import executor
from penstock._src.fleet.mode import Mode
from penstock._src.fleet.role_maker import PaddleCloudRoleMaker
from penstock._src.fleet.roles import RoleMakerBase
from penstock._src.ir.types import CPUPlace
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, Literal, Union

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable
    from penstock._src.mixed_precision.decorator import OptimizerWithMixedPrecision

    AnyOptimizer = Union[Optimizer, OptimizerWithMixedPrecision]


_ADDRESSES = {
    "as_string": """Args:
    to_string (bool): return one comma-separated string instead of a list."""
}


class Fleet(abc.ABC):
    """The job from the view of this process. parameter_server.distribute_transpiler and collective each have an
    instance, `fleet`.

    Args:
        mode (int): one of the numbers of Mode.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.collective import fleet
        fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ['127.0.0.1:6170']))
        assert fleet.is_first_worker() and fleet.split_files(['a', 'b']) == ['a', 'b']
    """

    def __init__(self, mode: int) -> None:
        self._is_initialized = False
        self._mode = mode
        self._optimizer: DistributedOptimizer | None = None
        self._role_maker: RoleMakerBase | None = None
        self._executor: Executor | None = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Sets the role of this process. Call it before all other methods.

        Args:
            role_maker (RoleMakerBase): determines the role; None: PaddleCloudRoleMaker().

        Raises:
            TypeError: `role_maker` is not a role maker.
        """
        if role_maker is None:
            role_maker = PaddleCloudRoleMaker(is_collective=self._mode == Mode.COLLECTIVE)
        if not isinstance(role_maker, RoleMakerBase):
            raise TypeError(f"fleet.init takes a role maker, not {role_maker!r}")
        self._executor = executor.Executor(CPUPlace())
        self._role_maker = role_maker
        self._role_maker.generate_role()
        self._is_initialized = True

    def _role(self) -> RoleMakerBase:
        if self._role_maker is None:
            raise state_error("E-fleet-init", "fleet.init(role_maker) must be called first")
        return self._role_maker

    def _running(self) -> Executor:
        if self._executor is None:
            raise state_error("E-fleet-init", "fleet.init(role_maker) must be called first")
        return self._executor

    def is_first_worker(self) -> bool:
        """Returns whether this process is trainer 0.

        Returns:
            bool: True if it is.
        """
        return self._role().is_first_worker()

    def worker_index(self) -> int:
        """Returns the number of this trainer.

        Returns:
            int: from 0.
        """
        return self._role().worker_index()

    def worker_num(self) -> int:
        """Returns the number of trainers of the job.

        Returns:
            int: the number.
        """
        return self._role().worker_num()

    def is_worker(self) -> bool:
        """Returns whether this process is a trainer.

        Returns:
            bool: True if it is.
        """
        return self._role().is_worker()

    @overload
    def worker_endpoints(self, to_string: Literal[False] = False) -> list[str]: ...
    @overload
    def worker_endpoints(self, to_string: bool) -> list[str] | str: ...
    @with_texts(_ADDRESSES)
    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Returns the addresses of all trainers.

        {as_string}

        Returns:
            list | str: 'host:port' of each trainer, in order.
        """
        endpoints = self._role().get_trainer_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def server_num(self) -> int:
        """Returns the number of pservers of the job.

        Returns:
            int: the number; 0 without pservers.
        """
        return len(self._role().get_pserver_endpoints())

    def server_index(self) -> int:
        """Returns the number of this pserver.

        Returns:
            int: from 0.
        """
        return self._role().server_index()

    @overload
    def server_endpoints(self, to_string: Literal[False] = False) -> list[str]: ...
    @overload
    def server_endpoints(self, to_string: bool) -> list[str] | str: ...
    @with_texts(_ADDRESSES)
    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Returns the addresses of all pservers.

        {as_string}

        Returns:
            list | str: 'host:port' of each pserver, in order.
        """
        endpoints = self._role().get_pserver_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def is_server(self) -> bool:
        """Returns whether this process is a pserver.

        Returns:
            bool: True if it is.
        """
        return self._role().is_server()

    def split_files(self, files: Sequence[str]) -> list[str]:
        """Returns this trainer's part of a list of files. Parts consist of neighbouring files and have equal lengths;
        if the number of files is not divisible, the first trainers have one more file.

        Args:
            files (list): the files of all trainers, in the same order on each.

        Returns:
            list: the files of this trainer; empty if there are not enough files for all trainers up to this one.

        Raises:
            TypeError: `files` is not a list.
        """
        if not isinstance(files, list):
            raise TypeError(f"split_files takes a list of files, not {files!r}")
        return part_of(files, self.worker_index(), self.worker_num())

    def all_reduce_worker(self, input: Array | Sequence[float], output: Array | list[float]) -> None:
        """Sums numbers over all trainers.

        Args:
            input (list | numpy.ndarray): the numbers, one-dimensional.
            output (list | numpy.ndarray): receives the sums; same length as `input`.
        """
        self._role().all_reduce_worker(input, output)

    def barrier_worker(self) -> None:
        """Waits until all trainers have called it."""
        self._role().barrier_worker()

    @abc.abstractmethod
    def init_worker(self) -> None:
        """Prepares a trainer; call it before the first step."""

    @abc.abstractmethod
    def init_server(self, model_dir: str | None = None) -> None:
        """Prepares a pserver; call it before run_server().

        Args:
            model_dir (str | None): a folder of saved parameters to start from.
        """

    @abc.abstractmethod
    def run_server(self) -> None:
        """Serves until all trainers have stopped."""

    @abc.abstractmethod
    def stop_worker(self) -> None:
        """Ends a trainer; call it after the last step."""

    @abc.abstractmethod
    def distributed_optimizer(self, optimizer: Optimizer, strategy: object = None) -> DistributedOptimizer:
        """Wraps an optimizer; its minimize() then also creates this process's programs.

        Args:
            optimizer (Optimizer): computes the updates.
            strategy (object | None): how processes work together; each fleet has its own classes.

        Returns:
            DistributedOptimizer: the wrapped optimizer.
        """

    @abc.abstractmethod
    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Variable],
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> None:
        """Saves the part of the program that computes the targets, and its parameters.

        Args:
            executor (Executor): runs the saving.
            dirname (str): the folder.
            feeded_var_names (list[str]): names of the variables that will be fed.
            target_vars (list[Variable]): the variables that will be computed.
            main_program (Program | None): the program; None: the program before it was distributed.
            export_for_deployment (bool): False: save the whole program.
        """

    @abc.abstractmethod
    def save_persistables(self, executor: Executor, dirname: str, main_program: Program | None = None) -> None:
        """Saves all persistable variables: parameters, optimizer state and learning rates.

        Args:
            executor (Executor): runs the saving.
            dirname (str): the folder.
            main_program (Program | None): the program; None: the program before it was distributed.
        """


def part_of(files: Sequence[str], index: int, count: int) -> list[str]:
    """Returns part `index` of `count` parts."""
    least, more = divmod(len(files), count)
    begin = index * least + min(index, more)
    return list(files[begin : begin + least + (index < more)])


class DistributedOptimizer(abc.ABC):
    """An optimizer together with the strategy that distributes its work. Each fleet has its own subclass.

    Args:
        optimizer (Optimizer): computes the updates.
        strategy (object | None): how processes work together.

    Raises:
        TypeError: `optimizer` is not an optimizer.

    Example:
        from penstock.fluid.incubate.fleet.base.fleet_base import DistributedOptimizer

        class Alone(DistributedOptimizer):
            def minimize(self, loss, scopes=None, startup_programs=None, parameter_list=None, no_grad_set=None):
                return self.apply_gradients(self.backward(loss))

        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        assert len(Alone(fluid.optimizer.SGD(0.1)).minimize(loss)) == 2
    """

    _strategy: object

    def __init__(self, optimizer: AnyOptimizer, strategy: object = None) -> None:
        if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, "apply_gradients"):
            raise TypeError(f"distributed_optimizer takes an optimizer, not {optimizer!r}")
        self._optimizer = optimizer
        self._strategy = strategy

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.backward)
    def backward(self, *args: Any, **named: Any) -> Sequence[Sequence[Variable]]:
        """Adds the backward pass, like Optimizer.backward.

        Args:
            {loss}
            startup_program (Program | None): the startup program; None: the default one.
            {parameters_and_callbacks}

        {pairs}
        """
        pairs: Sequence[Sequence[Variable]] = self._optimizer.backward(*args, **named)
        return pairs

    @with_texts(MINIMIZE)
    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Operator]:  # pairs, as the optimizer takes them
        """Adds the updates, like Optimizer.apply_gradients.

        {from_pairs}
        """
        return self._optimizer.apply_gradients(params_grads)

    @abc.abstractmethod
    @with_texts(MINIMIZE)
    def minimize(
        self,
        losses: Sequence[Variable] | Variable,
        scopes: Sequence[Any] | None = None,
        startup_programs: Program | Sequence[Program] | None = None,
        parameter_list: Sequence[Variable | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> object:
        """Adds gradients and updates, and creates this process's programs.

        Args:
            losses (Variable | list): the loss.
            scopes (list | None): ignored; accepted for compatibility with Fluid.
            startup_programs (Program | list | None): receive the initial values; None: the default startup
                program.
            {parameter_list}
            {no_grad_set}
        """
