"""TrainerDesc: Fluid's settings for training from a dataset. train_from_dataset takes these settings as arguments; the
classes here only store them."""

from __future__ import annotations

import os
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock._src.executor.device_worker import DeviceWorker
    from penstock._src.ir.program import Program
    from penstock._src.ir.variable import Variable


def _setter(name: str) -> Callable[[TrainerDesc, object], None]:

    def set_one(self: TrainerDesc, value: object) -> None:
        setattr(self.proto_desc, name, value)

    return set_one


def _extender(name: str) -> Callable[[TrainerDesc, Sequence[str]], None]:

    def extend(self: TrainerDesc, values: Sequence[str]) -> None:
        getattr(self.proto_desc, name).extend(values)

    return extend


class TrainerDesc:
    """Settings for training from a dataset; `proto_desc` holds them under Fluid's names.

    Example:
        desc = fluid.trainer_desc.TrainerDesc()
        desc._set_thread(2)
        assert desc.proto_desc.thread_num == 2
    """

    _set_debug = _setter("debug")
    _set_use_cvm = _setter("use_cvm")
    _set_no_cvm = _setter("no_cvm")
    _set_scale_datanorm = _setter("scale_datanorm")
    _set_dump_slot = _setter("dump_slot")
    _set_mpi_rank = _setter("mpi_rank")
    _set_mpi_size = _setter("mpi_size")
    _set_dump_fields_path = _setter("dump_fields_path")
    _set_dump_file_num = _setter("dump_file_num")
    _set_dump_converter = _setter("dump_converter")
    _set_thread_barrier = _setter("thread_barrier")
    _set_thread = _setter("thread_num")
    _set_dump_fields = _extender("dump_fields")
    _set_dump_param = _extender("dump_param")
    _set_check_nan_var_names = _extender("check_nan_var_names")

    def __init__(self) -> None:
        self.proto_desc = types.SimpleNamespace(
            class_name="",
            device_worker_name="",
            thread_num=os.cpu_count() or 1,
            debug=False,
            mpi_rank=-1,
            mpi_size=-1,
            use_cvm=False,
            no_cvm=False,
            scale_datanorm=-1.0,
            dump_slot=False,
            dump_fields=[],
            dump_fields_path="",
            dump_file_num=16,
            dump_converter="",
            dump_param=[],
            thread_barrier=False,
            check_nan_var_names=[],
            hogwild_param=types.SimpleNamespace(skip_ops=[], stat_var_names=[]),
            section_param=types.SimpleNamespace(),
            fetch_config=types.SimpleNamespace(fetch_var_names=[], fetch_var_str_format=[], print_period=100),
        )
        self._fleet_desc: object = None
        self._device_worker: DeviceWorker | None = None
        self._program: Program | None = None
        self._infer = False

    def _set_fetch_var_and_info(
        self, fetch_vars: Sequence[Variable], fetch_info: Sequence[str], print_period: int
    ) -> None:
        config = self.proto_desc.fetch_config
        config.fetch_var_names.extend(var.name for var in fetch_vars)
        config.fetch_var_str_format.extend(list(fetch_info)[: len(fetch_vars)])
        config.print_period = print_period

    def _set_device_worker(self, device_worker: DeviceWorker) -> None:
        self._device_worker = device_worker

    def _set_infer(self, infer: bool) -> None:
        self._infer = infer

    def _set_fleet_desc(self, fleet_desc: object) -> None:
        self._fleet_desc = fleet_desc

    def _set_program(self, program: Program) -> None:
        self._program = program

    def _gen_trainer_desc(self) -> None:
        """Sets the names of the classes, and the settings of the device worker."""
        self.proto_desc.class_name = "" if type(self) is TrainerDesc else type(self).__name__
        if self._device_worker is not None:
            self._device_worker._set_infer(self._infer)
            self._device_worker._set_program(self._program)
            self._device_worker._gen_worker_desc(self.proto_desc)

    def _desc(self) -> str:
        return str(self.proto_desc)

    def __str__(self) -> str:
        return self._desc()


class MultiTrainer(TrainerDesc):
    """Settings for several threads that train from one dataset."""


class DistMultiTrainer(TrainerDesc):
    """Settings for several threads of trainers with pservers."""


class PipelineTrainer(TrainerDesc):
    """Threads that train the parts of a network one behind the other."""
