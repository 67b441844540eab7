"""The functions and classes of fluid.io: saving, loading and input."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.generator_loader import PyReader as PyReader
    from penstock._src.data.parallel_readers import buffered as buffered, multiprocess_reader as multiprocess_reader
    from penstock._src.data.parallel_readers import xmap_readers as xmap_readers
    from penstock._src.data.reader import DataLoader as DataLoader, default_collate_fn as default_collate_fn
    from penstock._src.data.reader_decorators import ComposeNotAligned as ComposeNotAligned, batch as batch
    from penstock._src.data.reader_decorators import cache as cache, chain as chain, compose as compose
    from penstock._src.data.reader_decorators import firstn as firstn, map_readers as map_readers, shard as shard
    from penstock._src.data.reader_decorators import shuffle as shuffle
    from penstock._src.data.sampler import DistributedSampler as DistributedSampler
    from penstock._src.io.inference_model import append_fetch_ops as append_fetch_ops
    from penstock._src.io.inference_model import load_inference_model as load_inference_model
    from penstock._src.io.inference_model import prepend_feed_ops as prepend_feed_ops
    from penstock._src.io.inference_model import save_inference_model as save_inference_model
    from penstock._src.io.model_files import load_params as load_params, load_persistables as load_persistables
    from penstock._src.io.model_files import save_params as save_params, save_persistables as save_persistables
    from penstock._src.io.program_state import get_parameter_value as get_parameter_value
    from penstock._src.io.program_state import get_parameter_value_by_name as get_parameter_value_by_name
    from penstock._src.io.program_state import get_program_parameter as get_program_parameter
    from penstock._src.io.program_state import get_program_persistable_vars as get_program_persistable_vars
    from penstock._src.io.program_state import load as load, load_program_state as load_program_state, save as save
    from penstock._src.io.program_state import set_program_state as set_program_state
    from penstock._src.io.var_files import program_or_default as _get_valid_program, load_vars as load_vars
    from penstock._src.io.var_files import save_vars as save_vars
    from penstock._src.io.var_records import is_belong_to_optimizer as is_belong_to_optimizer
    from penstock._src.io.var_records import is_parameter as is_parameter, is_persistable as is_persistable

__all__ = [
    'ComposeNotAligned', 'DataLoader', 'DistributedSampler', 'PyReader', 'append_fetch_ops', 'batch', 'buffered',
    'cache', 'chain', 'compose', 'default_collate_fn', 'firstn', 'get_parameter_value', 'get_parameter_value_by_name',
    'get_program_parameter', 'get_program_persistable_vars', 'is_belong_to_optimizer', 'is_parameter',
    'is_persistable', 'load', 'load_inference_model', 'load_params', 'load_persistables', 'load_program_state',
    'load_vars', 'map_readers', 'multiprocess_reader', 'prepend_feed_ops', 'save', 'save_inference_model',
    'save_params', 'save_persistables', 'save_vars', 'set_program_state', 'shard', 'shuffle', 'xmap_readers',
]

facade.make(__name__)
