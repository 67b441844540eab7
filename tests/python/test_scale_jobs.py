"""Jobs of real processes whose number of pservers changes while they train: no byte differs from a job without it."""

import os
import re
import subprocess
import sys
import textwrap

import pytest
from penstock._src.launch import scale_command

WAIT_S = 150
STEPS = 12

# Trains sys.argv[1] steps and saves what it has in sys.argv[2]. SCALES, "step:servers,...": before that step, trainer 0
# asks for that number of pservers. KILLS, "file:server": trainer 0 kills that pserver as soon as that file is beside
# the checkpoints. DIES: the first process of trainer 1 kills itself then. SHARDED: the table is sharded by id. DROPOUT:
# the trainers keep a state of random ops. OLD: the step from which on trainer 1 runs a clone that was made before the
# first step. DATASET: trains from a dataset instead, and asks before the first step.
SCRIPT = """
    import glob, os, signal, subprocess, sys, threading, time
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
    hidden = fluid.layers.fc(x, 512, act='tanh', param_attr='w')
    if 'DROPOUT' in os.environ:
        hidden = fluid.layers.dropout(hidden, 0.1)
    output = fluid.layers.fc([hidden, word, frozen], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    rate = fluid.layers.exponential_decay(0.01, 2, 0.9, staircase=True)
    fluid.optimizer.Adam(rate, lazy_mode='SHARDED' in os.environ).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = os.environ['TRAINING_ROLE'] == 'TRAINER'
    index = int(os.environ.get('PADDLE_TRAINER_ID' if trainer else 'PADDLE_PSERVER_ID', 0))
    config = fluid.DistributeTranspilerConfig()
    if 'CLIPS' in os.environ:
        config.clip = 'global'
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if trainer else 0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        name = f'pserver.{index}.{os.getpid()}'
        with open(name + '.new', 'w') as file:
            file.write('')
        os.rename(name + '.new', name)
        exe.run(main)
        os.unlink(name)
        sys.exit(0)

    def pairs(name):
        found = [pair.split(':') for pair in os.environ.get(name, '').split(',') if pair]
        return [(int(step), int(value)) for step, value in found]

    def wait_for(what):
        end = time.monotonic() + 60
        while not what():
            assert time.monotonic() < end
            time.sleep(0.005)

    scales, asked = pairs('SCALES'), []
    files = os.path.join(os.environ['PENSTOCK_CHECKPOINT_DIR'], 'scale')
    request = os.path.join(files, 'request')

    def ask(servers):
        for one in asked:
            one.wait()
        before = os.path.getmtime(request) if os.path.exists(request) else 0
        command = [sys.executable, '-m', 'penstock._src.launch.scale_command', 'mylog', '--servers', str(servers)]
        asked.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        wait_for(lambda: asked[-1].poll() is not None or
                 (os.path.exists(request) and os.path.getmtime(request) != before))

    def newest(server):
        return max(glob.glob(f'pserver.{server}.*[0-9]'), key=os.path.getmtime, default=None)

    def kill_when(file, server):
        wait_for(lambda: os.path.exists(os.path.join(files, file)))
        if server is None:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for(lambda: newest(server) is not None)
        os.kill(int(newest(server).split('.')[2]), signal.SIGKILL)

    if index == 0 and 'KILLS' in os.environ:
        file, server = os.environ['KILLS'].split(':')
        threading.Thread(target=kill_when, args=(file, int(server)), daemon=True).start()
    if index == 1 and 'DIES' in os.environ and os.environ['PENSTOCK_ROLE_RESTART_COUNT'] == '0':
        threading.Thread(target=kill_when, args=(os.environ['DIES'], None), daemon=True).start()
    program = t.get_trainer_program()
    clone = program.clone()
    exe.run(fluid.default_startup_program())
    if 'DATASET' in os.environ:
        random = np.random.RandomState(index)
        with open(f'data-{index}', 'w') as file:
            for _ in range(4 * steps):
                numbers = ' '.join('%.3f' % one for one in random.rand(64))
                file.write(f'64 {numbers} 1 {random.rand():.3f} 1 {random.randint(0, 400)}\\n')
        dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
        dataset.set_batch_size(4)
        dataset.set_use_var([x, y, words])
        dataset.set_filelist([f'data-{index}'])
        for _, servers in scales if index == 0 else []:
            ask(servers)
        exe.train_from_dataset(program, dataset)
        steps = 0
    for step in range(penstock.resume_step(), steps):
        for at, servers in scales if index == 0 else []:
            if at == step:
                ask(servers)
        random = np.random.RandomState(2 * step + index)
        feed = {'x': random.rand(4, 64).astype('float32'), 'y': random.rand(4, 1).astype('float32'),
                'words': random.randint(0, 400, [4, 1])}
        old = index == 1 and step >= int(os.environ.get('OLD', steps))
        exe.run(clone if old else program, feed=feed, fetch_list=[loss])
    for one in asked:
        print('scale said:', one.wait(), one.stdout.read().strip(), flush=True)
    print('pservers:', os.environ['PADDLE_PSERVER_ENDPOINTS'].count(',') + 1, 'resume_step:', penstock.resume_step())
    if index == 0:
        fluid.io.save_persistables(exe, saved, program)
    exe.close()
"""


