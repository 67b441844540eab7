"""What Fluid keeps apart from the rest: layers made of other layers."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.contrib import layers

__all__ = ['layers']

__getattr__ = getattr_of(__name__)
