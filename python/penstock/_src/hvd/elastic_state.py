"""The states of elastic jobs: what ranks commit, what they return to after the loss of a rank, and what a rank that
comes receives."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error, state_error
from penstock._src.executor.scopes import global_scope
from penstock._src.hvd import rounds
from penstock._src.hvd.broadcast import broadcast_, broadcast_async_
from penstock._src.hvd.elastic import HostsUpdatedInterrupt
from penstock._src.hvd.elastic_sampler import ElasticSampler
from penstock._src.hvd.handles import synchronize
from penstock._src.hvd.job import the_job
from penstock._src.hvd.objects import broadcast_object
from penstock._src.hvd.texts import ARRAYS
from penstock._src.ir import framework
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._penstock import Scope
    from penstock._src.ir.typing import Array


class State:
    """What an elastic job keeps in the memory of its ranks. `ObjectState` and `ProgramState` are complete; a class of
    your own defines save, restore and sync.

    Example:
        import penstock.hvd as hvd

        class Counter(hvd.elastic.State):
            batch = saved = 0

            def save(self):
                self.saved = self.batch

            def restore(self):
                self.batch = self.saved

            def sync(self):
                self.batch = hvd.broadcast_object(self.batch, root_rank=self.root_rank())
                self.save()
    """

    def __init__(self) -> None:
        self._reset_callbacks: list[Callable[[], object]] = []

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], object]]) -> None:
        """Adds functions that `run` calls when the ranks have changed, before `sync`.

        Args:
            callbacks (list[callable]): take no arguments; for instance, one that sets the learning rate for hvd.size().
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Runs the callbacks; `run` calls it in each round after the first."""
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Saves the state in this process's memory, so that the next loss of a rank returns to it; then
        `check_host_updates`.

        Call it on all ranks at the same points. It copies the state, so it may be worth its time only after several
        batches.
        """
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks if others wait to join them. Call it on all ranks at the same
        points.

        Raises:
            HostsUpdatedInterrupt: others wait; `run` catches it.
        """
        job = the_job("elastic.check_host_updates")
        if job.round is None or not job.round.grows:
            return
        more = numpy.array([job.rank == 0 and rounds.more_wait()], "int64")
        if broadcast_(more, 0, "elastic.check_host_updates")[0]:
            raise HostsUpdatedInterrupt()

    def root_rank(self) -> int:
        """Returns the rank whose state is that of the job: the lowest one that has worked in an earlier round.

        Returns:
            int: the rank; 0 in the first round.
        """
        return the_job("elastic.State").root

    def save(self) -> None:
        """Copies the state in memory.

        Raises:
            NotImplementedError: a class of your own must define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define save, which a State of your own must define")

    def restore(self) -> None:
        """Returns to the copy of the last `save`.

        Raises:
            NotImplementedError: a class of your own must define it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define restore, which a State of your own must define"
        )

    def sync(self) -> None:
        """Gives all ranks the state of `root_rank()`, and saves it.

        Raises:
            NotImplementedError: a class of your own must define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define sync, which a State of your own must define")


def _is_sampler(value: object) -> bool:
    return isinstance(value, ElasticSampler)


