"""TrainerFactory and device workers, which keep what a program says of its training, and FetchHandlerMonitor."""

import threading

import numpy
import pytest


def factory(fluid):
    return fluid.trainer_factory.TrainerFactory()


def test_a_plain_program_trains_in_threads(fluid):
    trainer = factory(fluid)._create_trainer()
    trainer._set_infer(True)
    with pytest.raises(ValueError, match="Hogwild has no program"):
        trainer._gen_trainer_desc()
    trainer._set_program(fluid.Program())
    trainer._gen_trainer_desc()
    proto = trainer.proto_desc
    assert (proto.class_name, proto.device_worker_name) == ("MultiTrainer", "HogwildWorker")
    assert proto.hogwild_param.skip_ops == ["feed"]


def test_settings_are_passed_to_the_descriptor(fluid):
    trainer = factory(fluid)._create_trainer(
        {"trainer": "DistMultiTrainer", "device_worker": "Hogwild", "mpi_rank": 3, "dump_param": ["w"], "other": 1}
    )
    assert isinstance(trainer, fluid.trainer_desc.DistMultiTrainer)
    assert (trainer.proto_desc.mpi_rank, trainer.proto_desc.dump_param) == (3, ["w"])


def test_pipeline_sections_are_described(fluid):
    hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 8, bias_attr=False)
    loss = fluid.layers.mean(hidden)
    main = fluid.default_main_program()
    section = fluid.device_worker.DeviceWorkerFactory()._create_device_worker("section")
    section._set_program(main)
    with pytest.raises(ValueError, match="the program has no sections"):
        section._gen_worker_desc(fluid.trainer_desc.PipelineTrainer().proto_desc)
    sgd = fluid.optimizer.SGD(0.1)
    fluid.optimizer.PipelineOptimizer(sgd, cut_list=[[hidden], [loss]], queue_size=7).minimize(loss)
    trainer = factory(fluid)._create_trainer(main._pipeline_opt)
    trainer._set_program(main)
    trainer._gen_trainer_desc()
    proto = trainer.proto_desc
    assert (proto.class_name, proto.device_worker_name, proto.section_param.queue_size) == (
        "PipelineTrainer",
        "SectionWorker",
        7,
    )
    first, middle, last = proto.section_param.section_config
    assert hidden.name in first.section_out_var_names and hidden.name in middle.section_in_var_names
    assert first.concurrency == 1 and first.program_desc.block(0).op(0).type() == "mul"


@pytest.mark.parametrize(
    "use",
    [
        lambda fluid: fluid.device_worker.DownpourSGD,
        lambda fluid: fluid.device_worker.DownpourSGDOPT,
        lambda fluid: fluid.device_worker.DeviceWorkerFactory()._create_device_worker("DownpourSGD"),
        lambda fluid: factory(fluid)._create_trainer({"trainer": "DistMultiTrainer", "device_worker": "DownpourSGD"}),
        lambda fluid: factory(fluid)._create_trainer(
            {"trainer": "MultiTrainer", "device_worker": "Hogwild", "fleet_desc": None}
        ),
    ],
)
def test_pslib_is_refused(fluid, use):
    with pytest.raises(NotImplementedError, match="pslib is not part of Penstock; .* trains with parameter servers"):
        use(fluid)


def test_wrong_names_are_refused(fluid):
    with pytest.raises(ValueError, match="a worker is one of hogwild, section, not 'other'"):
        fluid.device_worker.DeviceWorkerFactory()._create_device_worker("other")
    for trainer, worker in (("numpy", "Hogwild"), ("MultiTrainer", "Nix")):
        with pytest.raises(ValueError, match="there is no (trainer|device_worker)"):
            factory(fluid)._create_trainer({"trainer": trainer, "device_worker": worker})
    with pytest.raises(NotImplementedError, match="DeviceWorker does not define _gen_worker_desc"):
        fluid.device_worker.DeviceWorker()._gen_worker_desc(None)
    assert not hasattr(fluid.device_worker, "DownpourX")


def test_a_monitor_passes_values_to_its_handler(fluid, capfd):
    block, scope = fluid.default_main_program().global_block(), fluid.Scope()
    known, unknown = (block.create_var(name=name, dtype="float32") for name in ("known", "unknown"))
    scope.var("known").get_tensor().set(numpy.ones((2, 3), "float32"), fluid.CPUPlace())
    calls, called = [], threading.Event()

    class Handler(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            calls.append(res_dict)
            called.set()

    monitor = fluid.trainer_factory.FetchHandlerMonitor(
        scope, Handler({"a": known, "b": unknown, "c": None}, period_secs=0.001)
    )
    assert "the value of c is not a Variable" in capfd.readouterr().err
    monitor.stop()  # nothing has begun
    for _ in range(2):
        called.clear()
        monitor.start()
        assert called.wait(60)
        with pytest.raises(RuntimeError, match="it has been started already"):
            monitor.start()
        monitor.stop()
    assert calls[0]["a"].tolist() == [[1.0] * 3] * 2 and calls[0]["b"] is None and calls[0]["c"] is None
    assert "penstock-fetch-handler" not in [thread.name for thread in threading.enumerate()]


def test_a_handler_prints_variables_with_a_value(fluid, capsys):
    x = fluid.data("x", [1])
    fluid.executor.FetchHandler({"x": x}).handler({"x": numpy.array([2.5]), "y": None})
    assert capsys.readouterr().out == "x[0]: 2.5\n"
