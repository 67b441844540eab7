"""StaticRNN: ops that run once for each step of sequences of equal length."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._src.ir import unique_name
from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Variable
from penstock._src.layers.control_flow_blocks import BlockGuard
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from penstock._src.ir.block import Block


class StaticRNNMemoryLink:
    """A memory: its initial value, its value at the start of a step, and its value at the end of the step."""

    def __init__(self, init: Variable, pre_mem: Variable, mem: Variable | None = None) -> None:
        self.init = init
        self.pre_mem = pre_mem
        self.mem = mem


class StaticRNN:
    """Runs ops once for each step of sequences of equal length.

    The first axis of an input is the step.

    Args:
        name (str | None): prefix of the names of the variables that the layer creates.

    Example:
        words = fluid.data('words', [20, 8, 16])
        rnn = fluid.layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(words)
            before = rnn.memory(shape=[-1, 32], batch_ref=word)
            state = fluid.layers.fc([word, before], 32, act='tanh')
            rnn.update_memory(before, state)
            rnn.step_output(state)
        states = rnn()
    """

    BEFORE_RNN_BLOCK, IN_RNN_BLOCK, AFTER_RNN_BLOCK = range(3)

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("static_rnn", name=name)
        self.memories: dict[str, StaticRNNMemoryLink] = {}
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.status = StaticRNN.BEFORE_RNN_BLOCK
        self.seq_len: int | None = None

    @contextlib.contextmanager
    def _body(self) -> Iterator[None]:
        with BlockGuard(self.helper.main_program):
            self.status = StaticRNN.IN_RNN_BLOCK
            yield
            arguments = self._arguments()
        self.helper.main_program.current_block().append_op("recurrent", *arguments)
        self.status = StaticRNN.AFTER_RNN_BLOCK

    def step(self) -> AbstractContextManager[Any]:
        """Opens the block of a step.

        Returns:
            A context manager; ops created inside it run in each step.
        """
        return self._body()

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """Declares a state that each step passes to the next.

        Args:
            init (Variable | None): its value in the first step, any shape and type; None: a constant.
            shape (list[int] | None): shape of the constant; -1 is the extent of the batch.
            batch_ref (Variable | None): a variable of the step from which that extent is taken.
            init_value (float): value of the constant.
            init_batch_dim_idx (int): axis of the batch in `shape`.
            ref_batch_dim_idx (int): axis of the batch in the input outside the step.

        Returns:
            Variable: the value of the previous step, with the shape and type of the initial value.

        Raises:
            ValueError: called outside a step, or neither `init` nor both `shape` and `batch_ref` are given.
        """
        self._require_inside("memory")
        if init is None:
            if shape is None or batch_ref is None:
                raise ValueError("memory needs init, or shape and batch_ref")
            around = self._around()
            name = unique_name.generate("@".join([self.helper.name, "memory_boot"]))
            boot = around.create_var(name=name, shape=list(shape), dtype=batch_ref.dtype, persistable=False)
            around.append_op(
                "fill_constant_batch_size_like",
                {"Input": batch_ref},
                {"Out": boot},
                {
                    "value": float(init_value),
                    "shape": list(boot.shape),
                    "dtype": int(boot.dtype),
                    "input_dim_idx": ref_batch_dim_idx,
                    "output_dim_idx": init_batch_dim_idx,
                },
            )
            return self.memory(init=boot)
        name = unique_name.generate("@".join([self.helper.name, "mem"]))
        before = self.helper.create_variable(name=name, dtype=init.dtype, shape=list(init.shape))
        self.memories[before.name] = StaticRNNMemoryLink(init=init, pre_mem=before)
        return before

    def step_input(self, x: Variable) -> Variable:
        """Declares an input of the network, whose first axis is the step.

        Args:
            x (Variable): shape [steps, ...].

        Returns:
            Variable: the input of the step, shape [...], same type as `x`.

        Raises:
            ValueError: called outside a step, or the number of steps differs from that of another input.
            TypeError: `x` is not a Variable.
        """
        self._require_inside("step_input")
        if not isinstance(x, Variable):
            raise TypeError(f"step_input takes a Variable, not {type(x).__name__}")
        if self.seq_len is None:
            self.seq_len = x.shape[0]
        elif x.shape[0] != -1 and self.seq_len != x.shape[0]:
            raise ValueError(f"step_input: {x.name} has {x.shape[0]} steps, the inputs before it have {self.seq_len}")
        row = self.helper.create_variable(name=x.name, dtype=x.dtype, shape=list(x.shape[1:]), type=x.type)
        self.inputs.append(row)
        return row

    def step_output(self, o: Variable) -> None:
        """Declares an output of the network.

        Args:
            o (Variable): the value of the output in the step, any shape and type.

        Raises:
            ValueError: called outside a step.
            TypeError: `o` is not a Variable.
        """
        self._require_inside("step_output")
        if not isinstance(o, Variable):
            raise TypeError(f"step_output takes a Variable, not {type(o).__name__}")
        steps = -1 if self.seq_len is None else self.seq_len
        row = self.helper.create_variable_for_type_inference(o.dtype)
        self.helper.append_op("rnn_memory_helper", {"X": o}, {"Out": row}, {"dtype": int(o.dtype)})
        self.outputs.append(self._around().create_var(name=row.name, shape=[steps, *row.shape], dtype=row.dtype))

    def output(self, *outputs: Variable) -> None:
        """Declares several outputs of the network.

        Args:
            outputs (Variable): the values of the outputs in the step.

        Raises:
            ValueError: called outside a step.
            TypeError: an output is not a Variable.
        """
        for each in outputs:
            self.step_output(each)

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Sets the value of a state in the next step.

        Args:
            mem (Variable): the result of `memory`.
            var (Variable): the new value, same shape and type as `mem`.

        Raises:
            ValueError: `mem` is not a memory of this network.
            TypeError: an argument is not a Variable.
        """
        if not isinstance(mem, Variable) or not isinstance(var, Variable):
            raise TypeError("update_memory takes two Variables")
        if mem.name not in self.memories:
            raise ValueError(f"{mem.name} is not a memory of {self.helper.name}; memory() creates one")
        self.memories[mem.name].mem = var

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.status != StaticRNN.AFTER_RNN_BLOCK:
            raise ValueError("a StaticRNN returns its outputs after its step has ended")
        if not self.outputs:
            raise ValueError("a StaticRNN must call step_output or output inside its step")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def _around(self) -> Block:
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)

    def _require_inside(self, method: str) -> None:
        if self.status != StaticRNN.IN_RNN_BLOCK:
            raise ValueError(f"{method} must be called inside the step of a StaticRNN")

    def _arguments(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Returns the inputs, outputs and attributes of the op that runs the current block in each step."""
        if not self.inputs:
            raise ValueError("a StaticRNN needs a step_input: its rows are the steps")
        helper = self.helper
        body, around = helper.main_program.current_block(), self._around()
        outside = around_names(body, [var.name for var in self.inputs] + list(self.memories))
        parameters = [around._var_recursive(name) for name in outside]
        scopes = around.create_var(type=VarType.STEP_SCOPES)
        inits, befores, afters = [], [], []
        for memory in self.memories.values():
            if memory.mem is None:
                raise ValueError(f"memory {memory.pre_mem.name} is never updated")
            inits.append(memory.init)
            befores.append(memory.pre_mem.name)
            after = helper.create_variable_for_type_inference(memory.mem.dtype)
            helper.append_op("rnn_memory_helper", {"X": memory.mem}, {"Out": after}, {"dtype": int(memory.mem.dtype)})
            afters.append(after.name)
        inputs = [around._var_recursive(var.name) for var in self.inputs]
        return (
            {"inputs": inputs, "initial_states": inits, "parameters": parameters},
            {"outputs": self.outputs, "step_scopes": scopes},
            {"has_states": len(befores) > 0, "ex_states": befores, "states": afters, "sub_block": body},
        )


def around_names(body: Block, own: Iterable[str]) -> list[str]:
    """Returns the names that the body's ops read but do not write, without `own`; each once, in order."""
    written = set(own)
    for op in body.ops:
        written.update(op.output_arg_names)
    names: dict[str, None] = {}
    for op in body.ops:
        names.update((name, None) for name in op.input_arg_names if name not in written)
    return list(names)
