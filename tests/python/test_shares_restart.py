"""penstock.work.Shares in a job with a pserver, whose trainer 0 is killed and started again by the launcher."""

import os
import subprocess
import sys
import textwrap

import pytest

# Trainer 0 dies while it works, when it has passed on a round, or when it has done all of a round and passed it on
# before trainer 1 has taken anything of it: trainer 1 then asks the next process, which must not wait for its gradient.
# The gradient of an example is 1 in its own weight, and the pserver takes the mean of two trainers, so a weight is
# -0.5 for each time that its example was used.
SCRIPT = """
    import os, signal, sys, time
    import numpy as np
    import penstock
    import penstock.work
    from penstock import fluid

    SIZE, WORKERS = 64, 2
    x = fluid.data("x", [None, SIZE])
    zero = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(0.0))
    loss = fluid.layers.reduce_sum(fluid.layers.fc(x, 1, param_attr=zero, bias_attr=False))
    fluid.optimizer.SGD(1.0).minimize(loss)
    rank = int(os.environ.get("PADDLE_TRAINER_ID", 0))
    transpiler = fluid.DistributeTranspiler()
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    transpiler.transpile(rank, pservers=servers, trainers=WORKERS)
    restarted = os.environ["PENSTOCK_ROLE_RESTART_COUNT"] != "0"
    exe = fluid.Executor()
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        main, startup = transpiler.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        exe.run(main)
        sys.exit()
    if rank == 0 and restarted:
        open("back", "w").close()

    def wait_for(path):
        end = time.monotonic() + 60
        while not os.path.exists(path):
            assert time.monotonic() < end, f"{path} did not come"
            time.sleep(0.01)

    exe.run(fluid.default_startup_program())
    program = transpiler.get_trainer_program()
    first = penstock.resume_step(readers=False)
    shares = penstock.work.Shares(SIZE, 8, portions=4)
    dies = "" if restarted else os.environ["DIES"]
    taken = 0
    for epoch in range(first // len(shares), 2):
        for round in shares.rounds(epoch, max(0, first - epoch * len(shares))):
            examples = np.zeros((1, SIZE), "float32")
            if rank == 1 and dies == "first to pass on" and (epoch, round.number) == (0, 2):
                wait_for("back")
            for indices in round:
                examples[0, indices] += 1
                taken += 1
                if rank == 0 and dies == "working" and taken == 6:
                    os.kill(os.getpid(), signal.SIGKILL)
            exe.run(program, feed={"x": examples})
            if rank == 0 and dies in ("passed on", "first to pass on") and (epoch, round.number) == (0, 2):
                os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        w = np.array(fluid.global_scope().find_var("w").get_tensor())
        open("result", "w").write(f"{w.min()} {w.max()} {first}")
    exe.close()
"""


@pytest.mark.parametrize("dies", ["working", "passed on", "first to pass on"])
def test_every_example_counts_once_although_trainer_0_was_killed(tmp_path, dies):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", "1", "--worker_num", "2"]
    done = subprocess.run(
        [*command, "--on_trainer_loss", "wait", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "DIES": dies},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    logs = "".join(path.read_text() for path in sorted((tmp_path / "mylog").glob("*log.*")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert "restart 1 of 3" in done.stdout + done.stderr
    assert (tmp_path / "result").read_text().split()[:2] == ["-1.0", "-1.0"]  # two epochs
