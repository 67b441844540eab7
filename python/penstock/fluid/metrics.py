"""Metrics that are accumulated over batches in Python.

    accuracy = fluid.metrics.Accuracy()
    for batch in batches:
        value, = exe.run(feed=batch, fetch_list=[layers.accuracy(prediction, label)])
        accuracy.update(value, weight=len(batch))
    accuracy.eval()
"""

# Written by tools/dev/gen_names.py.
from penstock._src.metrics.detection_map import DetectionMAP as DetectionMAP
from penstock._src.metrics.metrics import (
    Accuracy as Accuracy, Auc as Auc, ChunkEvaluator as ChunkEvaluator, CompositeMetric as CompositeMetric,
    EditDistance as EditDistance, MetricBase as MetricBase, Precision as Precision, Recall as Recall,
)
from penstock._src.names import facade

__all__ = [
    'Accuracy', 'Auc', 'ChunkEvaluator', 'CompositeMetric', 'DetectionMAP', 'EditDistance', 'MetricBase', 'Precision',
    'Recall',
]

facade.make(__name__)
