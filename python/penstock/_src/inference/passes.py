"""The lists of passes by which Fluid's predictor would optimize a program for inference. They can be read and changed,
and have no effect, because a program runs as it was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class PaddlePassBuilder:
    """A list of names of passes.

    Args:
        passes (list[str]): the names.

    Example:
        builder = fluid.core.PaddlePassBuilder(['fc_fuse_pass'])
        builder.append_pass('conv_bn_fuse_pass')
        assert builder.all_passes() == ['fc_fuse_pass', 'conv_bn_fuse_pass']
    """

    def __init__(self, passes: Sequence[str] = ()) -> None:
        self._passes = list(passes)
        self._analysis: list[str] = []

    def all_passes(self) -> list[str]:
        """Returns the names.

        Returns:
            list[str]: a new list.
        """
        return list(self._passes)

    def set_passes(self, passes: Sequence[str]) -> None:
        """Replaces the names.

        Args:
            passes (list[str]): the names.
        """
        self._passes = list(passes)

    def append_pass(self, pass_type: str) -> None:
        """Appends a name.

        Args:
            pass_type (str): the name.
        """
        self._passes.append(pass_type)

    def insert_pass(self, idx: int, pass_type: str) -> None:
        """Inserts a name.

        Args:
            idx (int): its position.
            pass_type (str): the name.
        """
        self._passes.insert(idx, pass_type)

    def delete_pass(self, pass_type: int | str) -> None:
        """Removes a name, or the one at a position.

        Args:
            pass_type (str | int): the name or the position.
        """
        if isinstance(pass_type, int):
            del self._passes[pass_type]
        else:
            self._passes = [one for one in self._passes if one != pass_type]

    def analysis_passes(self) -> list[str]:
        """Returns the names of the passes around them.

        Returns:
            list[str]: a new list.
        """
        return list(self._analysis)

    def append_analysis_pass(self, pass_type: str) -> None:
        """Appends the name of a pass around them.

        Args:
            pass_type (str): the name.
        """
        self._analysis.append(pass_type)

    def turn_on_debug(self) -> None:
        """Has no effect."""

    def debug_string(self) -> str:
        """Returns the names as text.

        Returns:
            str: a line for each pass.
        """
        return "\n".join(self._passes)


class PassStrategy(PaddlePassBuilder):
    """The list of a device.

    Args:
        passes (list[str]): the names.

    Example:
        assert not fluid.core.PassStrategy([]).use_gpu()
    """

    def use_gpu(self) -> bool:
        """Returns whether the device is a GPU.

        Returns:
            bool: whether it is.
        """
        return False

    def enable_mkldnn(self) -> None:
        """Has no effect."""

    def enable_mkldnn_quantizer(self) -> None:
        """Has no effect: AnalysisConfig refuses the quantizer."""

    def enable_cudnn(self) -> None:
        """Has no effect."""


class CpuPassStrategy(PassStrategy):
    """The list of CPUs.

    Args:
        passes (list[str]): the names.

    Example:
        config = fluid.core.AnalysisConfig('model')
        config.pass_builder().delete_pass('fc_fuse_pass')
    """


class GpuPassStrategy(PassStrategy):
    """The list of GPUs, on which programs do not run.

    Args:
        passes (list[str]): the names.

    Example:
        assert fluid.core.GpuPassStrategy().use_gpu()
    """

    def use_gpu(self) -> bool:
        """Returns True.

        Returns:
            bool: True.
        """
        return True
