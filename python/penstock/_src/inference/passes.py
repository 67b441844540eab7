"""The lists of passes by which Fluid's predictor would optimize a program for inference. They can be read and changed,
and have no effect, because a program runs as it was saved."""


class PaddlePassBuilder:
    """A list of names of passes.

    Args:
        passes (list[str]): the names.

    Example:
        builder = fluid.core.PaddlePassBuilder(['fc_fuse_pass'])
        builder.append_pass('conv_bn_fuse_pass')
        assert builder.all_passes() == ['fc_fuse_pass', 'conv_bn_fuse_pass']
    """

    def __init__(self, passes=()):
        self._passes, self._analysis = list(passes), []

    def all_passes(self):
        """Returns the names.

        Returns:
            list[str]: a new list.
        """
        return list(self._passes)

    def set_passes(self, passes):
        """Replaces the names.

        Args:
            passes (list[str]): the names.
        """
        self._passes = list(passes)

    def append_pass(self, pass_type):
        """Appends a name.

        Args:
            pass_type (str): the name.
        """
        self._passes.append(pass_type)

    def insert_pass(self, idx, pass_type):
        """Inserts a name.

        Args:
            idx (int): its position.
            pass_type (str): the name.
        """
        self._passes.insert(idx, pass_type)

    def delete_pass(self, pass_type):
        """Removes a name, or the one at a position.

        Args:
            pass_type (str | int): the name or the position.
        """
        if isinstance(pass_type, int):
            del self._passes[pass_type]
        else:
            self._passes = [one for one in self._passes if one != pass_type]

    def analysis_passes(self):
        """Returns the names of the passes around them.

        Returns:
            list[str]: a new list.
        """
        return list(self._analysis)

    def append_analysis_pass(self, pass_type):
        """Appends the name of a pass around them.

        Args:
            pass_type (str): the name.
        """
        self._analysis.append(pass_type)

    def turn_on_debug(self):
        """Has no effect."""

    def debug_string(self):
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

    def use_gpu(self):
        """Returns whether the device is a GPU.

        Returns:
            bool: whether it is.
        """
        return False

    def enable_mkldnn(self):
        """Has no effect."""

    def enable_mkldnn_quantizer(self):
        """Has no effect: AnalysisConfig refuses the quantizer."""

    def enable_cudnn(self):
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

    def use_gpu(self):
        """Returns True.

        Returns:
            bool: True.
        """
        return True
