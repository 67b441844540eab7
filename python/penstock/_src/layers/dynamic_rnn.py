"""DynamicRNN: ops that run once for each step of sequences of any length."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._src.base.errors import state_error
from penstock._src.ir import unique_name
from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers import tensor, tensor_array
from penstock._src.layers.helper import LayerHelper
from penstock._src.layers.loops import While

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from penstock._src.ir.block import Block


class DynamicRNN:
    """Runs ops once for each step of sequences of different lengths.

    Each step runs only on the sequences that have not ended.

    Args:
        name (str | None): prefix of the names of the variables that the layer creates.

    Example:
        sentence = fluid.data('sentence', [None, 16], lod_level=1)
        rnn = fluid.layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(sentence)
            before = rnn.memory(shape=[32])
            state = fluid.layers.fc([word, before], 32, act='tanh')
            rnn.update_memory(before, state)
            rnn.output(state)
        states = rnn()
    """

    BEFORE_RNN, IN_RNN, AFTER_RNN = range(3)

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self.status = DynamicRNN.BEFORE_RNN
        self.lod_rank_table: Any = None  # Variables, once the block or its first input has created them
        self.max_seq_len: Any = None
        self.step_idx: Any = None
        self.zero_idx: Any = None
        self.cond = self.helper.create_variable_for_type_inference("bool")
        self.while_op = While(self.cond)
        self.input_array: list[tuple[Variable, VarType]] = []
        self.mem_dict: dict[str, Variable] = {}
        self.mem_link: list[tuple[Variable, Variable]] = []
        self.output_array: list[Variable] = []
        self.outputs: list[Variable] = []

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Declares an input of the network.

        Args:
            x (Variable): shape [rows, ...] with sequences.
            level (int): the level of the sequences.

        Returns:
            Variable: the rows of the step, shape [sequences in the step, ...], same type as `x`.

        Raises:
            ValueError: called outside the block.
            TypeError: `x` is not a Variable.
        """
        self._require_inside("step_input")
        _require_variable("step_input", x)
        around = self._around()
        if self.lod_rank_table is None:
            self.lod_rank_table = around.create_var(
                name=unique_name.generate("lod_rank_table"), type=VarType.LOD_RANK_TABLE, stop_gradient=True
            )
            around.append_op("lod_rank_table", {"X": x}, {"Out": self.lod_rank_table}, {"level": level})
            self.max_seq_len = around.create_var(name=unique_name.generate("dynamic_rnn_max_seq_len"), dtype="int64")
            around.append_op("max_sequence_len", {"RankTable": self.lod_rank_table}, {"Out": self.max_seq_len})
            self.cond.stop_gradient = True
            around.append_op(
                "less_than", {"X": self.step_idx, "Y": self.max_seq_len}, {"Out": self.cond}, {"force_cpu": True}
            )
        array = around.create_var(
            name=unique_name.generate("dynamic_rnn_input_array"), type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
        )
        self.input_array.append((array, x.dtype))
        around.append_op("lod_tensor_to_array", {"X": x, "RankTable": self.lod_rank_table}, {"Out": array})
        return tensor_array.array_read(array, self.step_idx)

    def static_input(self, x: Variable) -> Variable:
        """Declares a variable that every step reads whole, except the parts of sequences that have ended.

        Args:
            x (Variable): a row or a sequence for each sequence of the inputs, shape [rows, ...], any type.

        Returns:
            Variable: the parts of the sequences that take part in the step, same type as `x`.

        Raises:
            ValueError: called outside the block.
            RuntimeError: there is no `step_input` before it.
            TypeError: `x` is not a Variable.
        """
        self._require_inside("static_input")
        _require_variable("static_input", x)
        self._require_input("static_input")
        reordered = self._around().create_var(
            name=unique_name.generate("dynamic_rnn_static_input_reordered"), type=VarType.LOD_TENSOR, dtype=x.dtype
        )
        self._reorder(x, reordered)
        return tensor_array.shrink_memory(reordered, self.step_idx, self.lod_rank_table)

    def _reorder(self, x: Variable, out: Variable) -> None:
        self._around().append_op("reorder_lod_tensor_by_rank", {"X": x, "RankTable": self.lod_rank_table}, {"Out": out})

    @contextlib.contextmanager
    def _steps(self) -> Iterator[None]:
        if self.status != DynamicRNN.BEFORE_RNN:
            raise ValueError("a DynamicRNN has only one block()")
        self.step_idx = tensor.fill_constant([1], "int64", 0, force_cpu=True)
        self.step_idx.stop_gradient = False
        self.status = DynamicRNN.IN_RNN
        with self.while_op.block():
            yield
            self._require_input("block")
            helper = self.helper
            helper.append_op("increment", {"X": self.step_idx}, {"Out": self.step_idx}, {"step": 1.0})
            for new, array in self.mem_link:
                tensor_array.array_write(new, self.step_idx, array)
            # With a separate helper, because in Fluid this is a layer, which generates a name.
            LayerHelper("less_than").append_op(
                "less_than", {"X": self.step_idx, "Y": self.max_seq_len}, {"Out": self.cond}, {"force_cpu": True}
            )
        self.status = DynamicRNN.AFTER_RNN
        for array in self.output_array:
            self.outputs.append(tensor_array.array_to_lod_tensor(array, self.lod_rank_table))

    def block(self) -> AbstractContextManager[Any]:
        """Opens the block of a step.

        Returns:
            A context manager; ops created inside run in each step.

        Raises:
            ValueError: the block was opened before.
        """
        return self._steps()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.status != DynamicRNN.AFTER_RNN:
            raise ValueError("a DynamicRNN returns its outputs after its block has ended")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: str | VarType = "float32",
    ) -> Variable:
        """Declares a state that each step passes to the next; it has a row for each sequence.

        Args:
            init (Variable | None): its value in the first step, shape [sequences, ...]; None: a constant.
            shape (list[int] | None): shape of a row of the constant.
            value (float): value of the constant.
            need_reorder (bool): whether the rows of `init` are in the order of the input's sequences, so that they
                must be sorted like these, by length.
            dtype (str | VarType): type of the constant.

        Returns:
            Variable: the value of the previous step, shape [sequences in the step, ...].

        Raises:
            ValueError: called outside the block, before `step_input`, or with neither `init` nor `shape`.
        """
        self._require_inside("memory")
        self._make_zero()
        if init is not None:
            _require_variable("memory", init)
            self._require_input("memory")
            return self._memory_from(self._reordered_init(init) if need_reorder else init)
        if not self.input_array:
            raise ValueError("memory: call step_input first: a memory has one row for each of its sequences")
        if shape is None:
            raise ValueError("a memory needs init or shape")
        around = self._around()
        init = around.create_var(name=unique_name.generate("mem_init"), dtype=to_dtype(dtype))
        array, row_type = self.input_array[0]
        first = around.create_var(name=unique_name.generate("in0"), dtype=row_type)
        around.append_op("read_from_array", {"X": array, "I": self.zero_idx}, {"Out": first})
        around.append_op(
            "fill_constant_batch_size_like",
            {"Input": first},
            {"Out": init},
            {"shape": [-1] + list(shape), "value": float(value), "dtype": int(init.dtype)},
        )
        return self._memory_from(init)

    def _reordered_init(self, init: Variable) -> Variable:
        reordered = self._around().create_var(
            name=unique_name.generate("dynamic_rnn_mem_init_reordered"), type=VarType.LOD_TENSOR, dtype=init.dtype
        )
        self._reorder(init, reordered)
        return reordered

    def _memory_from(self, init: Variable) -> Variable:
        around = self._around()
        array = around.create_var(
            name=unique_name.generate("dynamic_rnn_mem_array"), type=VarType.LOD_TENSOR_ARRAY, dtype=init.dtype
        )
        around.append_op("write_to_array", {"X": init, "I": self.zero_idx}, {"Out": array})
        before = tensor_array.array_read(array, self.step_idx)
        before = tensor_array.shrink_memory(before, self.step_idx, self.lod_rank_table)
        self.mem_dict[before.name] = array
        return before

    def _make_zero(self) -> None:
        if self.zero_idx is not None:
            return
        around = self._around()
        self.zero_idx = around.create_var(name=unique_name.generate("zero_idx"), dtype="int64")
        around.append_op(
            "fill_constant",
            {},
            {"Out": self.zero_idx},
            {"shape": [1], "dtype": int(VarType.INT64), "value": 0.0, "force_cpu": True},
        )

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Sets the value of a state in the next step.

        Args:
            ex_mem (Variable): the result of `memory`.
            new_mem (Variable): the new value, same shape and type as `ex_mem`.

        Raises:
            ValueError: called outside the block, or `ex_mem` is not a memory of this network.
            TypeError: an argument is not a Variable.
        """
        self._require_inside("update_memory")
        _require_variable("update_memory", ex_mem)
        _require_variable("update_memory", new_mem)
        array = self.mem_dict.get(ex_mem.name)
        if array is None:
            raise ValueError(f"update_memory: {ex_mem.name} is not a memory of this DynamicRNN")
        self.mem_link.append((new_mem, array))

    def output(self, *outputs: Variable) -> None:
        """Declares outputs of the network; their sequences have the lengths of the input's sequences.

        Args:
            outputs (Variable): the values of the outputs in the step.

        Raises:
            ValueError: called outside the block.
            TypeError: an output is not a Variable.
        """
        self._require_inside("output")
        around = self._around()
        for each in outputs:
            _require_variable("output", each)
            array = around.create_var(
                name=unique_name.generate("_".join([self.helper.name, "output_array", each.name])),
                type=VarType.LOD_TENSOR_ARRAY,
                dtype=each.dtype,
            )
            tensor_array.array_write(each, self.step_idx, array)
            self.output_array.append(array)

    def _around(self) -> Block:
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)

    def _require_inside(self, method: str) -> None:
        if self.status != DynamicRNN.IN_RNN:
            raise ValueError(f"{method} must be called inside the block of a DynamicRNN")

    def _require_input(self, method: str) -> None:
        if self.lod_rank_table is None:
            raise state_error("E-layer-order", f"{method}: call step_input first: it determines the number of steps")


def _require_variable(method: str, var: object) -> None:
    if not isinstance(var, Variable):
        raise TypeError(f"DynamicRNN.{method} takes Variables, not {type(var).__name__}")
