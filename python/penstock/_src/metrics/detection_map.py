"""fluid.metrics.DetectionMAP: the mean average precision of a detector, computed in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir import unique_name
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import Program
from penstock._src.layers import tensor
from penstock._src.layers.detection_metrics import detection_map
from penstock._src.layers.helper import LayerHelper
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.variable import Variable


class DetectionMAP:
    """Computes the mean average precision of the boxes that a detector finds, of a batch and of all batches so far.

    Args:
        input (Variable): shape [found, 6], float32: rows of class, score and box, in a sequence for each image, as
            returned by layers.detection_output.
        gt_label (Variable): the classes of the true boxes, shape [objects, 1], in a sequence for each image.
        gt_box (Variable): the true boxes, shape [objects, 4], float32, in the same sequences.
        gt_difficult (Variable): shape [objects, 1]: not 0 if a true box is difficult.
        class_num (int): the number of classes.
        background_label (int): has no effect: class 0 has no average precision, as in Fluid.
        overlap_threshold (float): a found box is correct if its overlap with a true box is above this.
        evaluate_difficult (bool): whether difficult boxes count.
        ap_version (str): 'integral' or '11point'.

    Returns:
        DetectionMAP: get_map_var() returns two Variables of shape [1]; reset(exe) discards all batches.

    Raises:
        ValueError: `class_num` is None.
        penstock.ProgramError: `ap_version` has an invalid value, or the shapes are incompatible.

    Example:
        found = fluid.data('found', [None, 6], lod_level=1)
        label, box = fluid.data('label', [None, 1], lod_level=1), fluid.data('box', [None, 4], lod_level=1)
        batch, total = fluid.metrics.DetectionMAP(found, label, box, class_num=3).get_map_var()
        assert batch.shape == total.shape == (1,)

    Reference:
        Everingham et al.: "The PASCAL visual object classes (VOC) challenge", IJCV 2010.
    """

    def __init__(
        self,
        input: Variable,
        gt_label: Variable,
        gt_box: Variable,
        gt_difficult: Variable | None = None,
        class_num: int | None = None,
        background_label: int = 0,
        overlap_threshold: float = 0.5,
        evaluate_difficult: bool = True,
        ap_version: str = "integral",
    ) -> None:
        if class_num is None:
            raise ValueError("DetectionMAP: give class_num, the number of classes")
        self.helper = LayerHelper("map_eval")
        marks = [tensor.cast(gt_label, gt_box.dtype)]
        if gt_difficult is not None:
            marks.append(tensor.cast(gt_difficult, gt_box.dtype))
        label = tensor.concat(marks + [gt_box], axis=1)
        self.cur_map = detection_map(
            input, label, class_num, background_label, overlap_threshold, evaluate_difficult, ap_version=ap_version
        )
        states = [
            self._create_state("accum_pos_count", "int32", [class_num, 1]),
            self._create_state("accum_true_pos", "float32", [1, 2]),
            self._create_state("accum_false_pos", "float32", [1, 2]),
        ]
        for state in states:
            self.helper.set_variable_initializer(state, Constant(0))
        self.has_state = self._create_state("has_state", "int32", [1])
        self.helper.set_variable_initializer(self.has_state, Constant(0))
        self.accum_map = detection_map(
            input,
            label,
            class_num,
            background_label,
            overlap_threshold,
            evaluate_difficult,
            self.has_state,
            input_states=states,
            out_states=states,
            ap_version=ap_version,
        )
        tensor.fill_constant(self.has_state.shape, self.has_state.dtype, 1, out=self.has_state)

    def _create_state(self, suffix: str, dtype: str, shape: list[int | None]) -> Any:
        name = "_".join([unique_name.generate(self.helper.name), suffix])
        return self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape)

    def get_map_var(self) -> tuple[Variable, Variable]:
        """Returns the mean average precision of the batch and of all batches since the last reset.

        Returns:
            tuple[Variable, Variable]: the mean average precision of the batch, and of all batches since reset(); shape
                [1], float32.
        """
        return self.cur_map, self.accum_map

    def reset(self, executor: Executor, reset_program: Program | None = None) -> None:
        """Discards all batches, by running a program that resets the state.

        Args:
            executor (Executor): runs `reset_program`.
            reset_program (Program | None): receives the ops; None: a new one.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(main_program=program):
            mark = program.current_block().create_var(
                name=self.has_state.name, shape=self.has_state.shape, dtype=self.has_state.dtype, persistable=True
            )
            tensor.fill_constant(mark.shape, mark.dtype, 0, out=mark)
        executor.run(program)