@with_texts(ARRAYS)
class ObjectState(State):
    """A state of Python values, which are its attributes.

    Args:
        bcast_object (callable | None): accepted for Horovod's scripts.
        get_rank (callable | None): accepted for Horovod's scripts.
        values (dict[str, object]): the attributes with their first values: numbers, texts, NumPy arrays, and lists and
            dicts of these, as `broadcast_object` sends them; or an ElasticSampler.

    Raises:
        penstock.ProgramError: a value has the name of a method (E-elastic-value).

    {example}
        state = hvd.elastic.ObjectState(epoch=0, losses=[])
        state.epoch += 1
        state.restore()
        assert state.epoch == 0
    """

    def __init__(self, bcast_object: object = None, get_rank: object = None, **values: Any) -> None:
        super().__init__()
        self._names = sorted(values)
        for name in self._names:
            if hasattr(type(self), name) or name.startswith("_"):
                raise program_error(
                    "E-elastic-value",
                    f"hvd.elastic.{type(self).__name__}: a value cannot have the name {name}, which the state itself "
                    "uses",
                )
            setattr(self, name, values[name])
        self._saved: dict[str, Any] = {}
        self.save()

    def _values(self) -> dict[str, Any]:
        """Returns what is saved and sent: the values, and of samplers their state."""
        values = {name: getattr(self, name) for name in self._names}
        return {name: value.state_dict() if _is_sampler(value) else value for name, value in values.items()}

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            now = getattr(self, name)
            if _is_sampler(now):
                now.load_state_dict(value)
            else:
                setattr(self, name, value)

    def save(self) -> None:
        """Copies the values in memory."""
        self._saved = copy.deepcopy(self._values())

    def restore(self) -> None:
        """Sets the values to those of the last `save`."""
        self._set(copy.deepcopy(self._saved))

    def sync(self) -> None:
        """Gives all ranks the values of `root_rank()`, and saves them.

        Raises:
            penstock.ProgramError: a value contains an object that ranks do not exchange (E-hvd-object).
        """
        self._set(self._broadcast())
        self.save()

    def _broadcast(self) -> Any:
        return broadcast_object(self._values(), self.root_rank(), "elastic.sync") if self._names else {}


@with_texts(ARRAYS)
class ProgramState(ObjectState):
    """The state of a program: its persistable tensors, which are parameters, the state of the optimizer and the
    learning rate, and Python values.

    Args:
        program (Program | None): None: the default main program. Its startup program has been run.
        scope (Scope | None): where the tensors are; None: the global scope.
        values (dict[str, object]): as for `ObjectState`.

    Raises:
        TypeError: `program` is not a Program.
        penstock.StateError: a tensor has no value yet (E-hvd-value).

    {example}
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        hvd.DistributedOptimizer(fluid.optimizer.Adam(0.01)).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        state = hvd.elastic.ProgramState(batch=0)

        @hvd.elastic.run
        def train(state):
            while state.batch < 3:
                exe.run(feed={'x': np.ones((2, 4), 'float32')})
                state.batch += 1
                state.commit()

        train(state)
    """

    def __init__(self, program: Program | None = None, scope: Scope | None = None, **values: Any) -> None:
        program = framework.default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise TypeError(f"hvd.elastic.ProgramState: program must be a Program, not {type(program).__name__}")
        self._scope = global_scope() if scope is None else scope
        self._tensors = sorted(
            variable.name
            for variable in program.list_vars()
            if variable.persistable and variable.type == VarType.LOD_TENSOR
        )
        self._saved_tensors: dict[str, Array] = {}
        super().__init__(**values)

    def _tensor(self, name: str) -> Any:
        variable = self._scope.find_var(name)
        if variable is None or not variable.is_initialized():
            raise state_error(
                "E-hvd-value",
                f"hvd.elastic.ProgramState: {name} has no value in the scope yet; run the startup program first",
            )
        return variable.get_tensor()

    def save(self) -> None:
        """Copies the tensors and values in memory."""
        self._saved_tensors = {name: numpy.array(self._tensor(name)) for name in self._tensors}
        super().save()

    def restore(self) -> None:
        """Sets the tensors and values to those of the last `save`."""
        for name, array in self._saved_tensors.items():
            self._tensor(name).set(array)
        super().restore()

    def sync(self) -> None:
        """Gives all ranks the tensors and values of `root_rank()`, and saves them."""
        arrays = {name: numpy.array(self._tensor(name)) for name in self._tensors}
        handles = [broadcast_async_(array, self.root_rank(), name) for name, array in arrays.items()]
        for handle in handles:
            synchronize(handle)
        values = self._broadcast()
        for name, array in arrays.items():
            self._tensor(name).set(array)
        self._set(values)
        self.save()
