"""Readers for jobs with several trainers."""

from penstock.fluid.contrib.reader import distributed_reader
from penstock.fluid.contrib.reader.distributed_reader import *

__all__ = distributed_reader.__all__
