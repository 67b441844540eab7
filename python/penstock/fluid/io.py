"""Saving and loading, and input: the names of fluid.io."""

from penstock.fluid._inference_model import (append_fetch_ops, load_inference_model, prepend_feed_ops,
                                             save_inference_model)
from penstock.fluid._not_built import getattr_of
from penstock.fluid._program_state import (get_parameter_value, get_parameter_value_by_name, get_program_parameter,
                                           get_program_persistable_vars, load, load_program_state, save,
                                           set_program_state)
from penstock.fluid._var_files import (is_belong_to_optimizer, is_parameter, is_persistable, load_params,
                                       load_persistables, load_vars, save_params, save_persistables, save_vars)

__all__ = [
    'append_fetch_ops', 'get_parameter_value', 'get_parameter_value_by_name', 'get_program_parameter',
    'get_program_persistable_vars', 'is_belong_to_optimizer', 'is_parameter', 'is_persistable', 'load',
    'load_inference_model', 'load_params', 'load_persistables', 'load_program_state', 'load_vars',
    'prepend_feed_ops', 'save', 'save_inference_model', 'save_params', 'save_persistables', 'save_vars',
    'set_program_state',
]

__getattr__ = getattr_of(__name__)
