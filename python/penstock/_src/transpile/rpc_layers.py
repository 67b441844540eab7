"""The ops of a pserver and its trainers, added by hand: ListenAndServ, Send and Recv. DistributeTranspiler adds them to
programs that are to be trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.ir.types import op_proto_and_checker_maker
from penstock._src.ir.variable import Variable
from penstock._src.layers.control_flow_blocks import BlockGuard
from penstock._src.layers.helper import LayerHelper
from penstock._src.transpile.config import DistributedMode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator


_OP_ROLE = op_proto_and_checker_maker.kOpRoleAttrName()
_RPC = op_proto_and_checker_maker.OpRole.RPC


class BlockGuardServ(BlockGuard):
    """The context manager that `ListenAndServ.do` returns; at its end it adds the op listen_and_serv.

    Args:
        server (ListenAndServ): the server whose block it is.

    Raises:
        TypeError: `server` is not a ListenAndServ.

    Example:
        from penstock.fluid.layers.io import BlockGuardServ, ListenAndServ
        assert isinstance(ListenAndServ('127.0.0.1:6174', ['x']).do(), BlockGuardServ)
    """

    def __init__(self, server: ListenAndServ) -> None:
        if not isinstance(server, ListenAndServ):
            raise TypeError(f"BlockGuardServ takes a ListenAndServ, not {type(server).__name__}")
        super().__init__(server.helper.main_program)
        self.server = server

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        if exc_type is None:
            self.server.complete_op()
        super().__exit__(exc_type, exc_val, exc_tb)


class ListenAndServ:
    """Adds an op that waits for variables, runs a block once all trainers have sent theirs, and answers requests for
    variables.

    Pservers run updates of parameters, as DistributeTranspiler places them. An executor refuses a server whose block
    has no optimizer op (E-server-optimizer).

    Args:
        endpoint (str): the address at which it listens, 'host:port'.
        inputs (list[str | Variable]): the variables that it receives.
        fan_in (int): number of trainers.
        optimizer_mode (bool): what `get_params_and_grads` lists: True: parameters and gradients of optimizer ops;
            False: all inputs of the block's ops.

    Example:
        from penstock.fluid.layers.io import ListenAndServ
        x = fluid.layers.data('x', [32, 32], append_batch_size=False)
        server = ListenAndServ('127.0.0.1:6174', ['x'], optimizer_mode=False)
        with server.do():
            fluid.layers.scale(x, 10.0)
        op = fluid.default_main_program().global_block().ops[-1]
        assert op.type == 'listen_and_serv' and op.attr('Fanin') == 1
    """

    def __init__(
        self, endpoint: str, inputs: Sequence[Variable | str], fan_in: int = 1, optimizer_mode: bool = True
    ) -> None:
        self.helper = LayerHelper("listen_and_serv")
        self.inputs = inputs
        self.outputs: list[Variable] = []
        self.endpoint, self.fan_in, self.optimizer_mode = endpoint, fan_in, optimizer_mode

    def do(self) -> BlockGuardServ:
        """Returns a context manager; ops created inside go into the block that the server runs.

        Returns:
            BlockGuardServ: the context manager.
        """
        return BlockGuardServ(self)

    def parent_block(self) -> Block:
        """Returns the block around the current one.

        Returns:
            Block: the block.

        Raises:
            ValueError: the current block is the outermost one.
        """
        program = self.helper.main_program
        around = program.current_block().parent_idx
        if around < 0:
            raise program_error(
                "E-rpc-block",
                "ListenAndServ: the current block is the outermost one; call this inside `with server.do():`",
            )
        return program.block(around)

    def get_params_and_grads(self) -> tuple[list[Any], list[Any]]:
        """Lists what the ops of the current block update, and by what.

        Returns:
            tuple[list, list]: names of parameters and of their gradients if `optimizer_mode` is true; otherwise twice
                the Variables of the outer block that the ops read.

        Raises:
            ValueError: the current block is the outermost one.
        """
        around, ops = self.parent_block(), self.helper.main_program.current_block().ops
        if self.optimizer_mode:
            updates = _updates(ops)
            return [op.input("Param")[0] for op in updates], [op.input("Grad")[0] for op in updates]
        read = [around.var(name) for op in ops for name in op.input_arg_names]
        return read, list(read)

    def complete_op(self) -> None:
        """Adds the op to the outer block; `do` calls it.

        Raises:
            ValueError: the current block is the outermost one.
        """
        around, block = self.parent_block(), self.helper.main_program.current_block()
        grads = [op.input("Grad")[0] for op in _updates(block.ops)]
        around.append_op(
            "listen_and_serv",
            {"X": self.inputs},
            {},
            {
                "endpoint": self.endpoint,
                "Fanin": self.fan_in,
                "optimize_blocks": [block],
                "distributed_mode": DistributedMode.SYNC,
                "grad_to_block_id": [f"{grad}:{block.idx}" for grad in grads] or [""],
            },
        )


def Send(
    endpoints: str,
    send_vars: Sequence[Variable],
    dummy_output: Sequence[Variable] | Variable | None = None,
    sync: bool = True,
) -> None:
    """Adds ops that send variables to servers.

    Args:
        endpoints (str): a server's address for each variable, with commas between them.
        send_vars (list[Variable]): the variables.
        dummy_output (Variable | list[Variable] | None): what later ops read to run after it; holds no data.
        sync (bool): also wait until the servers have run their blocks.

    Raises:
        TypeError: `send_vars` is not a list.
        ValueError: `endpoints` does not have one address for each variable.

    Example:
        from penstock.fluid.layers.io import Send
        x = fluid.layers.data('x', [32, 32], append_batch_size=False)
        Send('127.0.0.1:6174', [x])
        assert [op.type for op in fluid.default_main_program().global_block().ops] == ['send', 'send_barrier']
    """
    order = _listed(dummy_output)
    addresses = _addresses(endpoints, send_vars, "Send: send_vars")
    helper = LayerHelper("Send")
    servers = list(dict.fromkeys(addresses))
    helper.append_op(
        "send", {"X": send_vars}, {"Out": order}, {"endpoints": servers, "epmap": addresses, _OP_ROLE: _RPC}
    )
    if sync:
        helper.append_op("send_barrier", {"X": order}, {"Out": []}, {"endpoints": servers, _OP_ROLE: _RPC})


def Recv(
    endpoints: str,
    get_vars: list[Variable],
    dummy_input: Sequence[Variable] | Variable | None = None,
    sync: bool = True,
) -> list[Variable]:
    """Adds ops that fetch variables from servers.

    Args:
        endpoints (str): a server's address for each variable, with commas between them.
        get_vars (list[Variable]): the variables that receive the values.
        dummy_input (Variable | list[Variable] | None): what earlier ops write to run before it; holds no data.
        sync (bool): also tell the servers that this trainer has all it needs of this step.

    Returns:
        list[Variable]: `get_vars`.

    Raises:
        TypeError: `get_vars` is not a list.
        ValueError: `endpoints` does not have one address for each variable.

    Example:
        from penstock.fluid.layers.io import Recv
        y = fluid.layers.data('y', [32, 32], append_batch_size=False)
        assert Recv('127.0.0.1:6174', [y]) == [y]
        assert [op.type for op in fluid.default_main_program().global_block().ops] == ['recv', 'fetch_barrier']
    """
    addresses = _addresses(endpoints, get_vars, "Recv: get_vars")
    helper = LayerHelper("Recv")
    servers = list(dict.fromkeys(addresses))
    helper.append_op(
        "recv",
        {"X": _listed(dummy_input)},
        {"Out": get_vars},
        {"endpoints": servers, "epmap": addresses, _OP_ROLE: _RPC},
    )
    if sync:
        helper.append_op("fetch_barrier", {}, {"Out": get_vars}, {"endpoints": servers, _OP_ROLE: _RPC})
    return get_vars


def _updates(ops: list[Operator]) -> list[Operator]:
    return [op for op in ops if op.input("Param") and op.input("Grad")]


def _listed(order: Sequence[Variable] | Variable | None) -> list[Variable]:
    return [order] if isinstance(order, Variable) else list(order or [])


def _addresses(endpoints: str, variables: Sequence[Variable], what: str) -> list[str]:
    if not isinstance(variables, list):
        raise TypeError(f"{what} must be a list of Variables, not {type(variables).__name__}")
    addresses = endpoints.split(",")
    if len(addresses) != len(variables):
        raise ValueError(
            f"{what} has {len(variables)} variables, but endpoints has {len(addresses)} addresses; it must have one "
            "for each variable"
        )
    return addresses
