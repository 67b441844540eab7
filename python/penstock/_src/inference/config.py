"""The configurations of Fluid's native predictor: NativeConfig and AnalysisConfig."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base import devices
from penstock._src.base.absent import refuses
from penstock._src.inference.passes import CpuPassStrategy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class PredictorConfig:
    """What both kinds of configurations have.

    Example:
        assert isinstance(fluid.core.NativeConfig(), fluid.core.PaddlePredictor.Config)
    """

    def __init__(self) -> None:
        self._threads = 1
        self._device = 0

    def set_cpu_math_library_num_threads(self, cpu_math_library_num_threads: int) -> None:
        """Has no effect: OMP_NUM_THREADS decides how many threads compute.

        Args:
            cpu_math_library_num_threads (int): as in Fluid.
        """
        self._threads = cpu_math_library_num_threads

    def cpu_math_library_num_threads(self) -> int:
        """Returns the number that was set.

        Returns:
            int: 1 by default.
        """
        return self._threads


class NativeConfig(PredictorConfig):
    """The configuration of a NativePaddlePredictor: model_dir, or prog_file and param_file; specify_input_name.

    use_gpu raises an error when the predictor is made, unless PENSTOCK_CUDA_FALLBACK is set.

    Example:
        config = fluid.core.NativeConfig()
        config.model_dir = 'model'
        config.specify_input_name = True
    """

    def __init__(self) -> None:
        super().__init__()
        self.model_dir, self.prog_file, self.param_file = "", "", ""
        self.use_gpu, self.device, self.fraction_of_gpu_memory = False, 0, -1.0
        self.specify_input_name = False

    def _where(self) -> tuple[str, str, str]:
        return self.model_dir, self.prog_file, self.param_file

    def _names_inputs(self) -> bool:
        return self.specify_input_name

    def _wants_gpu(self) -> bool:
        return self.use_gpu


def _set_flag(name: str, doc: str, default: bool = True) -> Callable[..., Any]:
    """Returns a method that sets a flag of the configuration."""

    def setter(self: Any, x: bool = default) -> None:
        self._flags[name] = x

    setter.__doc__ = doc
    return setter


def _flag(name: str, doc: str) -> Callable[..., Any]:

    def getter(self: Any) -> bool:
        return bool(self._flags.get(name, False))

    getter.__doc__ = doc + "\n\n        Returns:\n            bool: whether it was set.\n        "
    return getter


_NO_EFFECT = """Accepted, and has no effect.

        Args:
            x (bool): as in Fluid.
        """


_REFUSED = "AnalysisConfig.{method}: programs run on CPUs as they were saved; leave the call out"


class AnalysisConfig(PredictorConfig):
    """The configuration of an AnalysisPredictor.

    Options that only concern speed have no effect. GPUs and TensorRT are refused.

    Args:
        model_dir_or_prog_file (str | None): the folder of save_inference_model, or the file of its program.
        params_file (str | None): with the file of the program: the file of all parameters.

    Example:
        config = fluid.core.AnalysisConfig('model')
        config.disable_gpu()
        config.switch_use_feed_fetch_ops(False)
    """

    class Precision:
        Float32, Int8, Half = range(3)

    Float32, Int8, Half = range(3)

    def __init__(self, model_dir_or_prog_file: str | None = None, params_file: str | None = None) -> None:
        super().__init__()
        self._flags = {"ir_optim": True, "use_feed_fetch_ops": True}
        self._buffers: tuple[bytes, bytes] | None = None
        self._pool_mb = 100
        self._pass_builder = CpuPassStrategy()
        self._model_dir: str | None = ""
        self._prog_file: str | None = ""
        self._params_file: str | None = ""
        if params_file is not None:
            self.set_model(model_dir_or_prog_file, params_file)
        elif model_dir_or_prog_file is not None:
            self.set_model(model_dir_or_prog_file)

    # The model.
    def set_model(self, model_dir_or_prog_file: str | None, params_file: str | None = None) -> None:
        """Names the model.

        Args:
            model_dir_or_prog_file (str): the folder, or the file of the program.
            params_file (str | None): with the file of the program: the file of all parameters.
        """
        if params_file is None:
            self._model_dir = model_dir_or_prog_file
        else:
            self._prog_file, self._params_file = model_dir_or_prog_file, params_file

    def set_prog_file(self, x: str) -> None:
        """Names the file of the program.

        Args:
            x (str): the file.
        """
        self._prog_file = x

    def set_params_file(self, x: str) -> None:
        """Names the file of all parameters.

        Args:
            x (str): the file.
        """
        self._params_file = x

    def set_model_buffer(
        self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes, params_buffer_size: int
    ) -> None:
        """Gives the bytes of both files.

        Args:
            prog_buffer (bytes): the program.
            prog_buffer_size (int): its bytes that count.
            params_buffer (bytes): the parameters.
            params_buffer_size (int): its bytes that count.
        """
        self._buffers = bytes(prog_buffer[:prog_buffer_size]), bytes(params_buffer[:params_buffer_size])

    def model_from_memory(self) -> bool:
        """Tells whether set_model_buffer was called.

        Returns:
            bool: whether it was.
        """
        return self._buffers is not None

    def model_dir(self) -> str:
        """Returns the folder.

        Returns:
            str: '' if none was given.
        """
        return self._model_dir or ""

    def prog_file(self) -> str:
        """Returns the file of the program.

        Returns:
            str: '' if none was given.
        """
        return self._prog_file or ""

    def params_file(self) -> str:
        """Returns the file of the parameters.

        Returns:
            str: '' if none was given.
        """
        return self._params_file or ""

    def _where(self) -> tuple[str, str, str]:
        return self._model_dir or "", self._prog_file or "", self._params_file or ""

    def _names_inputs(self) -> bool:
        return self.specify_input_name()

    # Devices.
    def enable_use_gpu(self, memory_pool_init_size_mb: int = 100, device_id: int = 0) -> None:
        """Raises an error: programs run on CPUs. With PENSTOCK_CUDA_FALLBACK=1 in the environment, has no effect.

        Args:
            memory_pool_init_size_mb (int): as in Fluid.
            device_id (int): as in Fluid.

        Raises:
            NotImplementedError: unless the fallback is set (E-no-cuda).
        """
        devices.use_cpu_for("AnalysisConfig.enable_use_gpu")
        self._flags["gpu"], self._device, self._pool_mb = True, device_id, memory_pool_init_size_mb

    def disable_gpu(self) -> None:
        """Runs on the CPU, as always."""
        self._flags["gpu"] = False

    use_gpu = _flag("gpu", "Returns whether enable_use_gpu was called.")

    def gpu_device_id(self) -> int:
        """Returns the number that was given to enable_use_gpu.

        Returns:
            int: 0 by default.
        """
        return self._device

    def _wants_gpu(self) -> bool:
        return False  # enable_use_gpu has checked it

    def memory_pool_init_size_mb(self) -> int:
        """Returns the number that was given to enable_use_gpu.

        Returns:
            int: 100 by default.
        """
        return self._pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """Returns 0: there is no pool of a GPU's memory.

        Returns:
            float: 0.
        """
        return 0.0

    @refuses(_REFUSED)
    def set_trt_dynamic_shape_info(self, *args: Any, **kwargs: Any) -> None:
        """Raises an error: there is no TensorRT."""

    @refuses(_REFUSED)
    def enable_lite_engine(self, *args: Any, **kwargs: Any) -> None:
        """Raises an error: there is no Paddle-Lite."""

    @refuses(_REFUSED)
    def quantizer_config(self) -> None:
        """Raises an error: programs are not quantized."""

    @refuses(_REFUSED)
    def enable_tensorrt_engine(self, *args: Any, **kwargs: Any) -> None:
        """Raises an error: there is no TensorRT."""

    @refuses(_REFUSED)
    def enable_quantizer(self) -> None:
        """Raises an error: programs are not quantized."""

    # Inputs and outputs.
    switch_use_feed_fetch_ops = _set_flag(
        "use_feed_fetch_ops",
        """Accepted: run and zero_copy_run both work.

        Args:
            x (bool): as in Fluid.
        """,
    )
    use_feed_fetch_ops_enabled = _flag("use_feed_fetch_ops", "Returns what switch_use_feed_fetch_ops has set.")
    switch_specify_input_names = _set_flag(
        "specify_input_name",
        """Decides whether `run` finds inputs by name.

        Args:
            x (bool): by name; False: by position.
        """,
    )

    def specify_input_name(self) -> bool:
        """Returns what switch_specify_input_names has set.

        Returns:
            bool: False by default.
        """
        return bool(self._flags.get("specify_input_name", False))

    # Options of speed.
    switch_ir_optim = _set_flag("ir_optim", _NO_EFFECT)
    ir_optim = _flag("ir_optim", "Returns what switch_ir_optim has set.")
    switch_ir_debug = _set_flag("ir_debug", _NO_EFFECT)
    enable_memory_optim = _set_flag("memory_optim", _NO_EFFECT)
    enable_profile = _set_flag("profile", _NO_EFFECT)
    enable_mkldnn = _set_flag("mkldnn", _NO_EFFECT)
    mkldnn_enabled = _flag("mkldnn", "Returns whether enable_mkldnn was called.")
    disable_glog_info = _set_flag("no_glog", _NO_EFFECT)
    glog_info_disabled = _flag("no_glog", "Returns whether disable_glog_info was called.")
    set_optim_cache_dir = _set_flag("cache_dir", _NO_EFFECT)
    set_mkldnn_op = _set_flag("mkldnn_op", _NO_EFFECT)
    set_mkldnn_cache_capacity = _set_flag("mkldnn_cache", _NO_EFFECT)
    enable_cudnn = _set_flag("cudnn", _NO_EFFECT)
    tensorrt_engine_enabled = _flag("tensorrt", "Returns False: there is no TensorRT.")
    lite_engine_enabled = _flag("lite", "Returns False: there is no Paddle-Lite.")
    mkldnn_quantizer_enabled = _flag("quantizer", "Returns False: programs are not quantized.")

    def pass_builder(self) -> CpuPassStrategy:
        """Returns the list of passes, which has no effect.

        Returns:
            CpuPassStrategy: the same one at each call.
        """
        return self._pass_builder

    def delete_pass(self, pass_name: str) -> None:
        """Removes a pass from the list, which has no effect.

        Args:
            pass_name (str): its name.
        """
        self._pass_builder.delete_pass(pass_name)

    def to_native_config(self) -> NativeConfig:
        """Returns the configuration as a NativeConfig.

        Returns:
            NativeConfig: a new one.
        """
        made = NativeConfig()
        made.model_dir, made.prog_file, made.param_file = self._where()
        made.specify_input_name, made.device = self.specify_input_name(), self._device
        return made
