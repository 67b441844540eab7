"""layers.data declares a variable that the caller feeds; layers.py_reader declares variables that a reader fills."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.feeder import DataFeeder as DataFeeder
    from penstock._src.data.py_reader import create_py_reader_by_data, data, double_buffer, load, py_reader, read_file
    from penstock._src.executor.scopes import global_scope as global_scope
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.transpile.rpc_layers import BlockGuardServ as BlockGuardServ, ListenAndServ as ListenAndServ
    from penstock._src.transpile.rpc_layers import Recv as Recv, Send as Send
    from penstock.fluid import unique_name as unique_name

__all__ = ['create_py_reader_by_data', 'data', 'double_buffer', 'load', 'py_reader', 'read_file']

facade.make(__name__)
