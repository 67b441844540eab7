"""Jobs of real processes with both exchanges: dense gradients among trainers, sparse ones with pservers."""

import os
import textwrap

import numpy as np
import penstock.fluid as fluid
import pytest
from penstock.distributed.launch.job import free_ports
from test_jobs import Job

SCRIPT = textwrap.dedent('''
    import os, sys
    import numpy as np
    import penstock.fluid as fluid

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints = os.environ['ENDPOINTS']
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    ids, label = fluid.data('ids', [None, 4, 1], 'int64'), fluid.data('label', [None, 1])
    rows = fluid.layers.embedding(ids, [50, 8], is_sparse=True, is_distributed='TABLE' in os.environ)
    hidden = fluid.layers.fc(fluid.layers.reduce_sum(rows, dim=1), 16, act='tanh')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), label))
    if 'CLIP' in os.environ:
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(0.1))
    rate = fluid.layers.exponential_decay(0.1, 2, 0.5) if 'DECAY' in os.environ else 0.1
    fluid.optimizer.Adam(rate, regularization=fluid.regularizer.L2Decay(0.01)).minimize(loss)
    names = [p.name for p in fluid.default_main_program().all_parameters() if 'embedding' not in p.name]
    config = fluid.DistributeTranspilerConfig()
    trainers = 2
    if 'HYBRID' in os.environ:
        config.exchange = {'dense': 'allreduce', 'sparse': 'pserver'}
        trainers = os.environ.get('ADDRESSES', 2)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=trainers)
    if role == 'pserver':
        main, startup = t.get_pserver_programs(endpoints.split(',')[index])
        exe.run(startup)
        exe.run(main)
        sys.exit(0)
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    losses = []
    for step in range(steps):
        random = np.random.RandomState(10 * step + index)
        feed = {'ids': random.randint(0, 50, [4, 4, 1]), 'label': random.rand(4, 1).astype('float32')}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss])[0])
    found = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    np.savez(os.path.join(out, 'trainer%d.npz' % index), losses=losses, **found)
    exe.close()
''')


@pytest.fixture
def job(tmp_path):
    job = Job(tmp_path, SCRIPT)
    yield job
    job.kill_all()


def train(job, **environment):
    for name in ('HYBRID', 'ADDRESSES', 'PADDLE_TRAINER_ENDPOINTS'):
        job.environment.pop(name, None)
    job.environment['ENDPOINTS'] = ','.join('127.0.0.1:%d' % port for port in free_ports(2))
    trained = job.train(steps=5, **environment)
    job.processes.clear()
    return trained


def hybrid(job, name='ADDRESSES'):
    return train(job, HYBRID='1', **{name: ','.join('127.0.0.1:%d' % port for port in free_ports(2))})


@pytest.mark.parametrize('asked', [(), ('TABLE', 'DECAY'), ('CLIP',)])
def test_both_exchanges_train_what_pservers_alone_do_with_the_same_bytes_again(job, asked):
    job.environment.update(dict.fromkeys(asked, '1'))
    alone, first = train(job), hybrid(job)
    again = hybrid(job, 'PADDLE_TRAINER_ENDPOINTS')
    for trainer in range(2):
        for name, value in alone[trainer].items():
            np.testing.assert_allclose(first[trainer][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_array_equal(again[trainer][name], first[trainer][name], err_msg=name)
    for name in set(first[0]) - {'losses'}:
        np.testing.assert_array_equal(first[0][name], first[1][name], err_msg=name)


@pytest.mark.parametrize('exchange', ['auto', {'dense': 'gossip'}, {'sparse': 'allreduce'}, {'tables': 'pserver'}])
def test_an_exchange_that_there_is_not_is_refused(exchange):
    config = fluid.DistributeTranspilerConfig()
    config.exchange = exchange
    with pytest.raises(ValueError, match='E-plan-exchange'):
        fluid.DistributeTranspiler(config)
