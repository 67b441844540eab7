"""Role programs that Fluid 1.8.5 wrote for jobs of ranks run as they are, and train as one process does."""

import gzip
import json

import numpy as np
import pytest
from rank_processes import Ranks

STEPS, BATCH = 4, 4    # of each rank

# argv is who adds up gradients ('program', 'executor', 'alone': one process has the batch of all ranks, and the file
# names of rank -1), and how many ranks there are.
RANK = '''
    import json, os, sys
    import numpy as np
    import penstock.fluid as fluid
    adds_up, ranks = sys.argv[1], int(sys.argv[2])
    rank = -1 if adds_up == 'alone' else int(os.environ['PADDLE_TRAINER_ID'])
    addresses = os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')
    facts = json.load(open('facts.json'))

    def program(name):
        return fluid.Program.parse_from_string(open(name, 'rb').read())

    def with_addresses(startup):
        """Fluid's programs have theirs."""
        ours = dict(zip(facts['addresses'], addresses))
        for op in startup.global_block().ops:
            for attr in ('trainers', 'other_endpoints', 'endpoint'):
                if op.has_attr(attr):
                    value = op.attr(attr)
                    op._set_attr(attr, ours[value] if attr == 'endpoint' else [ours[one] for one in value])
        return startup

    exe = fluid.Executor(fluid.CPUPlace())
    main, startup = program('main_%d.pb' % rank), with_addresses(program('startup_%d.pb' % rank))
    exe.run(startup)
    scope = fluid.global_scope()
    names = facts['params']
    if rank < 0:
        start = np.load('start.npz')
        for name in start.files:
            scope.find_var(name).get_tensor().set(start[name], fluid.CPUPlace())
    values = lambda: {name: np.array(scope.find_var(name).get_tensor()) for name in names}
    if rank == 0:
        np.savez('start.npz', **values())
    run = lambda feed: exe.run(main, feed=feed, fetch_list=[facts['loss']])
    if adds_up == 'executor':
        build = fluid.BuildStrategy()
        build.trainers_endpoints = addresses
        parallel = fluid.ParallelExecutor(False, facts['loss'], main, num_trainers=ranks, trainer_id=rank,
                                          build_strategy=build)
        run = lambda feed: parallel.run([facts['loss']], feed=feed)
    random = np.random.RandomState(7)
    for step in range(facts['steps']):
        feed = {}
        for name, (shape, dtype, below) in facts['feeds'].items():
            shape = [facts['batch'] * ranks] + shape[1:]
            whole = random.rand(*shape).astype(dtype) if dtype == 'float32' else random.randint(0, below, shape)
            mine = slice(None) if rank < 0 else slice(facts['batch'] * rank, facts['batch'] * (rank + 1))
            feed[name] = whole[mine]
        run(feed)
    np.savez('end_%d.npz' % rank, **values())
    exe.close()
'''

# Whether ParallelExecutor adds up.
CASES = {
    'fit_a_line.sgd@coll_allreduce_t2': False,
    'fit_a_line.sgd@coll_localsgd_t2': False,
    'fit_a_line.sgd@nccl2_t2': True,
    'softmax_reg.adagrad.clip_norm@coll_allreduce_t2': False,
    'vgg11.momentum.reg_l2@coll_allreduce_t2': False,
}


def read(path):
    return path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + '.gz').read_bytes())


def lay_out(folder, fluids, fluid, case):
    """Programs and facts in one folder, as the script wants them; how many ranks there are."""
    source = fluids('programs', case.split('@')[0])
    roles = fluids('cases', case)
    facts, model = json.loads((roles / 'case.json').read_text()), json.loads((source / 'program.json').read_text())
    addresses = facts['trainer_endpoints']
    (folder / 'main_-1.pb').write_bytes(read(source / 'main.pb'))
    (folder / 'startup_-1.pb').write_bytes(read(source / 'startup.pb'))
    for rank in range(len(addresses)):
        suffix = '' if rank == 0 else '_t%d' % rank
        (folder / ('main_%d.pb' % rank)).write_bytes(read(roles / ('trainer%s.pb' % suffix)))
        (folder / ('startup_%d.pb' % rank)).write_bytes(read(roles / ('trainer_startup%s.pb' % suffix)))
    block = fluid.Program.parse_from_string(read(source / 'main.pb')).global_block()
    feeds = {}
    for name in model['feeds']:
        whole = block.var(name).dtype == fluid.core.VarDesc.VarType.INT64
        feeds[name] = list(block.var(name).shape), 'int64' if whole else 'float32', 10
    (folder / 'facts.json').write_text(json.dumps({
        'addresses': addresses, 'feeds': feeds, 'steps': STEPS, 'batch': BATCH, 'loss': model['loss'],
        'params': [param['name'] for param in model['params'] if param['trainable']]}))
    return len(addresses)


@pytest.mark.parametrize('case', CASES)
def test_fluids_programs_train_as_one_process_on_the_joined_batch(tmp_path, fluids, fluid, case):
    ranks = lay_out(tmp_path, fluids, fluid, case)
    for processes, who in ((ranks, 'executor' if CASES[case] else 'program'), (1, 'alone')):
        with Ranks(tmp_path, RANK, processes, who, ranks) as job:
            job.end_well()
    ours, alone = [np.load(tmp_path / ('end_%d.npz' % rank)) for rank in range(ranks)], np.load(tmp_path / 'end_-1.npz')
    start, normalized = np.load(tmp_path / 'start.npz'), 'batch_norm' in ' '.join(alone.files)
    assert any(np.any(ours[0][name] != start[name]) for name in alone.files), 'it trains'
    for name in alone.files:
        for rank in range(ranks):
            np.testing.assert_array_equal(ours[rank][name], ours[0][name])
            if not normalized:    # each rank takes moments of its own part of the batch
                np.testing.assert_allclose(ours[rank][name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name)
