"""Metrics that are accumulated over batches in Python.

    accuracy = fluid.metrics.Accuracy()
    for batch in batches:
        value, = exe.run(feed=batch, fetch_list=[layers.accuracy(prediction, label)])
        accuracy.update(value, weight=len(batch))
    accuracy.eval()
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.metrics.auc import Auc
    from penstock._src.metrics.detection_map import DetectionMAP
    from penstock._src.metrics.metric_base import MetricBase
    from penstock._src.metrics.metrics import Accuracy, CompositeMetric, Precision, Recall
    from penstock._src.metrics.sequence_metrics import ChunkEvaluator, EditDistance

__all__ = [
    'Accuracy', 'Auc', 'ChunkEvaluator', 'CompositeMetric', 'DetectionMAP', 'EditDistance', 'MetricBase', 'Precision',
    'Recall',
]

facade.make(__name__)
