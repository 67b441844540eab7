"""Program: a handle on a program that C++ owns.

A handle is (program, block, id or name); an object always has the same handle, so `is` works. A handle whose op or
variable was removed raises penstock.StateError when it is used. Only facts without a field in C++, such as a
parameter's regularizer, are kept in Python, in Program._parameter_attrs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, cast

from penstock._penstock import OpContext, ProgramDesc
from penstock._src.ir.block import Block
from penstock._src.ir.fluid_version import FLUID_VERSION
from penstock._src.ir.graph_order import program_of
from penstock._src.ir.graph_view import GraphView
from penstock._src.ir.op_scope import fill_context
from penstock._src.ir.operator import Operator
from penstock._src.ir.program_notes import ProgramNotes
from penstock._src.ir.types import VarType, op_proto_and_checker_maker
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Union

    from penstock._src.ir.variable import Parameter

    _Target = Union[Variable, Operator, str]


OpRole = op_proto_and_checker_maker.OpRole


class Program(ProgramNotes):
    """A program: blocks of variables and ops. A new one has one empty block.

    `desc` is its C++ value, and Fluid's ProgramDesc (desc.block(i), desc.num_blocks()). An assignment to that value
    changes the program of all handles.

    Example:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        assert [op.type for op in main.global_block().ops] == ['mul', 'elementwise_add']
    """

    def __init__(self) -> None:
        self._adopt(ProgramDesc())
        self.desc.version = FLUID_VERSION

    def _adopt(self, desc: ProgramDesc) -> None:
        self.desc = desc
        self._blocks: dict[int, Block] = {}
        self._current_block = 0
        self._op_context = OpContext()
        fill_context(self._op_context)
        self._parameter_attrs: dict[str, dict[str, Any]] = {}

    @staticmethod
    def _of(desc: ProgramDesc) -> Program:
        program = Program.__new__(Program)
        program._adopt(desc)
        return program

    def _rebind(self, desc: ProgramDesc) -> None:
        """Makes this program, and all its handles, refer to `desc`."""
        self.desc.assign(desc)
        for block in self._blocks.values():
            block._var_handles = (
                {name: handle for name, handle in block._var_handles.items() if self.desc.has_var(block.idx, name)}
                if block.idx < self.desc.num_blocks()
                else {}
            )

    def _sync_with_cpp(self) -> None:
        """Does nothing: Python and C++ share the program."""

    # Blocks.
    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return self.desc.num_blocks()

    @property
    def blocks(self) -> list[Block]:
        """Handles of all blocks, as a list."""
        return [self.block(index) for index in range(self.desc.num_blocks())]

    def block(self, index: int) -> Block:
        """Returns a block by its index.

        Args:
            index (int): from 0 to num_blocks - 1.

        Returns:
            Block: its handle.

        Raises:
            IndexError: the block does not exist.
        """
        block = self._blocks.get(index)
        if block is None:
            if not 0 <= index < self.desc.num_blocks():
                raise IndexError(f"there is no block {index}; the program has {self.desc.num_blocks()}")
            block = self._blocks[index] = Block(self, index)
        return block

    def global_block(self) -> Block:
        """Returns block 0.

        Returns:
            Block: its handle.
        """
        return self._blocks.get(0) or self.block(0)

    def current_block(self) -> Block:
        """Returns the block to which layers add ops.

        Returns:
            Block: its handle.
        """
        return self.block(self._current_block)

    @property
    def current_block_idx(self) -> int:
        """The index of the block to which ops are added.

        Returns:
            int: 0 outside branches and loops.

        Example:
            assert fluid.default_main_program().current_block_idx == 0
        """
        return self._current_block

    @current_block_idx.setter
    def current_block_idx(self, index: int) -> None:
        self._current_block = self.block(index).idx

    def _create_block(self, parent_idx: None = None) -> Block:
        self._current_block = self.desc.append_block(self._current_block if parent_idx is None else parent_idx)
        return self.current_block()

    def _rollback(self) -> None:
        self._current_block = self.current_block().parent_idx

    # Contents.
    def list_vars(self) -> Iterator[Variable]:
        """Yields the variables of all blocks.

        Returns:
            Iterator[Variable]: block by block.
        """
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        """Returns the parameters of all blocks.

        Returns:
            list[Parameter]: block by block.
        """
        return [param for block in self.blocks for param in block.all_parameters()]

    @property
    def random_seed(self) -> int:
        """Seed of ops without their own seed; 0: different numbers in each run.

        Raises:
            ValueError: the new value is not an int.
        """
        return self.desc.random_seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int):
            raise ValueError(f"Program.random_seed must be an integer, not {seed!r}")
        self.desc.random_seed = seed

    def global_seed(self, seed: int = 0) -> None:
        """Sets random_seed.

        Args:
            seed (int): the seed.
        """
        self.random_seed = seed

    @property
    def _seed(self) -> int:
        return self.desc.random_seed

    @property
    def plan(self) -> str:
        """The text of the placement plan by which the transpiler created this program; '' for other programs."""
        return self.desc.plan

    # Roles of the ops that are added next.
    @property
    def _op_role(self) -> int:
        """The role of ops that are added, one of OpRole."""
        return self._op_context.role

    @_op_role.setter
    def _op_role(self, role: int) -> None:
        self._op_context.role = int(role)

    op_role = _op_role

    @property
    def _op_role_var(self) -> list[str]:
        """The parameter and the gradient of ops that are added: a list of names."""
        return self._op_context.role_var

    @_op_role_var.setter
    def _op_role_var(self, names: Sequence[Variable | str]) -> None:
        self._op_context.role_var = [_name_of(name) for name in names]

    op_role_var = _op_role_var

    @contextlib.contextmanager
    def _role_guard(self, role: int, role_var: Sequence[Variable | str] = ()) -> Iterator[None]:
        old = self._op_role, self._op_role_var
        self._op_role = role
        self._op_role_var = role_var
        try:
            yield
        finally:
            self._op_role, self._op_role_var = old

    def _optimized_guard(self, param_and_grads: Sequence[Variable | str]) -> AbstractContextManager[None]:
        return self._role_guard(OpRole.Optimize, param_and_grads)

    def _lr_schedule_guard(self, is_with_opt: bool = False) -> AbstractContextManager[None]:
        return self._role_guard(OpRole.LRSched | (OpRole.Optimize if is_with_opt else 0))

    def _backward_role_guard(self) -> AbstractContextManager[None]:
        return self._role_guard(OpRole.Backward)

    # Copies.
    def clone(self, for_test: bool = False) -> Program:
        """Copies the program.

        Args:
            for_test (bool): remove backward and optimizer ops, and set the others to inference mode. Clone before
                `minimize`.

        Returns:
            Program: an independent copy. Variables of equal names have the same value in a scope.
        """
        program = Program._of(self.desc.clone_for_test() if for_test else self.desc.copy())
        program._copy_parameter_attrs_from(self)
        for name in ("_trainer_id", "_then", "_served_with", "_serves"):
            if name in self.__dict__:
                setattr(program, name, self.__dict__[name])
        return program

    def _copy_parameter_attrs_from(self, other: Program) -> None:
        self._parameter_attrs = {name: dict(attrs) for name, attrs in other._parameter_attrs.items()}

    def _prune_with_input(self, feeded_var_names: list[str], targets: Sequence[_Target] | _Target) -> Program:
        """Returns the part that the targets need if the named variables are fed. The name is Fluid's; see _prune."""
        feeds = feeded_var_names if isinstance(feeded_var_names, (list, tuple)) else [feeded_var_names]
        for name in feeds:
            if not isinstance(name, str):
                raise ValueError(f"_prune_with_input: a fed variable is named by a str, not {name!r}")
        targets = _targets_of("_prune_with_input", targets)
        return self._prune(
            [
                target
                for target in targets
                if isinstance(target, Operator) or getattr(target, "name", target) not in feeds
            ],
            feeds,
        )

    def _copy_param_info_from(self, other: Program) -> None:
        """Copies learning rate, regularizer and so on of `other`'s parameters to parameters with the same names."""
        if not isinstance(other, Program):
            raise TypeError(f"_copy_param_info_from takes a Program, not {other!r}")
        self._copy_parameter_attrs_from(other)

    _copy_dist_param_info_from = _copy_param_info_from

    def _prune(
        self, targets: Sequence[_Target] | _Target, feeds: Sequence[Variable | str] = (), ops: Sequence[Operator] = ()
    ) -> Program:
        """Returns the part that the targets, each a Variable, an Operator or a name, and the ops need."""
        targets = _targets_of("_prune", targets)
        ops = [*(target for target in targets if isinstance(target, Operator)), *ops]
        names = [_name_of(target) for target in targets if not isinstance(target, Operator)]
        program = Program._of(self.desc.prune([_name_of(feed) for feed in feeds], names, [op._id for op in ops]))
        program._copy_parameter_attrs_from(self)
        return program

    def _inference_optimize(self, prune_read_op: bool = True) -> Program:
        """Returns a copy in test mode; with prune_read_op, without readers and the ops up to the one that reads."""
        program = self.clone()
        block = program.global_block()
        kinds = [op.type for op in block.ops]
        if prune_read_op:
            if "read" in kinds:
                for _ in range(kinds.index("read") + 1):
                    block._remove_op(0)
            for var in [var for var in block.vars.values() if var.type == VarType.READER]:
                block._remove_var(var.name)
        for block in program.blocks:
            for op in block.ops:
                if op.has_attr("is_test"):
                    op._set_attr("is_test", True)
        return program

    @staticmethod
    def parse_from_string(binary_str: bytes) -> Program:
        """Reads a serialized ProgramDesc.

        Args:
            binary_str (bytes): the bytes, as returned by `program.desc.serialize_to_string()`.

        Returns:
            Program: the program.

        Raises:
            penstock.DataError: the bytes are not a ProgramDesc.
        """
        return Program._of(ProgramDesc.parse(bytes(binary_str)))

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Prints the program as text.

        Args:
            throw_on_error (bool): ignored; accepted for compatibility with Fluid.
            with_details (bool): print every attribute, including those with their default value.

        Returns:
            str: the text, which the command `penstock convert` reads.
        """
        return self.desc.to_string(with_details)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<Program of {self.num_blocks} blocks, {self.desc.op_count(0)} ops>"


class IrGraph(GraphView):
    """A program as a graph that Python changes: ops and values of variables are nodes. A change of the graph does not
    change the program from which it was made.

    Args:
        graph (Graph): the core.Graph; the attribute `graph`.
        for_test (bool): what is_test() returns.

    Raises:
        TypeError: `graph` is not a core.Graph.

    Example:
        y = fluid.layers.relu(fluid.data('x', [2]))
        graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc), for_test=True)
        relu, = graph.all_op_nodes()
        relu.set_type('sigmoid')
        value = fluid.Executor(fluid.CPUPlace()).run(graph.to_program(), feed={'x': np.zeros(2, 'float32')},
                                                     fetch_list=[y.name])
        assert value[0].tolist() == [0.5, 0.5]
    """

    def to_program(self) -> Program:
        """Makes a program of the graph: its ops in an order that the edges allow, and the variables of its nodes.

        Returns:
            Program: a new one.

        Raises:
            ValueError: the graph has a circle.
        """
        return Program._of(program_of(self.graph))


def _name_of(var: Variable | str) -> str:
    return var if isinstance(var, str) else var.name


def _targets_of(function: str, targets: Sequence[_Target] | _Target) -> Sequence[_Target]:
    """Returns the targets of a pruning as a list; one target may stand for itself."""
    targets = cast("Sequence[_Target]", targets if isinstance(targets, (list, tuple)) else [targets])
    for target in targets:
        if not isinstance(target, (Variable, Operator, str)):
            raise ValueError(f"{function}: a target is a Variable, an Operator or a name, not {target!r}")
    return list(targets)
