"""Rewrites a program to mixed precision: casts around ops, the roles of gradients, and the scaling of the loss.

Names, order and attributes of the added ops are those of Fluid 1.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.ir.program import OpRole
from penstock._src.ir.types import VarDesc
from penstock._src.layers import comparison, control_flow, search, tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.types import VarType
    from penstock._src.ir.variable import Variable
    from penstock._src.mixed_precision.fp16_lists import AutoMixedPrecisionLists


_FP16, _FP32 = VarDesc.VarType.FP16, VarDesc.VarType.FP32
_KINDS = (VarDesc.VarType.LOD_TENSOR, VarDesc.VarType.SELECTED_ROWS, VarDesc.VarType.LOD_TENSOR_ARRAY)
_SUFFIX = {_FP16: ".cast_fp16", _FP32: ".cast_fp32"}


def _cast_inputs(block: Block, op: Operator, position: int, source: VarType, target: VarType) -> int:
    """Inserts casts of the op's inputs from one type to the other; returns how many."""
    casts = 0
    for slot in sorted(op.input_names):  # the order of the casts, as in Fluid
        if source == _FP32 and op.type == "batch_norm" and slot != "X":
            continue  # scale, bias and statistics stay in float32
        for name in op.input(slot):
            var = block.var(name)
            if var.type not in _KINDS:
                continue
            if var.dtype != source:
                if op.has_attr("in_dtype"):
                    op._set_attr("in_dtype", target)
                continue
            cast_name = name + _SUFFIX[target]
            if cast_name not in block.vars or block.var(cast_name).dtype != target:
                out = block.create_var(name=cast_name, dtype=target, persistable=False, stop_gradient=False)
                block._insert_op(
                    position,
                    type="cast",
                    inputs={"X": var},
                    outputs={"Out": out},
                    attrs={"in_dtype": source, "out_dtype": target},
                )
                casts += 1
            op._rename_input(name, cast_name)
            op._rename_output(name, cast_name)
    return casts


def _halve_outputs(block: Block, op: Operator) -> None:
    """Declares the float32 outputs of an op as float16."""
    for slot in op.output_names:
        if op.type == "batch_norm" and slot != "Y":
            continue
        for name in op.output(slot):
            var = block.var(name)
            if var.type in _KINDS and var.dtype == _FP32:
                var.dtype = _FP16
                if op.has_attr("out_dtype"):
                    op._set_attr("out_dtype", _FP16)


class _Choice:
    """Divides the ops of a block into those computed in float16, in float32, and as they are."""

    def __init__(self, ops: list[Operator], lists: AutoMixedPrecisionLists) -> None:
        self._lists = lists
        self._writers: dict[str, list[int]] = {}  # name -> positions of the ops that write it
        self._ops = ops
        for position, op in enumerate(ops):
            for name in op.output_arg_names:
                self._writers.setdefault(name, []).append(position)
        self.black: set[int] = set()  # positions
        self.white: set[int] = set()

    def choose(self) -> _Choice:
        lists, named = self._lists, set(self._lists.black_varnames or ())
        for position, op in enumerate(self._ops):
            if named and not named.isdisjoint(op.input_arg_names + op.output_arg_names):
                self.black.add(position)
            elif op.type in lists.black_list:
                self.black.add(position)
            elif op.type in lists.white_list:
                self.white.add(position)
            elif op.type in lists.gray_list:
                self._choose_as_before(position, op)
            else:
                self.black.add(position)
        return self

    def _choose_as_before(self, position: int, op: Operator) -> None:
        found = [self._before(position, name) for name in op.input_arg_names]
        before = [other for other in found if other is not None]
        lists = self._lists
        if any(other in self.black or self._ops[other].type in lists.black_list for other in before):
            self.black.add(position)
        elif any(other in self.white or self._ops[other].type in lists.white_list for other in before):
            self.white.add(position)

    def _before(self, position: int, name: str) -> int | None:
        """Returns the op that decides about a reader of a variable: its last writer, or the one before this op."""
        writers = self._writers.get(name)
        if not writers:
            return None
        if writers[-1] != position:
            return writers[-1]
        return writers[-2] if len(writers) > 1 else None


def rewrite_program(main_prog: Program, amp_lists: AutoMixedPrecisionLists) -> None:
    """Inserts casts into the global block, so that the ops of the white list compute in float16 and those of the black
    list in float32.

    Args:
        main_prog (Program): a program without a backward pass, which is changed.
        amp_lists (AutoMixedPrecisionLists): the lists.

    Example:
        from penstock.fluid.contrib.mixed_precision import AutoMixedPrecisionLists, fp16_utils
        fluid.layers.fc(fluid.data('x', [None, 4]), 1)
        fp16_utils.rewrite_program(fluid.default_main_program(), AutoMixedPrecisionLists())
    """
    block = main_prog.global_block()
    ops = list(block.ops)
    choice = _Choice(ops, amp_lists).choose()
    inserted = 0
    for position, op in enumerate(ops):
        if position in choice.black:
            inserted += _cast_inputs(block, op, position + inserted, _FP16, _FP32)
        elif position in choice.white:
            inserted += _cast_inputs(block, op, position + inserted, _FP32, _FP16)
            _halve_outputs(block, op)


