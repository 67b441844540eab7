"""The layers of LoD sequences under their name in Fluid: fluid.layers.sequence_lod.NAME is fluid.layers.NAME."""

from penstock.fluid._not_built import getattr_of

__getattr__ = getattr_of(__name__)
