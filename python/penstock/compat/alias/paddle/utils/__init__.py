"""What scripts use of paddle.utils: the plotter."""

from paddle.utils.plot import Ploter

__all__ = ['Ploter']
