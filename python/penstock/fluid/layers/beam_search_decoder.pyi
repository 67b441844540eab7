# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.layers.arithmetic import elementwise_add as elementwise_add
from penstock.fluid.layers.arithmetic import elementwise_floordiv as elementwise_floordiv
from penstock.fluid.layers.arithmetic import elementwise_mod as elementwise_mod
from penstock.fluid.layers.arithmetic import elementwise_mul as elementwise_mul
from penstock.fluid.layers.arithmetic import logical_not as logical_not
from penstock.fluid.layers.arithmetic import logical_or as logical_or
from penstock.fluid.layers.beams import gather_tree as gather_tree
from penstock.fluid.layers.control_flow import equal as equal
from penstock.fluid.layers.decoders import Decoder as Decoder
from penstock.fluid.layers.filling import zeros_like as zeros_like
from penstock.fluid.layers.selection import gather_nd as gather_nd
from penstock.fluid.layers.utils import flatten as flatten
from penstock.fluid.layers.utils import map_structure as map_structure
from penstock.fluid.variable import Variable as Variable

class BeamSearchDecoder(Decoder):
    OutputWrapper: type[Any]
    StateWrapper: type[Any]
    def __init__(self, cell: Any, start_token: int, end_token: int, beam_size: int, embedding_fn: Callable[..., Any] | None = ..., output_fn: Callable[..., Any] | None = ...) -> None: ...
    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Variable) -> tuple[Any, ...]: ...
    def initialize(self, initial_cell_states: Variable) -> tuple[Any, ...]: ...
    def step(self, time: Variable, inputs: Variable, states: Any, **kwargs: Any) -> tuple[Any, ...]: ...
    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable: ...
__all__: list[str]
