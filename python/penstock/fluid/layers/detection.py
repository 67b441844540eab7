"""Layers for object detection: boxes, priors, targets and results."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layers import detection_boxes, detection_priors, detection_results, detection_targets
from penstock.fluid.layers.detection_boxes import *
from penstock.fluid.layers.detection_map import detection_map
from penstock.fluid.layers.detection_priors import *
from penstock.fluid.layers.detection_results import *
from penstock.fluid.layers.detection_targets import *

__all__ = (detection_boxes.__all__ + detection_priors.__all__ + detection_results.__all__ + detection_targets.__all__)

__getattr__ = getattr_of(__name__)
