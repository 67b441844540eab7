"""Fluid's numeric cases through the Python API: its programs, its start values and feeds, its losses and final
values."""

import gzip
import json

import numpy as np
import pytest

# With plain sgd also a schedule (sgd_exp) and clipping by global norm.
BOTH = ('sgd', 'sgd_exp', 'sgd_gnorm', 'sgd_l2', 'momentum', 'nesterov', 'adagrad', 'adam', 'adamax', 'ftrl')
LINEAR = ('decayed_adagrad', 'lamb', 'lars', 'rmsprop')
CASES = [(model, optimizer) for model in ('linear', 'softmax_reg') for optimizer in BOTH] + \
    [('linear', optimizer) for optimizer in LINEAR]


def load(fluid, folder, name):
    path = folder / name
    data = path.read_bytes() if path.exists() else gzip.decompress((folder / (name + '.gz')).read_bytes())
    return fluid.Program.parse_from_string(data)


@pytest.mark.parametrize('model, optimizer', CASES)
def test_ten_steps_give_fluids_numbers(corpus, fluid, model, optimizer):
    folder = corpus / 'open' / 'numeric' / model
    info = json.loads((folder / 'info.json').read_text())
    expected = np.load(folder / (optimizer + '.npz'))
    feeds = np.load(folder / 'feeds.npz')
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(load(fluid, folder, optimizer + '.startup.pb'))
    start = np.load(folder / 'init.npz')
    for name in start.files:
        fluid.global_scope().find_var(name).get_tensor().set(start[name], fluid.CPUPlace())
    main = load(fluid, folder, optimizer + '.main.pb')
    losses = []
    for step in range(10):
        feed = {name: feeds['s%d:%s' % (step, name)] for name in info['feeds']}
        losses.append(exe.run(main, feed=feed, fetch_list=[info['loss']])[0][0])
    np.testing.assert_allclose(losses, np.ravel(expected['loss']), rtol=1e-4, atol=1e-5)
    # Fluid's own runs with these differ by as much.
    atol = 3e-2 if optimizer in ('adam', 'adamax', 'lamb') else 1e-5
    finals = [name for name in expected.files if name.startswith('final:')]
    assert len(finals) > len(start.files)
    for name in finals:
        got = np.array(fluid.global_scope().find_var(name[len('final:'):]).get_tensor())
        np.testing.assert_allclose(got, expected[name], rtol=1e-4, atol=atol, err_msg=name)
