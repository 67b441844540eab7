# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.decoder import beam_search_decoder as beam_search_decoder
from penstock.fluid.contrib.decoder.beam_search_decoder import BeamSearchDecoder as BeamSearchDecoder
from penstock.fluid.contrib.decoder.beam_search_decoder import InitState as InitState
from penstock.fluid.contrib.decoder.beam_search_decoder import StateCell as StateCell
from penstock.fluid.contrib.decoder.beam_search_decoder import TrainingDecoder as TrainingDecoder

__all__: list[str]
