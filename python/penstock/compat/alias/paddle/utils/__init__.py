"""The part of paddle.utils that scripts use: the plotter."""

from paddle.utils.plot import Ploter

__all__ = ["Ploter"]
