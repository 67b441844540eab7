"""The op for the mean average precision of a detector; fluid.metrics.DetectionMAP keeps its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.variable import Variable


@layer()
def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Any] | None = None,
    out_states: Sequence[Any] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """Computes the mean average precision of the boxes that a detector finds.

    Args:
        detect_res (Variable): shape [found, 6]: rows of class, score and box, in a sequence for each image; float32.
        label (Variable): shape [objects, 6]: rows of class, difficult flag and box, or [objects, 5]: rows of class and
            box; in a sequence for each image; float32.
        background_label (int): has no effect: class 0 has no average precision, as in Fluid.
        overlap_threshold (float): a found box is correct if its overlap with an object is above this.
        evaluate_difficult (bool): whether difficult boxes count.
        has_state (Variable): shape [1], int32: not 0 if the input states are used.
        input_states (list): three Variables: the number of objects of each class so far, the correctly found boxes and
            the incorrectly found boxes.
        out_states (list): three Variables that receive the new states.
        ap_version (str): 'integral' or '11point'.

    Returns:
        Variable: shape [1], float32.

    Raises:
        penstock.ProgramError: `ap_version` has another value, or the shapes are incompatible.

    Example:
        found = fluid.data('found', [None, 6], lod_level=1)
        label = fluid.data('label', [None, 5], lod_level=1)
        assert fluid.layers.detection.detection_map(found, label, 3).shape == (1,)
    """
    helper = LayerHelper("detection_map").takes(detect_res=detect_res, label=label)
    out = helper.create_variable_for_type_inference("float32")
    if out_states is None:
        out_states = [helper.create_variable_for_type_inference(dtype) for dtype in ("int32", "float32", "float32")]
    inputs = {"Label": label, "DetectRes": detect_res}
    if has_state is not None:
        inputs["HasState"] = has_state
    if input_states is not None:
        inputs.update(zip(("PosCount", "TruePos", "FalsePos"), input_states))
    helper.append_op(
        "detection_map",
        inputs,
        {"MAP": out, "AccumPosCount": out_states[0], "AccumTruePos": out_states[1], "AccumFalsePos": out_states[2]},
        {
            "overlap_threshold": overlap_threshold,
            "evaluate_difficult": evaluate_difficult,
            "ap_type": ap_version,
            "class_num": class_num,
        },
    )
    return out
