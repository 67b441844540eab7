"""WeightedAverage: a mean over batches."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.metrics.average import WeightedAverage

__all__ = ['WeightedAverage']

facade.make(__name__)
