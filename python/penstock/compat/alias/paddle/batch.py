"""paddle.batch"""

from penstock.fluid.io import batch

__all__ = ["batch"]
