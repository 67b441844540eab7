"""Fluid's PassBuilder: the list of passes that a BuildStrategy stands for, which scripts read and change.

Passes that only decide how Fluid schedules or fuses ops have no effect, because the executor plans that itself. Those
that change what is computed act, when the program first runs: multi_batch_merge_pass (batch_merge.py),
sync_batch_norm_pass and graph_viz_pass. Others are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import not_built, program_error, suggestion
from penstock._src.debug import debugger
from penstock._src.executor import batch_merge

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.executor.build_options import BuildStrategy
    from penstock._src.ir.graph import Graph
    from penstock._src.ir.program import Program


# Fluid's passes for training that do not change what is computed.
_SCHEDULING = frozenset(
    """
    add_reader_dependency_pass all_reduce_deps_pass all_reduce_mode_multi_devices_pass async_multi_devices_pass
    backward_optimizer_op_deps_pass buffer_shared_cross_op_memory_reuse_pass buffer_shared_inplace_pass
    coalesce_grad_tensor_pass dist_multi_devices_pass eager_deletion_pass fuse_adam_op_pass fuse_all_reduce_op_pass
    fuse_bn_act_pass fuse_elewise_add_act_pass fuse_momentum_op_pass fuse_relu_depthwise_conv_pass fuse_sgd_op_pass
    fusion_group_pass graph_to_program_pass infer_clean_graph_pass lock_free_optimize_pass memory_optimize_pass
    mkldnn_placement_pass modify_op_lock_and_record_event_pass multi_devices_check_pass multi_devices_print_pass
    reduce_mode_multi_devices_pass reference_count_pass runtime_context_cache_pass sequential_execution_pass
""".split()
)
_ACTING = frozenset(["graph_viz_pass", "multi_batch_merge_pass", "sync_batch_norm_pass"])


class Pass:
    """A pass of a PassBuilder, with the attributes that were set. PassBuilder.append_pass makes one.

    Args:
        pass_type (str): its name.

    Example:
        builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
        merge = builder.append_pass('multi_batch_merge_pass')
        merge.set('num_repeats', 2)
    """

    def __init__(self, pass_type: str = "") -> None:
        self._type = pass_type
        self._attrs: dict[str, object] = {}

    def type(self) -> str:
        """Returns the name of the pass.

        Returns:
            str: such as 'graph_viz_pass'.
        """
        return self._type

    def has(self, attr_name: str) -> bool:
        """Tells whether an attribute is set.

        Args:
            attr_name (str): its name.

        Returns:
            bool: whether it is.
        """
        return attr_name in self._attrs

    def set(self, name: str, attr: object) -> None:
        """Sets an attribute.

        Args:
            name (str): its name.
            attr (object): a bool, an int, a text or a set of texts.
        """
        self._attrs[name] = attr

    set_not_owned = set

    def apply(self, graph: Graph) -> Any:
        """Raises an error: passes act on programs when they first run, not on a Graph.

        Args:
            graph (Graph): not used.

        Raises:
            NotImplementedError: always.
        """
        raise not_built(
            "Pass.apply: a pass acts on the program of a CompiledProgram, when it first runs; "
            "append it with BuildStrategy._finalize_strategy_and_create_passes()"
        )

    def _get(self, name: str, default: object = None) -> Any:  # what the user has set
        return self._attrs.get(name, default)


class PassBuilder:
    """The passes that a BuildStrategy stands for. BuildStrategy._finalize_strategy_and_create_passes makes one.

    Example:
        builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
        builder.append_pass('graph_viz_pass')
        assert builder.all_passes()[-1].type() == 'graph_viz_pass'
    """

    def __init__(self) -> None:
        self._passes: list[Pass] = []

    def append_pass(self, pass_type: str) -> Pass:
        """Appends a pass.

        Args:
            pass_type (str): its name, such as 'multi_batch_merge_pass'.

        Returns:
            Pass: the new pass.

        Raises:
            penstock.ProgramError: there is no such pass (E-pass-unknown).
            NotImplementedError: the pass changes what a program computes, and is not built.
        """
        return self.insert_pass(len(self._passes), pass_type)

    def insert_pass(self, idx: int, pass_type: str) -> Pass:
        """Inserts a pass.

        Args:
            idx (int): its position.
            pass_type (str): its name.

        Returns:
            Pass: the new pass.

        Raises:
            penstock.ProgramError: there is no such pass or position (E-pass-unknown).
            NotImplementedError: the pass changes what a program computes, and is not built.
        """
        if not 0 <= idx <= len(self._passes):
            raise program_error("E-pass-unknown", f"PassBuilder: position {idx!r} is not from 0 to {len(self._passes)}")
        made = Pass(_known(pass_type))
        self._passes.insert(idx, made)
        return made

    def remove_pass(self, idx: int) -> None:
        """Removes a pass.

        Args:
            idx (int): its position.

        Raises:
            penstock.ProgramError: there is no such position (E-pass-unknown).
        """
        if not 0 <= idx < len(self._passes):
            raise program_error(
                "E-pass-unknown", f"PassBuilder: there is no pass {idx!r}; there are {len(self._passes)}"
            )
        del self._passes[idx]

    def all_passes(self) -> list[Pass]:
        """Returns the passes in their order.

        Returns:
            list[Pass]: a new list of the passes themselves.
        """
        return list(self._passes)


def _known(pass_type: str) -> str:
    if pass_type in _SCHEDULING or pass_type in _ACTING:
        return pass_type
    if isinstance(pass_type, str) and pass_type in _REFUSED:
        raise not_built(
            f"PassBuilder: {pass_type} is a pass for inference that changes the program, which is not "
            "built; load_inference_model gives a program that runs as it was saved"
        )
    raise program_error(
        "E-pass-unknown",
        f"PassBuilder: there is no pass {pass_type!r}{suggestion(str(pass_type), _SCHEDULING | _ACTING)}",
    )


# Fluid's passes that rewrite programs for inference.
_REFUSED = frozenset(
    """
    attention_lstm_fuse_pass conv_affine_channel_fuse_pass conv_bn_fuse_pass conv_elementwise_add_act_fuse_pass
    conv_elementwise_add_fuse_pass conv_eltwiseadd_affine_channel_fuse_pass conv_eltwiseadd_bn_fuse_pass
    delete_quant_dequant_op_pass embedding_eltwise_layernorm_fuse_pass embedding_fc_lstm_fuse_pass
    fc_elementwise_layernorm_fuse_pass fc_fuse_pass fc_gru_fuse_pass fc_lstm_fuse_pass is_test_pass
    mul_gru_fuse_pass mul_lstm_fuse_pass multihead_matmul_fuse_pass quant_conv2d_dequant_fuse_pass
    repeated_fc_relu_fuse_pass seq_concat_fc_fuse_pass seqconv_eltadd_relu_fuse_pass seqpool_concat_fuse_pass
    seqpool_cvm_concat_fuse_pass simplify_with_basic_ops_pass skip_layernorm_fuse_pass squared_mat_sub_fuse_pass
    transpose_flatten_concat_fuse_pass
