"""The functions and classes of fluid.io: saving, loading and input."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.generator_loader import PyReader
    from penstock._src.data.parallel_readers import buffered, multiprocess_reader, xmap_readers
    from penstock._src.data.parts import lines, part_of, records_of_part, split_by_load
    from penstock._src.data.reader import DataLoader, default_collate_fn
    from penstock._src.data.reader_decorators import ComposeNotAligned, batch, cache, chain, compose, firstn
    from penstock._src.data.reader_decorators import map_readers, shard, shuffle
    from penstock._src.data.sampler import DistributedSampler
    from penstock._src.io.inference_model import append_fetch_ops, load_inference_model, prepend_feed_ops
    from penstock._src.io.inference_model import save_inference_model
    from penstock._src.io.model_files import load_params, load_persistables, save_params, save_persistables
    from penstock._src.io.program_state import get_parameter_value, get_parameter_value_by_name
    from penstock._src.io.program_state import get_program_parameter, get_program_persistable_vars, load
    from penstock._src.io.program_state import load_program_state, save, set_program_state
    from penstock._src.io.var_files import program_or_default as _get_valid_program, load_vars, save_vars
    from penstock._src.io.var_records import is_belong_to_optimizer, is_parameter, is_persistable

__all__ = [
    'ComposeNotAligned', 'DataLoader', 'DistributedSampler', 'PyReader', 'append_fetch_ops', 'batch', 'buffered',
    'cache', 'chain', 'compose', 'default_collate_fn', 'firstn', 'get_parameter_value', 'get_parameter_value_by_name',
    'get_program_parameter', 'get_program_persistable_vars', 'is_belong_to_optimizer', 'is_parameter',
    'is_persistable', 'lines', 'load', 'load_inference_model', 'load_params', 'load_persistables',
    'load_program_state', 'load_vars', 'map_readers', 'multiprocess_reader', 'part_of', 'prepend_feed_ops',
    'records_of_part', 'save', 'save_inference_model', 'save_params', 'save_persistables', 'save_vars',
    'set_program_state', 'shard', 'shuffle', 'split_by_load', 'xmap_readers',
]

facade.make(__name__)
