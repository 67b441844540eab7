"""Probability distributions.

Fluid defines them here; scripts reach them as fluid.layers.distributions.NAME. Each is fluid.layers.NAME.
"""

from penstock.fluid._not_built import getattr_of

__getattr__ = getattr_of(__name__)