""".split()
)


def builder_of(strategy: BuildStrategy) -> PassBuilder:
    """Returns the PassBuilder that a BuildStrategy stands for, in Fluid's order."""
    builder = PassBuilder()
    multi_device = (
        "async_multi_devices_pass"
        if strategy.async_mode
        else "dist_multi_devices_pass"
        if strategy.is_distribution
        else "reduce_mode_multi_devices_pass"
        if strategy.reduce_strategy == 1
        else "all_reduce_mode_multi_devices_pass"
    )
    draws, reduces = bool(strategy.debug_graphviz_path), multi_device == "reduce_mode_multi_devices_pass"
    fuses = strategy.fuse_all_reduce_ops and multi_device == "all_reduce_mode_multi_devices_pass"
    for name, wanted in (
        ("graph_viz_pass", draws),
        ("sequential_execution_pass", strategy.enable_sequential_execution),
        ("sync_batch_norm_pass", strategy.sync_batch_norm),
        ("fuse_relu_depthwise_conv_pass", strategy.fuse_relu_depthwise_conv),
        ("fuse_bn_act_pass", strategy.fuse_bn_act_ops),
        ("fuse_elewise_add_act_pass", strategy.fuse_elewise_add_act_ops),
        ("coalesce_grad_tensor_pass", fuses),
        ("fuse_adam_op_pass", strategy.fuse_all_optimizer_ops),
        ("fuse_sgd_op_pass", strategy.fuse_all_optimizer_ops),
        ("fuse_momentum_op_pass", strategy.fuse_all_optimizer_ops),
        ("graph_viz_pass", draws),
        ("add_reader_dependency_pass", True),
        (multi_device, True),
        ("fuse_all_reduce_op_pass", fuses),
        ("multi_devices_print_pass", draws),
        ("all_reduce_deps_pass", not reduces),
        ("backward_optimizer_op_deps_pass", strategy.enable_backward_optimizer_op_deps and strategy.num_trainers > 1),
        ("runtime_context_cache_pass", strategy.cache_runtime_context),
        ("modify_op_lock_and_record_event_pass", strategy.remove_unnecessary_lock),
        ("multi_devices_check_pass", True),
    ):
        if wanted:
            builder.append_pass(name)
    paths = [strategy.debug_graphviz_path + end for end in ("_original_graph", "_fused_graph")]
    for drawn, path in zip([one for one in builder.all_passes() if one.type() == "graph_viz_pass"], paths):
        drawn.set("graph_viz_path", path)
    return builder


def apply(program: Program, builder: PassBuilder) -> Program:
    """Returns a program after the passes that act, in their order; the given program does not change."""
    for one in builder.all_passes():
        if one.type() == "multi_batch_merge_pass":
            program = batch_merge.merged(program, one._get("num_repeats"))
        elif one.type() == "graph_viz_pass" and one.has("graph_viz_path"):
            debugger.draw_block_graphviz(program.global_block(), path=one._get("graph_viz_path"))
    return program


def syncs_batch_norm(builder: PassBuilder) -> bool:
    """Returns whether a pass asks for the moments of all devices in batch_norm."""
    return any(one.type() == "sync_batch_norm_pass" for one in builder.all_passes())
