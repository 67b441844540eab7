"""DataFeedDesc: a description of MultiSlot text in a file, in protobuf's text format."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.dataset.data_feed_desc import DataFeedDesc

__all__ = ['DataFeedDesc']

facade.make(__name__)
