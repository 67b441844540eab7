"""Jobs of real processes of which pservers are killed: each is started again by itself, and no byte differs."""

import re

import pytest
from fleet_jobs import launch_and_read

WAIT_S = 180
STEPS = 10

# Trains sys.argv[1] steps and saves what it has in sys.argv[2]. KILLS, "step:server,...": trainer 0 kills that pserver
# before that step of its own, once it has its part of the last checkpoint that is due. SHARDED: the table is sharded by
# id. CLIPS: by the norm over all gradients. UNEVEN: trainer 1 takes four steps less. DIES_AT: its first process kills
# itself before that step.
SCRIPT = """
    import os, signal, sys, time
    import penstock
    import numpy as np
    import penstock.fluid as fluid

    steps, saved = int(sys.argv[1]), sys.argv[2]
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 64]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    word = fluid.layers.embedding(words, [400, 8], is_sparse=True, is_distributed='SHARDED' in os.environ,
                                  param_attr='table')
    frozen = fluid.layers.fc(x, 8, param_attr=fluid.ParamAttr('frozen', trainable=False), bias_attr=False)
    output = fluid.layers.fc([fluid.layers.fc(x, 512, act='tanh', param_attr='w'), word, frozen], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    rate = fluid.layers.exponential_decay(0.01, 2, 0.9, staircase=True)
    clip = fluid.clip.GradientClipByGlobalNorm(1.0) if 'CLIPS' in os.environ else None
    fluid.optimizer.Adam(rate, lazy_mode='SHARDED' in os.environ, grad_clip=clip).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = os.environ['TRAINING_ROLE'] == 'TRAINER'
    index = int(os.environ.get('PADDLE_TRAINER_ID' if trainer else 'PADDLE_PSERVER_ID', 0))
    config = fluid.DistributeTranspilerConfig()
    if 'CLIPS' in os.environ:
        config.clip = 'global'
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if trainer else 0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
    attempt = os.environ['PENSTOCK_RESTART_COUNT']
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        name = f'pserver.{index}.{attempt}.{os.environ["PENSTOCK_ROLE_RESTART_COUNT"]}'
        with open(name + '.new', 'w') as file:
            file.write(str(os.getpid()))
        os.rename(name + '.new', name)
        exe.run(main)
        sys.exit(0)
    kills = {}
    for kill in os.environ.get('KILLS', '').split(',') if attempt == '0' else []:
        if kill:
            kills.setdefault(int(kill.split(':')[0]), []).append(int(kill.split(':')[1]))
    starts, every = {}, int(os.environ['PENSTOCK_CHECKPOINT_STEPS'])
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    longest = 0.0
    for step in range(penstock.resume_step(), steps - (4 if 'UNEVEN' in os.environ and index == 1 else 0)):
        if index == 1 and str(step) == os.environ.get('DIES_AT') and os.environ['PENSTOCK_ROLE_RESTART_COUNT'] == '0':
            os.kill(os.getpid(), signal.SIGKILL)
        for server in kills.get(step, []) if index == 0 else []:
            start = starts[server] = starts.get(server, -1) + 1
            name, end = f'pserver.{server}.0.{start}', time.monotonic() + 60
            last, died = step // every * every, int(os.environ.get('DIES_AT', steps))
            last = died if last < died < step else last  # pservers save what a new process does not have
            part = f'{os.environ["PENSTOCK_CHECKPOINT_DIR"]}/step-{last}/part-{server}-of-2.json'
            while not os.path.exists(name) or (last > 0 and not os.path.exists(part)):
                assert time.monotonic() < end, (name, part)
                time.sleep(0.01)
            os.kill(int(open(name).read()), signal.SIGKILL)
        random = np.random.RandomState(2 * step + index)
        feed = {'x': random.rand(4, 64).astype('float32'), 'y': random.rand(4, 1).astype('float32'),
                'words': random.randint(0, 400, [4, 1])}
        begin = time.monotonic()
        exe.run(program, feed=feed, fetch_list=[loss])
        longest = max(longest, time.monotonic() - begin)
    print('the longest step took %.2f s' % longest, flush=True)
    if index == 0:
        fluid.io.save_persistables(exe, saved, program)
    exe.close()
"""


def launch(folder, saved, *options, every=4, steps=STEPS, **environment):
    for path in folder.glob("pserver.*"):
        path.unlink()
    options = ("--checkpoint_dir", "ckpt-" + saved, "--checkpoint_steps", every, *options)
    return launch_and_read(folder, SCRIPT, steps, saved, options=options, wait_s=WAIT_S, **environment)


