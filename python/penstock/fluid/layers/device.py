"""get_places, an op for ParallelDo. Fluid 1.8 has removed both."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.device import get_places

__all__ = ['get_places']

facade.make(__name__)