def launch(folder, saved, *options, servers=2, checkpoints=True, every=4, **environment):
    (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
    for path in folder.glob("pserver.*"):
        path.unlink()
    steps = ("--checkpoint_steps", str(every)) if checkpoints else ()
    command = [sys.executable, "-m", "penstock.distributed.launch", "--worker_num", "2", "--server_num", str(servers)]
    result = subprocess.run(
        [*command, "--checkpoint_dir", "ckpt-" + saved, *steps, *map(str, options), "job.py", str(STEPS), saved],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    logs = [path.read_text(errors="replace") for path in sorted((folder / "mylog").glob("*log.*"))]
    return result.returncode, "\n".join([result.stdout, result.stderr, *logs])


def contents(folder, saved):
    """{path: bytes} of what the job has saved."""
    paths = [path for path in (folder / saved).rglob("*") if path.is_file() and path.name != "__digests__"]
    return {str(path.relative_to(folder / saved)): path.read_bytes() for path in paths}


def difference(folder, one, other, step=STEPS):
    """What `penstock ckpt diff` says of two checkpoints; nothing if all that the pservers held is equal."""
    tool = os.path.join(os.path.dirname(sys.executable), "penstock")
    paths = [str(folder / f"ckpt-{saved}" / f"step-{step}") for saved in (one, other)]
    result = subprocess.run([tool, "ckpt", "diff", *paths], text=True, capture_output=True, timeout=WAIT_S)
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="module", params=[{"DROPOUT": "1"}, {"SHARDED": "1"}], ids=["sliced", "sharded"])
def undisturbed(request, tmp_path_factory):
    """(folder, environment, what was saved) of a job with two pservers throughout."""
    folder = tmp_path_factory.mktemp("undisturbed")
    code, said = launch(folder, "straight", **request.param)
    assert code == 0, said
    assert "instead of" not in said
    saved = contents(folder, "straight")
    assert {"w", "frozen"} <= saved.keys()
    return folder, request.param, saved


MOVED = r"launch: (\d) instead of (\d) pservers after step (\d+); the trainers waited \d+\.\d s for them"


def test_the_number_of_pservers_changes_and_no_byte_differs(undisturbed):
    folder, environment, saved = undisturbed
    code, said = launch(folder, "scaled", SCALES="1:3,6:1", **environment)
    assert code == 0, said
    assert contents(folder, "scaled") == saved
    assert difference(folder, "straight", "scaled")[0] == 0, difference(folder, "straight", "scaled")
    moves = re.findall("(?m)^" + MOVED, said)
    assert [move[:2] for move in moves] == [("3", "2"), ("1", "3")]
    assert [int(move[2]) for move in moves] <= [6, 11]
    assert len(re.findall("scale said: 0 " + MOVED, said)) == 2 + 2, said  # in a log that the launcher shows, too
    assert said.count("pservers: 1 resume_step: 0") == 3
    assert "reacted" not in said


def launch_and_kill(folder, name, environment, back):
    """What the job has saved of which a process is killed while the number of pservers changes."""
    code, said = launch(folder, name, SCALES="1:3", **environment)
    assert code == 0, said
    assert len(re.findall("(?m)^" + MOVED, said)) == 1, said
    killed = rf"(?m)^launch: {back} \(pid \d+\) was killed by SIGKILL, .*; it is started again"
    assert len(re.findall(killed, said)) == 1, said
    return contents(folder, name)


@pytest.mark.parametrize(("kills", "back"), [("there-1:0", "pserver 0"), ("go:2", "pserver 2")], ids=["old", "new"])
def test_a_pserver_that_is_killed_meanwhile_comes_back(undisturbed, kills, back):
    folder, environment, saved = undisturbed
    assert launch_and_kill(folder, "killed-" + back[-1], {"KILLS": kills, **environment}, back) == saved


@pytest.mark.parametrize("undisturbed", [{"SHARDED": "1"}], indirect=True, ids=["sharded"])
@pytest.mark.parametrize("dies", ["there-1", "go"], ids=["while it waits", "while it moves"])
def test_a_trainer_that_is_killed_meanwhile_comes_back(undisturbed, dies):
    folder, environment, saved = undisturbed
    assert launch_and_kill(folder, "died-" + dies, {"DIES": dies, **environment}, "trainer 1") == saved


def test_what_cannot_follow_is_refused_and_the_job_goes_on(tmp_path):
    code, said = launch(tmp_path, "clips", SCALES="1:2,2:3", CLIPS="1")
    assert code == 0, said
    assert "scale said: 1 error: scale: the job has 2 pservers already   [E-scale-servers]" in said
    assert "scale said: 1 error: scale: the job works with clip=global   [E-scale-mode]" in said
    assert "instead of 2 pservers after" not in said


def test_trainers_of_datasets_follow_too(tmp_path):
    assert launch(tmp_path, "straight", DATASET="1", SHARDED="1")[0] == 0
    code, said = launch(tmp_path, "scaled", DATASET="1", SHARDED="1", SCALES="0:3")
    assert code == 0, said
    assert len(re.findall("(?m)^" + MOVED, said)) == 1, said
    assert contents(tmp_path, "scaled") == contents(tmp_path, "straight")


def test_a_job_without_checkpoints_is_refused(tmp_path):
    code, said = launch(tmp_path, "plain", checkpoints=False, SCALES="1:3")
    assert code == 0, said
    assert "scale said: 1 error: scale: the job makes no checkpoints: give it --checkpoint_dir" in said


def test_a_copy_of_the_program_that_names_old_pservers_is_an_error(tmp_path):
    code, said = launch(tmp_path, "old", SCALES="1:3", OLD="8")
    assert code == 1, said
    assert "this program's pservers were replaced by others when their number changed   [E-scale-moved]" in said


def test_without_a_launcher_there_is_nobody_to_ask(tmp_path, capsys):
    assert scale_command.main([str(tmp_path), "--servers", "3"]) == 2
    assert "no launcher of a running job has the log folder" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        scale_command.main([str(tmp_path), "--servers", "0"])
