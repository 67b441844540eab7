"""Fluid's native predictor: AnalysisConfig or NativeConfig -> create_paddle_predictor -> run, or zero_copy_run.

    config = fluid.core.AnalysisConfig('model')                      # a folder of save_inference_model
    predictor = fluid.core.create_paddle_predictor(config)
    outputs = predictor.run([fluid.core.PaddleTensor(images)])       # by position
    probabilities = outputs[0].as_ndarray()

Programs run as they were saved: options that choose devices, optimizations or threads have no effect, or are refused if
they would change results.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._penstock import LoDTensor, Scope
from penstock._src.base import devices
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.executor import executor
from penstock._src.executor.scopes import scope_guard
from penstock._src.inference.config import AnalysisConfig, PredictorConfig
from penstock._src.inference.paddle_tensor import PaddleTensor, ZeroCopyTensor
from penstock._src.inference.texts import MODEL
from penstock._src.io import inference_model, model_files
from penstock._src.ir.types import CPUPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import ProgramDesc
    from penstock._src.inference.config import NativeConfig
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


def get_version() -> str:
    """Returns the version of the predictor.

    Returns:
        str: the version of Penstock.

    Example:
        print(fluid.core.get_version())
    """
    return f"penstock {_penstock.__version__}"


@with_texts(MODEL)
class PaddlePredictor:
    """A loaded model. create_paddle_predictor makes one.

    Predictors have their own variables. A clone shares them, and can run in another thread.

    Args:
        {model}

    {saved_model}
        predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig('model'))
        outputs = predictor.run([fluid.core.PaddleTensor(np.ones((3, 4), 'float32'))])
        assert outputs[0].shape == [3, 2]
    """

    Config = PredictorConfig

    def __init__(
        self,
        config: AnalysisConfig | NativeConfig,
        model: tuple[Scope, Program, list[str], list[Variable]] | None = None,
    ) -> None:
        self._config = config
        self._scope, self._program, self._feeds, self._fetches = model or _loaded(config)
        self._executor = executor.Executor(CPUPlace())
        self._inputs = {name: ZeroCopyTensor(name) for name in self._feeds}
        self._outputs = {var.name: ZeroCopyTensor(var.name) for var in self._fetches}

    def run(self, inputs: Sequence[PaddleTensor]) -> list[PaddleTensor]:
        """Runs the model.

        Args:
            inputs (list[PaddleTensor]): in the order of get_input_names(), or, with switch_specify_input_names, in any
                order with their names.

        Returns:
            list[PaddleTensor]: in the order of get_output_names().

        Raises:
            penstock.ProgramError: inputs are missing, or have unknown names (E-predictor-input).
        """
        arrays = [one if isinstance(one, PaddleTensor) else PaddleTensor(one) for one in inputs]
        if self._config._names_inputs():
            given = {one.name: one for one in arrays}
        elif len(arrays) != len(self._feeds):
            raise program_error(
                "E-predictor-input",
                f"predictor: the model has {len(self._feeds)} inputs, {', '.join(self._feeds)}, but run was given "
                f"{len(arrays)}",
            )
        else:
            given = dict(zip(self._feeds, arrays))
        if sorted(given) != sorted(self._feeds):
            raise program_error(
                "E-predictor-input",
                f"predictor: the model has the inputs {', '.join(self._feeds)}, but run was given "
                f"{', '.join(sorted(map(str, given))) or 'none'}",
            )
        values = self._run({name: (one.as_ndarray(), one.lod) for name, one in given.items()})
        return [PaddleTensor(array, var.name, lod) for var, (array, lod) in zip(self._fetches, values)]

    def zero_copy_run(self) -> None:
        """Runs the model on the values of its input tensors, and sets its output tensors.

        Raises:
            penstock.StateError: an input has no value (E-predictor-input).
        """
        feeds = {name: (tensor._value(), tensor._lod) for name, tensor in self._inputs.items()}
        for tensor, (array, lod) in zip(self._outputs.values(), self._run(feeds)):
            tensor._array, tensor._lod = array, lod

    def _run(self, feeds: dict[str, tuple[Array, list[list[int]]]]) -> list[tuple[Array, list[list[int]]]]:
        feed: dict[str, Array | LoDTensor] = {}
        for name, (array, lod) in feeds.items():
            feed[name] = array
            if lod:
                tensor = LoDTensor()
                tensor.set(array, CPUPlace())
                tensor.set_lod(lod)
                feed[name] = tensor
        made = self._executor.run(
            self._program, feed=feed, fetch_list=self._fetches, scope=self._scope, return_numpy=False
        )
        return [(numpy.array(tensor), tensor.lod()) for tensor in made]

    def get_input_names(self) -> list[str]:
        """Returns the names of the inputs.

        Returns:
            list[str]: in the order of `run`.
        """
        return list(self._feeds)

    def get_output_names(self) -> list[str]:
        """Returns the names of the outputs.

        Returns:
            list[str]: in the order of `run`.
        """
        return list(self._outputs)

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """Returns the shapes that the model declares for its inputs.

        Returns:
            dict: {name: extents}, -1 where any extent is accepted.
        """
        block = self._program.global_block()
        return {name: list(block.var(name).shape) for name in self._feeds}

    @with_texts(MODEL, way="input")
    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """{tensor}"""
        return _named(self._inputs, name, "input")

    @with_texts(MODEL, way="output")
    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """{tensor}"""
        return _named(self._outputs, name, "output")

    def clone(self) -> PaddlePredictor:
        """Returns a predictor of the same model, with the same parameters and its own inputs.

        Returns:
            PaddlePredictor: a new one.
        """
        return type(self)(self._config, (self._scope, self._program, self._feeds, self._fetches))

    def scope(self) -> Scope:
        """Returns the scope with the parameters.

        Returns:
            Scope: the predictor's own.
        """
        return self._scope

    def program(self) -> ProgramDesc:
        """Returns the program as its desc.

        Returns:
            ProgramDesc: the model's.
        """
        return self._program.desc

    def get_serialized_program(self) -> bytes:
        """Returns the program as bytes.

        Returns:
            bytes: as in the file of the model.
        """
        return self._program.desc.serialize_to_string()

    def SaveOptimModel(self, dir: str) -> None:
        """Saves the model: the files `model` and `params`.

        Args:
            dir (str): the folder.
        """
        os.makedirs(dir, exist_ok=True)
        with open(os.path.join(dir, "model"), "wb") as file:
            file.write(self.get_serialized_program())
        with scope_guard(self._scope):
            model_files.save_persistables(self._executor, dir, self._program, "params")


@with_texts(MODEL)
class NativePaddlePredictor(PaddlePredictor):
    """The predictor of a NativeConfig; see PaddlePredictor.

    Args:
        {model}

    {saved_model}
        config = fluid.core.NativeConfig()
        config.model_dir = 'model'
        predictor = fluid.core.create_paddle_predictor(config)
        assert isinstance(predictor, fluid.core.NativePaddlePredictor)
    """


@with_texts(MODEL)
class AnalysisPredictor(PaddlePredictor):
    """The predictor of an AnalysisConfig; see PaddlePredictor.

    Args:
        {model}

    {saved_model}
        predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig('model'))
        assert predictor.get_input_names() == ['x']
    """


def _named(tensors: dict[str, ZeroCopyTensor], name: str, kind: str) -> ZeroCopyTensor:
    if name in tensors:
        return tensors[name]
    raise program_error("E-predictor-input", f"predictor: the model has no {kind} {name}; it has {', '.join(tensors)}")


def _loaded(config: AnalysisConfig | NativeConfig) -> tuple[Scope, Program, list[str], list[Variable]]:
    """Returns (scope, program, feed names, fetched variables)."""
    folder, program_file, params_file = config._where()
    scope, exe = Scope(), executor.Executor(CPUPlace())
    buffers = getattr(config, "_buffers", None)
    if buffers is None and not folder and not program_file:
        raise program_error(
            "E-predictor-model",
            "create_paddle_predictor: the configuration names no model; set its "
            "folder, or the files of program and parameters",
        )
    with scope_guard(scope):
        if buffers is not None:
            made = inference_model.load_inference_model(None, exe, *buffers)
        elif program_file:
            base = folder or os.path.dirname(program_file) or "."
            if os.path.dirname(params_file or "") not in ("", os.path.dirname(program_file)):
                made = inference_model.load_inference_model(None, exe, _bytes_of(program_file), _bytes_of(params_file))
            else:
                made = inference_model.load_inference_model(
                    base, exe, os.path.basename(program_file), os.path.basename(params_file) if params_file else None
                )
        else:
            made = inference_model.load_inference_model(folder, exe)
    program, feeds, fetches = made
    return scope, program, feeds, fetches


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@with_texts(MODEL)
def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> PaddlePredictor:
    """Loads a model.

    Args:
        config (AnalysisConfig | NativeConfig): names it.

    Returns:
        PaddlePredictor: an AnalysisPredictor or NativePaddlePredictor.

    Raises:
        TypeError: `config` is neither.
        ValueError: there is no such folder.
        penstock.ProgramError: the configuration names no model (E-predictor-model).

    {saved_model}
        predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig('model'))
        outputs = predictor.run([fluid.core.PaddleTensor(np.ones((3, 4), 'float32'))])
        assert outputs[0].as_ndarray().shape == (3, 2)
    """
    if not isinstance(config, PredictorConfig):
        raise TypeError(
            f"create_paddle_predictor takes an AnalysisConfig or a NativeConfig, not {type(config).__name__}"
        )
    if config._wants_gpu():
        devices.use_cpu_for("create_paddle_predictor with use_gpu")
    return (AnalysisPredictor if isinstance(config, AnalysisConfig) else NativePaddlePredictor)(config)
