"""The functions and classes of fluid.io: saving, loading and input."""

from penstock.fluid._inference_model import (append_fetch_ops, load_inference_model, prepend_feed_ops,
                                             save_inference_model)
from penstock.fluid._program_state import (get_parameter_value, get_parameter_value_by_name, get_program_parameter,
                                           get_program_persistable_vars, load, load_program_state, save,
                                           set_program_state)
from penstock.fluid._reader_decorators import (ComposeNotAligned, batch, buffered, cache, chain, compose, firstn,
                                               map_readers, multiprocess_reader, shard, shuffle, xmap_readers)
from penstock.fluid._sampler import DistributedSampler
from penstock.fluid._var_files import (load_params, load_persistables, load_vars, save_params, save_persistables,
                                       save_vars)
from penstock.fluid._var_files import program_or_default as _get_valid_program
from penstock.fluid._var_records import is_belong_to_optimizer, is_parameter, is_persistable
from penstock.fluid.reader import DataLoader, PyReader, default_collate_fn

__all__ = [
    'ComposeNotAligned', 'DataLoader', 'DistributedSampler', 'PyReader', 'append_fetch_ops', 'batch', 'buffered',
    'cache', 'chain', 'compose', 'default_collate_fn', 'firstn', 'get_parameter_value', 'get_parameter_value_by_name',
    'get_program_parameter', 'get_program_persistable_vars', 'is_belong_to_optimizer', 'is_parameter',
    'is_persistable', 'load', 'load_inference_model', 'load_params', 'load_persistables', 'load_program_state',
    'load_vars', 'map_readers', 'multiprocess_reader', 'prepend_feed_ops', 'save', 'save_inference_model',
    'save_params', 'save_persistables', 'save_vars', 'set_program_state', 'shard', 'shuffle', 'xmap_readers',
]
