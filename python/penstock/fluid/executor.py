"""Executor: runs programs. C++ compiles and runs them; this module converts feeds and fetches."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.executor import Executor
    from penstock._src.executor.feed_checks import check_feed_shape_type as check_feed_shape_type
    from penstock._src.executor.feed_checks import dimension_is_compatible_with as dimension_is_compatible_with
    from penstock._src.executor.feed_checks import dtype_is_compatible_with as dtype_is_compatible_with
    from penstock._src.executor.feed_checks import has_feed_operators as has_feed_operators
    from penstock._src.executor.feed_checks import has_fetch_operators as has_fetch_operators
    from penstock._src.executor.fetch_handler import FetchHandler as FetchHandler
    from penstock._src.executor.fetches import _as_lodtensor as _as_lodtensor, _fetch_var as _fetch_var
    from penstock._src.executor.fetches import array_kind as array_kind, as_numpy as as_numpy
    from penstock._src.executor.fetches import empties_are_vectors as empties_are_vectors
    from penstock._src.executor.scopes import global_scope, scope_guard
    from penstock._src.ir.operator import Operator as Operator
    from penstock._src.ir.program import Program as Program
    from penstock._src.ir.variable import Variable as Variable
    from penstock.fluid import core as core

__all__ = ['Executor', 'global_scope', 'scope_guard']

facade.make(__name__)
