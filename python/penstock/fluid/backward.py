"""Gradients of a loss. C++ adds the ops; this module converts between names and handles."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade
from penstock._src.optimizer.backward import (
    _append_grad_suffix_ as _append_grad_suffix_, _as_list as _as_list, _find_no_grad_vars as _find_no_grad_vars,
    _find_op_path_ as _find_op_path_, append_backward as append_backward, calc_gradient as calc_gradient,
    call_back as call_back, gradients as gradients, names_of as names_of, pairs_of as pairs_of,
    stopped_names as stopped_names,
)
from penstock.fluid import unique_name as unique_name

__all__ = ['append_backward', 'gradients']

facade.make(__name__, elsewhere=('_append_grad_suffix_', 'unique_name'))
