"""Functions that create readers from readers, as in penstock.fluid.io."""

from paddle.reader import decorator
from paddle.reader.decorator import *

__all__ = decorator.__all__