def contents(folder, saved):
    """{path: bytes} of what the job has saved."""
    paths = [path for path in (folder / saved).rglob("*") if path.is_file() and path.name != "__digests__"]
    return {str(path.relative_to(folder / saved)): path.read_bytes() for path in paths}


def values_of(folder, saved, step):
    """[bytes] of all that each pserver held."""
    return [path.read_bytes() for path in sorted((folder / f"ckpt-{saved}" / f"step-{step}").glob("*.values"))]


@pytest.fixture(scope="module", params=[{}, {"SHARDED": "1"}], ids=["sliced", "sharded"])
def undisturbed(request, tmp_path_factory):
    """(folder, environment, what was saved, what pservers held after step 8) of a job without killed processes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    code, said = launch(folder, "straight", **request.param)
    assert code == 0, said
    assert "started again" not in said
    saved = contents(folder, "straight")
    assert {"w", "frozen"} <= saved.keys()
    held = values_of(folder, "straight", 8)
    assert len(held) == 2
    return folder, request.param, saved, held


@pytest.mark.parametrize(
    ("kills", "restored"),
    [
        ("7:1", ["it continued from its checkpoint of step 4"]),
        ("2:0,6:0", ["it began again with its initial values", "it continued from its checkpoint of step 4"]),
        ("5:0,5:1", ["it continued from its checkpoint of step 4"] * 2),
    ],
    ids=["after a checkpoint", "before the first and after it", "both"],
)
def test_killed_pservers_come_back_with_the_bytes_of_a_job_without_it(undisturbed, kills, restored):
    folder, environment, saved, held = undisturbed
    name = "killed-" + kills.replace(":", "-").replace(",", "-")
    code, said = launch(folder, name, KILLS=kills, **environment)
    assert code == 0, said
    assert contents(folder, name) == saved
    assert values_of(folder, name, 8) == held
    back = re.findall(r"launch: pserver \d \(pid \d+\) is back \d+\.\d s after its end: (.*)", said)
    assert len(back) == len(restored), said
    for line, start in zip(sorted(back), sorted(restored)):
        assert line.startswith(start)
        assert line.endswith("; no other process stepped back")
    # In the logs of both trainers, of which the launcher shows one.
    assert said.count("was started again, and is connected after") == 3 * len(restored)


@pytest.mark.parametrize(("kills", "dies_at", "restored"), [("5:1", "7", 4), ("7:1", "5", 5)])
def test_a_trainer_and_a_pserver_come_back(undisturbed, kills, dies_at, restored):
    folder, environment, saved, held = undisturbed
    code, said = launch(folder, "both" + dies_at, KILLS=kills, DIES_AT=dies_at, **environment)
    assert code == 0, said
    assert contents(folder, "both" + dies_at) == saved
    assert values_of(folder, "both" + dies_at, 8) == held
    assert f"it continued from its checkpoint of step {restored}" in said
    assert len(re.findall(r"launch: (?:pserver|trainer) 1 \(pid \d+\) is back", said)) == 2, said


def test_a_full_log_brings_a_checkpoint_ahead_of_the_interval(tmp_path):
    longer = {"every": 1000, "steps": 40}
    assert launch(tmp_path, "long", **longer)[0] == 0
    code, said = launch(tmp_path, "full", **longer, KILLS="35:0", PENSTOCK_RETENTION_MB="1")
    assert code == 0, said
    assert contents(tmp_path, "full") == contents(tmp_path, "long")
    assert re.search(r"is back .*: it continued from its checkpoint of step \d+, and took steps", said)


def test_a_pserver_comes_back_after_a_trainer_has_completed(tmp_path):
    assert launch(tmp_path, "uneven", UNEVEN="1")[0] == 0
    code, said = launch(tmp_path, "killed", UNEVEN="1", KILLS="9:0")
    assert code == 0, said
    assert contents(tmp_path, "killed") == contents(tmp_path, "uneven")


def test_pservers_that_take_each_step_together_are_not_started_again(tmp_path):
    code, said = launch(tmp_path, "straight", CLIPS="1")
    assert code == 0, said
    code, said = launch(tmp_path, "clips", "--max_restart", 1, KILLS="6:0", CLIPS="1")
    assert code == 0, said
    assert "it cannot be started again: pservers that clip by a norm over all gradients take each step together" in said
    assert "starting the job again, attempt 1 of 1" in said
    assert contents(tmp_path, "clips") == contents(tmp_path, "straight")
