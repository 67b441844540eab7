"""What a store has beside its values: the optimizer, compression, the other workers, and requests in progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock._src.base.errors import not_built, program_error, state_error
from penstock._src.kv.keys import to_key
from penstock._src.kv.nodes import nodes_of
from penstock._src.kv.programs import optimizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from penstock._src.ir.program import Program
    from penstock._src.ir.variable import Variable
    from penstock._src.kv.backend import Backend, Facts, OwnValues
    from penstock._src.kv.keys import Key
    from penstock._src.kv.kinds import Kind
    from penstock._src.kv.optimizer import Optimizer
    from penstock._src.kv.programs import Given, ProgramOptimizer
    from penstock._src.kv.tables import TableFacts, TableRows
    from penstock._src.kv.tickets import Ticket

    Updater = Callable[[Key, Any, Any], object]


class StoreSettings:
    """What a store has beside its values."""

    def __init__(self, kind: Kind, backend: Backend) -> None:
        self._kind = kind
        self._backend = backend
        self._facts: dict[Key, Facts] = {}
        self._table_names: set[str] = set()
        self._tickets: list[Ticket] = []  # in progress
        self._optimizer: Optimizer | ProgramOptimizer | None = None
        self._version = 0  # of the optimizer's rates and multipliers that the backend has
        self._updater: Updater | None = None

    @property
    def type(self) -> str:
        """The name that create() was given, in small letters."""
        return self._kind.name

    @property
    def rank(self) -> int:
        """The number of this worker, from 0; 0 in a store of one process."""
        return self._backend.rank

    @property
    def num_workers(self) -> int:
        """The number of workers; 1 in a store of one process."""
        return self._backend.num_workers

    def wait(self) -> None:
        """Waits until all pushes and pulls of this worker are complete.

        Raises:
            penstock.ProgramError: a request was refused; the words of the process that refused it say why.
            penstock.PeerError: another process of the job is gone.
        """
        tickets, self._tickets = self._tickets, []
        first: BaseException | None = None
        for ticket in tickets:
            try:
                if not ticket.is_told():
                    ticket.wait()
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def _keep(self, ticket: Ticket) -> Ticket:
        if ticket.done():
            ticket.wait()
        else:
            self._tickets.append(ticket)
        return ticket

    def _settle(self) -> None:
        """Drops requests that are complete; raises the error of one that has failed and was not waited for."""
        while self._tickets and self._tickets[0].done():
            ticket = self._tickets.pop(0)
            if not ticket.is_told():
                ticket.wait()

    def _add_table(self, facts: TableFacts) -> TableRows:
        """Makes a table, whose name no key has."""
        self._settle()
        if facts.name in self._facts or facts.name in self._table_names:
            raise program_error("E-kv-key-again", f"kv.Table: the store has a key or a table {facts.name!r} already")
        rows = self._backend.add_table(facts)
        self._table_names.add(facts.name)
        return rows

    def set_optimizer(
        self,
        optimizer: Given,
        startup_program: Program | None = None,
        param: Variable | str | None = None,
        grad: Variable | str | None = None,
    ) -> None:
        """Makes pushed values gradients, by which an optimizer changes the values of the keys.

        The states of all keys start anew. Rates and multipliers of the object that are changed later take effect with
        the next push. In a store over pservers all workers make this call, with the same optimizer, and all change
        it at the same step.

        An optimizer of one's own is a Program that updates one parameter: it reads `grad`, the sum of a round or, in an
        asynchronous store, of one push, and changes `param`. The two stand for each key: variables of their shape and
        type get those of the key, and all others have one element. A key on pservers may lie in pieces, each of one
        dimension, so each op works element by element or, like a norm, on all elements at once. Persistable variables
        are states, which each key has for itself, the learning rate and a schedule's counter included;
        `startup_program` fills them.

        Args:
            optimizer (Optimizer | fluid.optimizer.Optimizer | Callable | Program): what penstock.kv.optimizer.create()
                returns; an optimizer of fluid.optimizer, with its clipping and regularization, or a function that
                returns one, and may make a schedule by layers; or a program.
            startup_program (Program): fills the states of the program; what it does for other variables is ignored.
            param (Variable | str): the program's parameter, which has two elements or more.
            grad (Variable | str): its gradient.

        Raises:
            TypeError: it is no optimizer.
            penstock.ProgramError: E-kv-optimizer-differs: another worker has set another one; E-kv-program: the
                program cannot be used for keys; E-kv-program-key: nor for a key that is there.

        Example:
            kv = penstock.kv.create('local')
            kv.init('w', np.ones(2, 'float32'))
            kv.set_optimizer(penstock.kv.optimizer.create('sgd', learning_rate=0.5))
            kv.push('w', np.ones(2, 'float32'))
            assert (kv.pull('w') == 0.5).all()

            kv.set_optimizer(fluid.optimizer.Momentum(0.5, 0.9))
            kv.set_optimizer(lambda: fluid.optimizer.SGD(fluid.layers.exponential_decay(1.0, 1, 0.5)))

            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup):
                w, g = (fluid.data(name, [2, 3]) for name in 'wg')
                last = fluid.layers.create_global_var([2, 3], 0.0, 'float32', persistable=True)
                fluid.layers.assign(w - 0.5 * (2 * g - last), w)
                fluid.layers.assign(g, last)
            kv.set_optimizer(main, startup, w, g)
            kv.push('w', np.ones(2, 'float32'))
            assert (kv.pull('w') == -0.5).all()
        """
        given = optimizer_of(optimizer, startup_program, param, grad)
        self._settle()
        self._backend.set_optimizer(given)
        self._optimizer, self._version, self._updater = given, given.version, None

    def _refresh_optimizer(self) -> None:
        """Gives the backend the rates and multipliers that were changed since the last push."""
        if self._optimizer is not None and self._optimizer.version != self._version:
            self._version = self._optimizer.version
            self._backend.change_optimizer(self._optimizer)

    def _set_updater(self, updater: Updater) -> None:
        """Makes updater(key, sum, stored), which may write `stored`, apply the sums; in a store of one process."""
        if self._kind.over == "servers":
            raise program_error(
                "E-kv-updater",
                f"kv._set_updater: the values of a store of type {self.type} are on pservers, which run no Python",
                "set_optimizer() makes them apply an optimizer; a store of type local, or horovod, takes an updater",
            )
        self._updater = updater

    def set_gradient_compression(self, compression_params: Mapping[str, object]) -> None:
        """Compresses what is pushed from now on; every worker makes this call.

        '2bit' sends for each element +threshold, -threshold or 0, and adds the rest to the next push. Values of 32-bit
        floats only; tables of rows, initial values and pulls are not compressed.

        Args:
            compression_params (dict): 'type': '2bit'; 'threshold' (float, 0.5).

        Raises:
            penstock.ProgramError: E-kv-compression: another type, a threshold that is not positive, or a store of type
                local or without pservers.

        Example:
            kv = penstock.kv.create('device')
            kv.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
            kv.init('w', np.zeros(2, 'float32'))
            kv.push('w', np.array([0.75, 0.25], 'float32'))
            assert (kv.pull('w') == [0.5, 0]).all()
        """
        kind, threshold = compression_params.get("type"), compression_params.get("threshold", 0.5)
        if kind != "2bit":
            raise program_error("E-kv-compression", f"kv.set_gradient_compression: type {kind!r}; there is '2bit'")
        try:
            number = float(threshold)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = 0.0
        if not 0 < number < float("inf"):
            raise program_error(
                "E-kv-compression", f"kv.set_gradient_compression: threshold {threshold!r} is not a number above 0"
            )
        if self.type == "local":
            raise program_error(
                "E-kv-compression", "kv.set_gradient_compression: pushes of a store of type local do not leave it"
            )
        self._settle()
        self._backend.set_compression("2bit", number)

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Saves the optimizer's states of all keys to a file, which contains no pickle.

        Args:
            fname (str): the file; an old one is replaced.
            dump_optimizer (bool): whether the file also has the optimizer, with its counts of updates.

        Raises:
            penstock.StateError: E-kv-no-optimizer: set_optimizer was not called.
            penstock.ProgramError: E-kv-states-remote: the states are on pservers.
        """
        self._own_states("save_optimizer_states").save_states(fname, dump_optimizer)

    def load_optimizer_states(self, fname: str) -> None:
        """Loads the states that save_optimizer_states saved; with the optimizer, if the file has it.

        Args:
            fname (str): the file.

        Raises:
            penstock.StateError: E-kv-no-optimizer: set_optimizer was not called.
            penstock.ProgramError: E-kv-states-remote: the states are on pservers.
            penstock.DataError: the file is damaged.
        """
        self._own_states("load_optimizer_states").load_states(fname)

    def _own_states(self, call: str) -> OwnValues:
        if self._kind.over == "servers":
            raise program_error(
                "E-kv-states-remote", f"kv.{call}: the states of a store of type {self.type} are on pservers"
            )
        if self._optimizer is None:
            raise state_error("E-kv-no-optimizer", f"kv.{call}: there is no optimizer; call set_optimizer() first")
        self._settle()
        return self._own_values()

    def _own_values(self) -> OwnValues:
        """Returns the backend of a store whose values are in this process."""
        return cast("OwnValues", self._backend)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Tells what the store can do.

        Args:
            capability (str): 'optimizer': whether it can apply an optimizer.

        Returns:
            bool: True.

        Raises:
            ValueError: another name.
        """
        if capability.lower() != "optimizer":
            raise ValueError(f"kv.is_capable: {capability!r} is not known; there is 'optimizer'")
        return True

    def barrier(self) -> None:
        """Waits until all workers have made this call as often.

        Raises:
            penstock.PeerError: another worker is gone.
        """
        self._settle()
        self._backend.barrier()

    _barrier = barrier  # its name in MXNet

    def num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """Returns how many other processes of the job are gone without having completed.

        The scheduler knows them. In a job without one, the first pserver knows which workers are gone and awaited, and
        the worker itself which pservers are out of reach; most deaths end such a job, or restart it.

        Args:
            node_id (int): which processes, by ps-lite's numbers: a sum of 1 (the scheduler, which is not counted), 2
                (the pservers) and 4 (the workers); with a scheduler also 8 + 2 n, pserver n, and 9 + 2 n, worker n.
            timeout (int): accepted for MXNet's scripts; a process is gone when its connection has ended.

        Returns:
            int: their number; 0 in a store of one process.

        Raises:
            penstock.ProgramError: E-kv-node: there is no such process.
        """
        return self._backend.dead(nodes_of(node_id))

    def rounds(self, key: int | str) -> int:
        """Returns how many pushes of this worker a key has received, which tells a restarted worker where to go on.

        Args:
            key (int | str): a key that has a value.

        Returns:
            int: the number of pushes that the values contain.

        Raises:
            penstock.ProgramError: E-kv-key: the key has no value yet.
        """
        key = to_key(key, "rounds")
        if key not in self._facts:
            raise program_error("E-kv-key", f"kv.rounds: key {key!r} has no value yet")
        self.wait()
        return self._backend.rounds(key)

    def close(self) -> None:
        """Ends this worker's part in the job: it waits for its requests, and the others no longer wait for it. The end
        of a script does the same. A second call does nothing.

        Raises:
            penstock.ProgramError: a request was refused.
            penstock.PeerError: another process of the job is gone.
        """
        try:
            self.wait()
        finally:
            self._backend.close()

    def _send_command_to_servers(self, head: int, body: str) -> None:
        raise not_built("kv._send_command_to_servers: pservers take no commands of scripts")