def update_role_var_grad(main_prog: Program, params_grads: Sequence[Sequence[Variable]]) -> None:
    """Moves the casts of parameters' gradients from float16 behind the backward pass, and marks the gradients in
    float16 as those of the parameters, so that ranks exchange half the bytes.

    Args:
        main_prog (Program): the program, which is changed.
        params_grads (list): (parameter, gradient) pairs.

    Raises:
        ValueError: the result of such a cast is used before the updates.

    Example:
        from penstock.fluid.contrib.mixed_precision import fp16_utils
        fp16_utils.update_role_var_grad(fluid.default_main_program(), [])
    """
    block = main_prog.global_block()
    for param, grad in params_grads:
        ops = list(block.ops)
        position = max((i for i, op in enumerate(ops) if grad.name in op.output_arg_names), default=None)
        if position is None or grad.dtype != _FP32 or ops[position].type != "cast":
            continue
        cast = ops[position]
        role: Any = cast.attr("op_role")
        if not int(role) & OpRole.Backward or not cast.has_attr("op_role_var"):
            raise program_error(
                "E-program-half",
                f"mixed precision: the cast of {grad.name}, a gradient, is not an op of the backward pass",
            )
        half = cast.input("X")[0]
        writers = [op for op in ops[:position] if half in op.output_arg_names]
        if len(writers) != 1:
            raise program_error(
                "E-program-half", f"mixed precision: {half} must be written by one op, but {len(writers)} write it"
            )
        cast._remove_attr("op_role_var")
        writer = writers[0]
        pair: Any = writer.attr("op_role_var") if writer.has_attr("op_role_var") else []
        writer._set_attr("op_role_var", [param.name, half, *pair])
        cast._set_attr("op_role", OpRole.Optimize)
        if position == len(ops) - 1:
            continue
        readers = [op.type for op in ops[position + 1 :] if grad.name in op.input_arg_names]
        if readers:
            raise program_error(
                "E-program-half", f"mixed precision: {grad.name} is used by {readers[0]} before the updates"
            )
        block.desc.append_op().copy_from(cast.desc)
        block.desc._remove_op(position, position + 1)


def update_loss_scaling(
    is_overall_finite: Variable,
    prev_loss_scaling: Variable,
    num_good_steps: Variable,
    num_bad_steps: Variable,
    incr_every_n_steps: Variable,
    decr_every_n_nan_or_inf: Variable,
    incr_ratio: float,
    decr_ratio: float,
) -> None:
    """Adds ops that adapt the scaling of the loss to whether all gradients of a step are finite.

    After `incr_every_n_steps` steps in a row with finite gradients the scaling is multiplied by `incr_ratio`, unless
    it would become infinite; after `decr_every_n_nan_or_inf` steps with others it is multiplied by `decr_ratio`, but
    does not fall below 1.

    Args:
        is_overall_finite (Variable): bool, shape [1]: whether all gradients are finite.
        prev_loss_scaling (Variable): float32, shape [1]: the scaling, which is updated.
        num_good_steps (Variable): int32, shape [1]: counts steps with finite gradients.
        num_bad_steps (Variable): int32, shape [1]: counts steps with others.
        incr_every_n_steps (Variable): int32, shape [1].
        decr_every_n_nan_or_inf (Variable): int32, shape [1].
        incr_ratio (float): above 1.
        decr_ratio (float): below 1.

    Example:
        from penstock.fluid.contrib.mixed_precision import fp16_utils
        counters = [fluid.layers.create_global_var([1], 0, 'int32', persistable=True) for _ in range(2)]
        scaling = fluid.layers.create_global_var([1], 8.0, 'float32', persistable=True)
        limits = [fluid.layers.fill_constant([1], 'int32', value) for value in (1000, 2)]
        finite = fluid.layers.isfinite(fluid.data('x', [None, 4]))
        fp16_utils.update_loss_scaling(finite, scaling, *counters, *limits, 2.0, 0.8)
    """
    zero = tensor.fill_constant(shape=[1], dtype="int32", value=0)

    def reset() -> None:
        tensor.assign(zero, num_good_steps)
        tensor.assign(zero, num_bad_steps)

    with control_flow.Switch() as finite:
        with finite.case(is_overall_finite):
            grows = comparison.less_than(incr_every_n_steps, num_good_steps + 1)
            with control_flow.Switch() as enough:
                with enough.case(grows):
                    grown = prev_loss_scaling * incr_ratio
                    still_finite = search.isfinite(grown)
                    with control_flow.Switch() as kept:
                        with kept.case(still_finite):
                            tensor.assign(grown, prev_loss_scaling)
                        with kept.default():
                            pass
                    reset()
                with enough.default():
                    comparison.increment(num_good_steps)
                    tensor.assign(zero, num_bad_steps)
        with finite.default():
            falls = comparison.less_than(decr_every_n_nan_or_inf, num_bad_steps + 1)
            with control_flow.Switch() as enough:
                with enough.case(falls):
                    fallen = prev_loss_scaling * decr_ratio
                    one = tensor.fill_constant(shape=[1], dtype="float32", value=1.0)
                    too_low = comparison.less_than(fallen, one)
                    with control_flow.Switch() as kept:
                        with kept.case(too_low):
                            tensor.assign(one, prev_loss_scaling)
                        with kept.default():
                            tensor.assign(fallen, prev_loss_scaling)
                    reset()
                with enough.default():
                    tensor.assign(zero, num_good_steps)
                    comparison.increment(num_bad_steps)
