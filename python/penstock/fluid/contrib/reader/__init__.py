"""Readers for jobs with several trainers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.distributed_reader import distributed_batch_reader
    from penstock.fluid.contrib.reader import distributed_reader as distributed_reader

__all__ = ['distributed_batch_reader']

facade.make(__name__)
