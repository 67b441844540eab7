"""Backup trainers as real processes: a trainer that pauses delays no other, and its late gradients are reported."""

import re
import textwrap

import numpy as np

TRAINERS, STEPS = 3, 8

# The last trainer takes its second step after the others have taken all of theirs.
SCRIPT = textwrap.dedent("""
    import os, sys, time
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints, trainers = os.environ['ENDPOINTS'], int(os.environ['TRAINERS'])
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x = fluid.data('x', [None, 64])
    y = fluid.data('y', [None, 1])
    output = fluid.layers.fc(fluid.layers.fc(x, 256, act='relu'), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    fluid.optimizer.SGD(0.0005).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())

    config = fluid.DistributeTranspilerConfig()
    config.backup_trainers = 1
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=trainers)
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())

    def others_are_done():
        return all(os.path.exists('%s/trainer%d.npy' % (out, other)) for other in range(trainers - 1))

    losses = []
    for step in range(steps):
        end = time.monotonic() + 120
        while index == trainers - 1 and step == 1 and not others_are_done():
            if time.monotonic() > end:
                sys.exit('the others wait for this trainer')
            time.sleep(0.05)
        random = np.random.RandomState(trainers * step + index)
        rows = random.rand(8, 64).astype('float32')
        feed = {'x': rows, 'y': rows.sum(axis=1, keepdims=True)}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss])[0][0])
    with open('%s/trainer%d.part' % (out, index), 'wb') as file:
        np.save(file, losses)
    os.rename('%s/trainer%d.part' % (out, index), '%s/trainer%d.npy' % (out, index))
    exe.close()
""")


def test_a_stopped_trainer_does_not_delay_the_others(job):
    job.environment["TRAINERS"] = str(TRAINERS)
    job.start_all(steps=STEPS, trainers=TRAINERS)
    results = job.wait_well()
    for index in range(TRAINERS):
        losses = np.load(job.folder / (f"trainer{index}.npy"))
        assert np.isfinite(losses).all() and losses[-1] < losses[0], losses
    # Every step merges the gradients of two of three trainers, and all sent gradients arrive.
    for index in range(2):
        said = results[f"pserver{index}"][2]
        late = re.search(r"dropped the gradients of steps that came late: (.*)", said)
        assert late, said
        counts = {int(trainer): int(steps) for steps, trainer in re.findall(r"(\d+) of trainer (\d+)", late[1])}
        assert sum(counts.values()) == STEPS and counts[TRAINERS - 1] >= STEPS - 1, said
