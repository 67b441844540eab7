"""Scripts in the style of Fluid's examples run unchanged: on one machine, and with two pservers and two trainers."""

import os
import subprocess
import sys

import numpy
import pytest

HOUSES = """
import argparse
import os
import sys

import numpy
import paddle
import paddle.fluid as fluid


def train(program, exe, loss, feeder, reader, passes):
    costs = []
    for pass_id in range(passes):
        for batch in reader():
            cost, = exe.run(program, feed=feeder.feed(batch), fetch_list=[loss])
            costs.append(cost[0])
    print("Cost %f to %f" % (numpy.mean(costs[:5]), numpy.mean(costs[-5:])))
    assert numpy.mean(costs[-5:]) < 0.5 * numpy.mean(costs[:5])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--is_local', type=int, default=1)
    parser.add_argument('--model_dir', default='model')
    args = parser.parse_args()
    reader = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=20)
    if not args.is_local:
        reader = fluid.contrib.reader.distributed_batch_reader(reader)
    x = fluid.layers.data(name='x', shape=[13], dtype='float32')
    y = fluid.layers.data(name='y', shape=[1], dtype='float32')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y))
    fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    feeder = fluid.DataFeeder(feed_list=[x, y], place=place)
    if args.is_local:
        exe.run(fluid.default_startup_program())
        with fluid.profiler.profiler('CPU', 'total', 'profile.json'):
            train(fluid.default_main_program(), exe, loss, feeder, reader, 20)
        fluid.io.save_inference_model(args.model_dir, ['x'], [fluid.default_main_program().global_block().var(
            'fc_0.tmp_1')], exe)
        return
    t = fluid.DistributeTranspiler()
    t.transpile(int(os.getenv('PADDLE_TRAINER_ID', '0')), pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'],
                trainers=int(os.environ['PADDLE_TRAINERS_NUM']))
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        current = os.environ['PADDLE_CURRENT_ENDPOINT']
        program = t.get_pserver_program(current)
        exe.run(t.get_startup_program(current, program))
        exe.run(program)
    else:
        exe.run(fluid.default_startup_program())
        train(t.get_trainer_program(), exe, loss, feeder, reader, 40)
        exe.close()


if __name__ == '__main__':
    main()
"""


@pytest.fixture
def folder(tmp_path):
    """With the script, and a home that holds its data."""
    data = tmp_path / "home" / ".cache" / "paddle" / "dataset" / "uci_housing"
    data.mkdir(parents=True)
    random = numpy.random.RandomState(3)
    features = random.rand(200, 13)
    rows = numpy.hstack([features, features @ random.rand(13, 1) * 10 + 5])
    (data / "housing.data").write_text("\n".join(" ".join(f"{value:.5f}" for value in row) for row in rows))
    (tmp_path / "train.py").write_text(HOUSES)
    return tmp_path


def run(folder, *arguments):
    variables = dict(os.environ, HOME=str(folder / "home"), OMP_NUM_THREADS="1")
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "penstock.compat", *map(str, arguments)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_script_trains_on_one_machine(folder):
    out = run(folder, "train.py")
    assert "Cost " in out and "elementwise_add_grad" in out
    assert (folder / "profile.json").stat().st_size > 1000 and (folder / "model" / "__model__").exists()


def test_a_script_trains_with_parameter_servers(folder):
    run(
        folder,
        "-m",
        "paddle.distributed.launch",
        "--server_num",
        "2",
        "--worker_num",
        "2",
        "--log_dir",
        "logs",
        "train.py",
        "--is_local",
        "0",
    )
    for trainer in (0, 1):
        assert "Cost " in (folder / "logs" / (f"workerlog.{trainer}")).read_text()
