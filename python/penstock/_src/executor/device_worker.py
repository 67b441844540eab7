"""Workers that a TrainerDesc names: how the threads run that train from a dataset. Executor.train_from_dataset decides
this by the program itself; here the settings are kept to be read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.absent import absent_names
from penstock._src.base.errors import not_built, program_error
from penstock._src.ir.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


DOWNPOUR = ("DownpourSGD", "DownpourSGDOPT")
NO_PSLIB = (
    "pslib is not part of Penstock; fluid.incubate.fleet.parameter_server.distribute_transpiler trains with "
    "parameter servers"
)


class DeviceWorker:
    """Base of the workers.

    Example:
        desc = fluid.trainer_desc.MultiTrainer()
        desc._set_program(fluid.default_main_program())
        desc._set_device_worker(fluid.device_worker.Hogwild())
        desc._gen_trainer_desc()
        assert desc.proto_desc.device_worker_name == 'HogwildWorker'
    """

    def __init__(self) -> None:
        self._infer = False
        self._program: Program | None = None

    def _set_infer(self, infer: bool = False) -> None:
        self._infer = infer

    def _set_program(self, program: Program | None) -> None:
        self._program = program

    def _gen_worker_desc(self, trainer_desc: Any) -> None:
        """Adds this worker's settings to a proto_desc."""
        raise NotImplementedError(f"{type(self).__name__} does not define _gen_worker_desc(); Hogwild and Section do")

    def _its_program(self) -> Program:
        if not isinstance(self._program, Program):
            raise program_error(
                "E-trainer-program", f"{type(self).__name__} has no program: call _set_program(program) first"
            )
        return self._program


class Hogwild(DeviceWorker):
    """Threads that each run the whole program and update the same parameters without waiting for each other.

    Example:
        trainer = fluid.trainer_factory.TrainerFactory()._create_trainer()
        assert isinstance(trainer._device_worker, fluid.device_worker.Hogwild)
    """

    def _gen_worker_desc(self, trainer_desc: Any) -> None:
        self._its_program()
        trainer_desc.device_worker_name = "HogwildWorker"
        if self._infer:
            trainer_desc.hogwild_param.skip_ops.append("feed")


class Section(DeviceWorker):
    """Threads that each run one section of a program that PipelineOptimizer has cut.

    Example:
        hidden = fluid.layers.fc(fluid.data('x', [None, 4]), 8, act='relu')
        loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
        fluid.optimizer.PipelineOptimizer(fluid.optimizer.SGD(0.1), cut_list=[[hidden], [loss]]).minimize(loss)
        main = fluid.default_main_program()
        trainer = fluid.trainer_factory.TrainerFactory()._create_trainer(main._pipeline_opt)
        trainer._set_program(main)
        trainer._gen_trainer_desc()
        assert len(trainer.proto_desc.section_param.section_config) == 3
    """

    def _gen_worker_desc(self, trainer_desc: Any) -> None:
        facts = getattr(self._its_program(), "_pipeline_opt", None)
        if facts is None:
            raise program_error(
                "E-trainer-program", "Section: the program has no sections; PipelineOptimizer.minimize() makes them"
            )
        trainer_desc.device_worker_name = "SectionWorker"
        param = trainer_desc.section_param
        for name in ("queue_size", "sync_steps", "start_cpu_core_id"):
            setattr(param, name, facts[name])
        param.param_need_sync = list(facts["param_need_sync"])
        param.section_config = [
            _SectionConfig(section, concurrency)
            for section, concurrency in zip(facts["section_program_list"], facts["concurrency_list"])
        ]


class _SectionConfig:
    """A section: its program as a ProgramDesc, the names that it takes from others and gives to them."""

    CPUPlace = 0  # a number of Fluid's protobuf; all sections run there
    place = CPUPlace

    def __init__(self, section: Mapping[str, Any], concurrency: int) -> None:
        self.program_desc = section["program"].desc
        self.concurrency = concurrency
        self.section_in_var_names = sorted(section["input_set"])
        self.section_out_var_names = sorted(section["output_set"])


class DeviceWorkerFactory:
    """Creates a worker by its name: 'hogwild' or 'section'.

    Example:
        worker = fluid.device_worker.DeviceWorkerFactory()._create_device_worker('hogwild')
        assert isinstance(worker, fluid.device_worker.Hogwild)
    """

    def _create_device_worker(self, worker_type: str) -> DeviceWorker:
        name = worker_type.lower()
        if name in [absent.lower() for absent in DOWNPOUR]:
            raise not_built("DeviceWorkerFactory: " + NO_PSLIB)
        kinds: dict[str, type[DeviceWorker]] = {"hogwild": Hogwild, "section": Section}
        if name not in kinds:
            raise ValueError(f"DeviceWorkerFactory: a worker is one of {', '.join(kinds)}, not {worker_type!r}")
        return kinds[name]()


__getattr__ = absent_names("penstock.fluid.device_worker", DOWNPOUR, NO_PSLIB)
