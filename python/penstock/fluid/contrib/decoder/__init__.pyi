# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.decoder import beam_search_decoder as beam_search_decoder
from penstock.fluid.contrib.decoder import state_cell as state_cell
from penstock.fluid.contrib.decoder.beam_search_decoder import BeamSearchDecoder as BeamSearchDecoder
from penstock.fluid.contrib.decoder.beam_search_decoder import TrainingDecoder as TrainingDecoder
from penstock.fluid.contrib.decoder.state_cell import InitState as InitState
from penstock.fluid.contrib.decoder.state_cell import StateCell as StateCell

__all__: list[str]
