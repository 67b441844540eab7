"""Gradients of a loss. C++ adds the ops; this module converts between names and handles."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.optimizer.backward import _append_grad_suffix_ as _append_grad_suffix_, _as_list as _as_list
    from penstock._src.optimizer.backward import _find_no_grad_vars as _find_no_grad_vars
    from penstock._src.optimizer.backward import _find_op_path_ as _find_op_path_, append_backward
    from penstock._src.optimizer.backward import calc_gradient as calc_gradient, call_back as call_back, gradients
    from penstock._src.optimizer.backward import names_of as names_of, pairs_of as pairs_of
    from penstock._src.optimizer.backward import stopped_names as stopped_names
    from penstock.fluid import unique_name as unique_name

__all__ = ['append_backward', 'gradients']

facade.make(__name__)
