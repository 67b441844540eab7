"""Program, Block, Operator, Variable: handles on a program that C++ owns.

A handle is (program, block, id or name); an object always has the same handle, so `is` works. A handle whose op or
variable was removed raises penstock.StateError when it is used. Only facts without a field in C++, such as a
parameter's regularizer, are kept in Python, in Program._parameter_attrs.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.base.flags import get_flags, set_flags
    from penstock._src.imperative.framework_names import ComplexVariable, ParamBase as ParamBase
    from penstock._src.imperative.framework_names import _dygraph_tracer as _dygraph_tracer
    from penstock._src.imperative.framework_names import dygraph_not_support as dygraph_not_support
    from penstock._src.imperative.framework_names import dygraph_only as dygraph_only
    from penstock._src.ir.block import Block
    from penstock._src.ir.fluid_version import EMPTY_VAR_NAME as EMPTY_VAR_NAME, FLUID_VERSION as FLUID_VERSION
    from penstock._src.ir.fluid_version import GRAD_VAR_SUFFIX as GRAD_VAR_SUFFIX, TEMP_VAR_NAME as TEMP_VAR_NAME
    from penstock._src.ir.fluid_version import ZERO_VAR_SUFFIX as ZERO_VAR_SUFFIX, api_version as api_version
    from penstock._src.ir.fluid_version import convert_np_dtype_to_dtype_ as convert_np_dtype_to_dtype_
    from penstock._src.ir.fluid_version import in_dygraph_mode, load_op_library, require_version
    from penstock._src.ir.framework import _get_var as _get_var, default_main_program, default_startup_program
    from penstock._src.ir.framework import device_guard, name_scope, program_guard
    from penstock._src.ir.framework import switch_main_program as switch_main_program
    from penstock._src.ir.framework import switch_startup_program as switch_startup_program
    from penstock._src.ir.graph import generate_control_dev_var_name as generate_control_dev_var_name
    from penstock._src.ir.graph_nodes import IrNode as IrNode, IrOpNode as IrOpNode, IrVarNode as IrVarNode
    from penstock._src.ir.name_scope import NameScope as NameScope
    from penstock._src.ir.op_protos import OpProtoHolder
    from penstock._src.ir.op_scope import _name_scopes as _name_scopes, name_scopes as name_scopes
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.places import cpu_places, cuda_pinned_places, cuda_places
    from penstock._src.ir.program import IrGraph as IrGraph, OpRole as OpRole, Program
    from penstock._src.ir.registry import get_all_op_protos as get_all_op_protos
    from penstock._src.ir.types import dtype_is_floating as dtype_is_floating, is_compiled_with_cuda
    from penstock._src.ir.variable import Parameter, Variable, grad_var_name
    from penstock.fluid import core as core

__all__ = [
    'Block', 'ComplexVariable', 'OpProtoHolder', 'Operator', 'Parameter', 'Program', 'Variable', 'cpu_places',
    'cuda_pinned_places', 'cuda_places', 'default_main_program', 'default_startup_program', 'device_guard',
    'get_flags', 'grad_var_name', 'in_dygraph_mode', 'is_compiled_with_cuda', 'load_op_library', 'name_scope',
    'program_guard', 'require_version', 'set_flags',
]

facade.make(__name__)
