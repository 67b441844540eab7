"""Marks functions whose use is discouraged."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.base.annotations import deprecated

__all__ = ['deprecated']

facade.make(__name__)
