"""Checks of saved programs: Fluid's fleet.utils.utils, which compares what was trained with what was saved."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.feeder import DataFeeder as DataFeeder
    from penstock._src.fleet.program_tools import all_vars_out_fn as all_vars_out_fn
    from penstock._src.fleet.program_tools import append_load_op as append_load_op, append_save_op as append_save_op
    from penstock._src.fleet.program_tools import check_pruned_program_vars
    from penstock._src.fleet.program_tools import feed_fetch_type_list as feed_fetch_type_list, graphviz
    from penstock._src.fleet.program_tools import load_program, load_program_binary as load_program_binary
    from penstock._src.fleet.program_tools import load_program_text as load_program_text, load_var as load_var
    from penstock._src.fleet.program_tools import logger as logger, ops_out_fn as ops_out_fn, parse_program
    from penstock._src.fleet.program_tools import persistable_vars_out_fn as persistable_vars_out_fn
    from penstock._src.fleet.program_tools import program_type_trans, save_program, save_var as save_var
    from penstock._src.fleet.saved_models import check_not_expected_ops as check_not_expected_ops
    from penstock._src.fleet.saved_models import check_saved_vars_try_dump, feed_gen as feed_gen
    from penstock._src.fleet.saved_models import not_expected_op_types as not_expected_op_types, reader as reader
    from penstock._src.fleet.saved_models import try_load_model_vars as try_load_model_vars
    from penstock._src.ir.framework import program_guard as program_guard
    from penstock._src.ir.lod_tensor import create_lod_tensor as create_lod_tensor
    from penstock._src.ir.program import Program as Program

__all__ = [
    'check_pruned_program_vars', 'check_saved_vars_try_dump', 'graphviz', 'load_program', 'parse_program',
    'program_type_trans', 'save_program',
]

facade.make(__name__)
