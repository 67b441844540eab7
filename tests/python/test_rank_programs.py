"""Role programs that Fluid 1.8.5 wrote for jobs of ranks run unchanged, and train like one process."""

import gzip
import json

import numpy as np
import pytest
from rank_processes import Ranks

STEPS, BATCH = 4, 4  # of each rank

# argv: what sums gradients, and the number of ranks. 'program', 'executor'; one process, with the file names of
# rank -1, has the batch of all ranks ('alone'), or trains on the batch of each by itself and then takes the mean of the
# parameters, as local SGD does ('apart').
RANK = '''
    import json, os, sys
    import numpy as np
    import penstock.fluid as fluid
    adds_up, ranks = sys.argv[1], int(sys.argv[2])
    rank = -1 if adds_up in ('alone', 'apart') else int(os.environ['PADDLE_TRAINER_ID'])
    addresses = os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')
    facts = json.load(open('facts.json'))

    def program(name):
        return fluid.Program.parse_from_string(open(name, 'rb').read())

    def with_addresses(startup):
        """Fluid's programs have theirs, and where there are those of rank 0 alone, its number."""
        others = [one for one in addresses if one != addresses[rank]]
        ours = {'trainers': addresses, 'other_endpoints': others, 'endpoint': addresses[rank], 'trainer_id': rank,
                'rank': rank}
        for op in startup.global_block().ops:
            for attr in ours:
                if op.has_attr(attr):
                    op._set_attr(attr, ours[attr])
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
    kept = [var.name for var in main.list_vars() if var.persistable and scope.find_var(var.name)]
    tensor = lambda name: scope.find_var(name).get_tensor()
    state = lambda: {name: np.array(tensor(name)) for name in kept}
    states = [state() for _ in range(ranks)]

    def run_apart(feed):
        for of_rank in range(ranks):
            for name, value in states[of_rank].items():
                tensor(name).set(value, fluid.CPUPlace())
            run({name: value[facts['batch'] * of_rank:facts['batch'] * (of_rank + 1)] for name, value in feed.items()})
            states[of_rank] = state()
        for name in names:
            mean = sum(one[name].astype('float64') for one in states) / ranks
            for one in states:
                one[name] = mean.astype(one[name].dtype)
            tensor(name).set(states[0][name], fluid.CPUPlace())

    random = np.random.RandomState(7)
    for step in range(facts['steps']):
        feed = {}
        for name, (shape, dtype, below) in facts['feeds'].items():
            shape = [facts['batch'] * ranks] + shape[1:]
            whole = random.rand(*shape).astype(dtype) if dtype == 'float32' else random.randint(0, below, shape)
            mine = slice(None) if rank < 0 else slice(facts['batch'] * rank, facts['batch'] * (rank + 1))
            feed[name] = whole[mine]
        (run_apart if adds_up == 'apart' else run)(feed)
    np.savez('end_%d.npz' % rank, **values())
    exe.close()
'''

# What sums gradients, and the equivalent run of one process.
CASES = {
    "fit_a_line.sgd@coll_allreduce_t2": ("program", "alone"),
    "fit_a_line.sgd@coll_localsgd_t2": ("program", "alone"),
    "fit_a_line.sgd@nccl2_t2": ("executor", "alone"),
    "lenet.lars@coll_localsgd_t2": ("program", "apart"),
    "lenet.lars@nccl2_t4_hier": ("executor", "alone"),
    "lenet.momentum@coll_allreduce_t4_n2": ("program", "alone"),
    "lenet.momentum@nccl2_t4": ("executor", "alone"),
    "softmax_reg.adagrad.clip_norm@coll_allreduce_t2": ("program", "alone"),
    "vgg11.momentum.reg_l2@coll_allreduce_t2": ("program", "alone"),
}


def test_every_rank_case_is_covered(corpus):
    cases = [json.loads(path.read_text()) for path in sorted((corpus / "open" / "cases").glob("*/case.json"))]
    of_ranks = {
        case["id"] for case in cases if case.get("config", {}).get("kind") in ("nccl2", "collective") and case["files"]
    }
    assert of_ranks == set(CASES)


def read(path):
    return path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())


def lay_out(folder, fluids, fluid, case):
    """Puts programs and facts into one folder for the script; returns the number of ranks."""
    source = fluids("programs", case.split("@")[0])
    roles = fluids("cases", case)
    facts, model = json.loads((roles / "case.json").read_text()), json.loads((source / "program.json").read_text())
    addresses = facts["trainer_endpoints"]
    (folder / "main_-1.pb").write_bytes(read(source / "main.pb"))
    (folder / "startup_-1.pb").write_bytes(read(source / "startup.pb"))
    for rank in range(len(addresses)):
        suffix = f"_t{rank}" if f"trainer_t{rank}.pb" in facts["files"] else ""
        (folder / (f"main_{rank}.pb")).write_bytes(read(roles / (f"trainer{suffix}.pb")))
        (folder / (f"startup_{rank}.pb")).write_bytes(read(roles / (f"trainer_startup{suffix}.pb")))
    block = fluid.Program.parse_from_string(read(source / "main.pb")).global_block()
    feeds = {}
    for name in model["feeds"]:
        whole = block.var(name).dtype == fluid.core.VarDesc.VarType.INT64
        feeds[name] = list(block.var(name).shape), "int64" if whole else "float32", 10
    (folder / "facts.json").write_text(
        json.dumps(
            {
                "feeds": feeds,
                "steps": STEPS,
                "batch": BATCH,
                "loss": model["loss"],
                "params": [param["name"] for param in model["params"] if param["trainable"]],
            }
        )
    )
    return len(addresses)


@pytest.mark.parametrize("case", CASES)
def test_fluids_programs_train_as_one_process_on_the_joined_batch(tmp_path, fluids, fluid, case):
    ranks = lay_out(tmp_path, fluids, fluid, case)
    for processes, who in zip((ranks, 1), CASES[case]):
        with Ranks(tmp_path, RANK, processes, who, ranks) as job:
            job.end_well()
    ours, alone = [np.load(tmp_path / (f"end_{rank}.npz")) for rank in range(ranks)], np.load(tmp_path / "end_-1.npz")
    start, normalized = np.load(tmp_path / "start.npz"), "batch_norm" in " ".join(alone.files)
    assert any(np.any(ours[0][name] != start[name]) for name in alone.files), "it trains"
    for name in alone.files:
        for rank in range(ranks):
            np.testing.assert_array_equal(ours[rank][name], ours[0][name])
            if not normalized:  # each rank takes moments of its own part of the batch
                np.testing.assert_allclose(ours[rank][name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name)
