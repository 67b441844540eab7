"""Places on GPUs: an error, or the CPU if the environment says so; device counts and device annotations in scripts."""

import os
import warnings

import numpy
import pytest


@pytest.fixture
def falls_back(monkeypatch):
    from penstock.fluid import _devices
    monkeypatch.setenv('PENSTOCK_CUDA_FALLBACK', '1')
    monkeypatch.setattr(_devices, '_warned', False)


@pytest.fixture
def stays(monkeypatch):
    monkeypatch.delenv('PENSTOCK_CUDA_FALLBACK', raising=False)


def network(fluid):
    x = fluid.data('x', [None, 2])
    ones = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0))
    return fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=ones))


FEED = {'x': numpy.array([[1, 2], [3, 4]], 'float32')}


def test_a_place_on_a_gpu_is_an_error_that_names_the_way_out(fluid, stays):
    loss = network(fluid)
    asks = {
        r'Executor on CUDAPlace\(0\)': lambda: fluid.Executor(fluid.CUDAPlace(0)),
        'Executor on CUDAPinnedPlace': lambda: fluid.Executor(fluid.CUDAPinnedPlace()),
        'cuda_places': fluid.cuda_places,
        'cuda_pinned_places': fluid.cuda_pinned_places,
        'ParallelExecutor with use_cuda': lambda: fluid.ParallelExecutor(True, loss_name=loss.name),
    }
    for what, ask in asks.items():
        with pytest.raises(NotImplementedError, match='^%s: .* PENSTOCK_CUDA_FALLBACK=1 .*E-no-cuda' % what):
            ask()
    with pytest.raises(TypeError, match="Executor: the place must be one such as CPUPlace\\(\\), not 'cpu'"):
        fluid.Executor('cpu')


def test_with_the_fallback_gpus_mean_the_cpu_after_one_warning(fluid, falls_back):
    loss = network(fluid)
    with pytest.warns(UserWarning, match='Executor on CUDAPlace.* run on the CPU') as caught:
        exe = fluid.Executor(fluid.CUDAPlace(1))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        exe.run(fluid.default_startup_program())
        value, = exe.run(feed=FEED, fetch_list=[loss])
        places = fluid.cuda_places([0])
        program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, places=places)
        parallel = fluid.ParallelExecutor(use_cuda=True, loss_name=loss.name)
        assert value == exe.run(program, feed=FEED, fetch_list=[loss])[0] == parallel.run([loss], FEED)[0] == 5.0
        assert fluid.cuda_pinned_places(2) == [fluid.CUDAPinnedPlace()] * 2
    assert exe.place == fluid.CPUPlace() and not fluid.is_compiled_with_cuda()


def test_cuda_places_are_those_that_were_selected(fluid, falls_back, monkeypatch):
    monkeypatch.delenv('FLAGS_selected_gpus', raising=False)
    with pytest.warns(UserWarning, match='cuda_places: programs run on the CPU'):
        assert fluid.cuda_places() == [fluid.CUDAPlace(0)]
    assert fluid.framework.cuda_places(3) == [fluid.CUDAPlace(3)]
    monkeypatch.setenv('FLAGS_selected_gpus', '1,2')
    assert fluid.cuda_places() == [fluid.CUDAPlace(1), fluid.CUDAPlace(2)]


def test_gpus_are_counted_as_the_driver_and_the_environment_say(fluid, stays, monkeypatch):
    count = fluid.core.get_cuda_device_count
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    monkeypatch.setattr(os, 'listdir', lambda path: ['null', 'nvidia0', 'nvidia1', 'nvidiactl', 'nvidia-uvm'])
    assert count() == 2
    for listed, visible in (('', 0), ('1', 1), ('0,-1,1', 1), ('GPU-8a,1,2', 2)):
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', listed)
        assert count() == visible
    monkeypatch.setattr(os, 'listdir', lambda path: [])
    assert count() == 0
    monkeypatch.setenv('PENSTOCK_CUDA_FALLBACK', '1')
    assert count() == 1


def test_device_guard_marks_ops(fluid):
    ops = fluid.default_main_program().global_block().ops

    def made():
        fluid.layers.fill_constant([1], 'float32', 1.0)
        return fluid.default_main_program().global_block().ops[-1].attr('op_device')

    with fluid.device_guard('gpu'):
        assert made() == 'gpu'
        with fluid.device_guard():
            assert made() == ''
        with fluid.program_guard(fluid.Program()):
            assert made() == 'gpu'
        assert made() == 'gpu'
    assert made() == '' and not ops
    with pytest.raises(ValueError, match="must be 'cpu', 'gpu' or None, not 'tpu'"):
        with fluid.device_guard('tpu'):
            pass


def test_attributes_of_the_framework_have_fluids_names(fluid):
    maker = fluid.core.op_proto_and_checker_maker
    fluid.optimizer.SGD(0.1).minimize(network(fluid))
    op = fluid.default_main_program().global_block().ops[-1]
    assert op.attr(maker.kOpRoleAttrName()) == int(maker.OpRole.Optimize) == fluid.framework.OpRole.Optimize
    assert op.attr(maker.kOpRoleVarAttrName()) == ['fc_0.w_0', 'fc_0.w_0@GRAD']
    assert op.attr(maker.kOpNameScopeAttrName()).startswith('/optimizer')
    assert op.attr(maker.kOpDeviceAttrName()) == '' and maker.kOpCreationCallstackAttrName() == 'op_callstack'


def test_parallel_executor_as_fluid_has_it(fluid):
    loss = network(fluid)
    fluid.optimizer.SGD(0.0).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    with pytest.raises(TypeError, match='share_vars_from must be a ParallelExecutor, not 3'):
        fluid.ParallelExecutor(False, loss_name=loss.name, share_vars_from=3)
    exe = fluid.ParallelExecutor(False, loss_name=loss.name)
    with pytest.raises(RuntimeError, match='comes after the first run'):
        exe.drop_local_exe_scopes()
    assert exe.run([loss.name], feed_dict=FEED)[0] == 5.0 and exe.device_count == 1
    exe.drop_local_exe_scopes()
    other = fluid.ParallelExecutor(False, loss_name=loss.name, share_vars_from=exe)
    assert other.run([loss.name], feed=[FEED])[0] == 5.0
    kinds = fluid.parallel_executor
    assert kinds.BuildStrategy is fluid.BuildStrategy and kinds.ExecutionStrategy is fluid.ExecutionStrategy
