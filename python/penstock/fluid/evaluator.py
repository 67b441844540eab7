"""Metrics that a program accumulates in its own variables. fluid.metrics, which accumulates in Python, replaces
them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.framework import program_guard as program_guard
    from penstock._src.ir.program import Program as Program
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.metrics.detection_map import DetectionMAP
    from penstock._src.metrics.evaluator import ChunkEvaluator, EditDistance, Evaluator as Evaluator
    from penstock.fluid import layers as layers, unique_name as unique_name

__all__ = ['ChunkEvaluator', 'DetectionMAP', 'EditDistance']

facade.make(__name__)
