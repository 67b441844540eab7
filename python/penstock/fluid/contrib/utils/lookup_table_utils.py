"""Tables with is_distributed=True outside the job that trained them: programs that look up in the saved rows, and
pservers that begin from them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.lookup_table_utils import convert_dist_to_sparse_program, get_inference_model
    from penstock._src.contrib.lookup_table_utils import load_persistables_for_increment
    from penstock._src.contrib.lookup_table_utils import load_persistables_for_inference
    from penstock._src.executor.scopes import global_scope as global_scope
    from penstock._src.io.inference_model import append_fetch_ops as append_fetch_ops
    from penstock._src.io.inference_model import prepend_feed_ops as prepend_feed_ops
    from penstock._src.ir.program import Program as Program

__all__ = [
    'convert_dist_to_sparse_program', 'get_inference_model', 'load_persistables_for_increment',
    'load_persistables_for_inference',
]

facade.make(__name__)
