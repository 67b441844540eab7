"""Programs of mode nccl2 add up gradients however they run: by a CompiledProgram without num_trainers, by Executor.run,
by ParallelExecutor, or over a dataset."""

import numpy as np
import penstock
import pytest
from penstock import fluid
from rank_processes import Ranks

# argv: how the program runs, and a file. 'alone': one process with the joined batch.
TRAIN = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    L = fluid.layers
    how, path = sys.argv[1:]
    rank, ranks = (0, 1) if how == 'alone' else (int(os.environ['PADDLE_TRAINER_ID']), 2)
    main, start = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = start.random_seed = 3 + rank
    x = fluid.data('x', [None, 4])
    prediction = L.fc(x, 1, param_attr='w', bias_attr=False)
    loss = L.mean(L.square(prediction - 1.0))
    test = main.clone(for_test=True)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    if how != 'alone':
        config = fluid.DistributeTranspilerConfig()
        config.mode = 'nccl2'
        if how == 'uneven':
            config.on_uneven = 'join'
        fluid.DistributeTranspiler(config).transpile(rank, trainers=os.environ['PADDLE_TRAINER_ENDPOINTS'],
                                                     current_endpoint=os.environ['PADDLE_CURRENT_ENDPOINT'])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(start)
    if how in ('clone', 'parsed'):    # the environment states the rank
        main = main.clone() if how == 'clone' else fluid.Program.parse_from_string(main.desc.serialize_to_string())
    program = main
    if how == 'compiled':
        program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
    elif how == 'not_data_parallel':
        program = fluid.CompiledProgram(main)
    batches = [np.random.RandomState(step).rand(8, 4).astype('float32') for step in range(4)]
    batches = [batch[rank * 8 // ranks:(rank + 1) * 8 // ranks] for batch in batches]
    if how == 'uneven':    # 2 and 6 examples of each batch
        batches = [np.random.RandomState(step).rand(8, 4).astype('float32') for step in range(4)]
        batches = [batch[:2] if rank == 0 else batch[2:] for batch in batches]
        for feed in exe.batches(main, lambda: [{'x': batch} for batch in batches]):
            exe.run(main, feed=feed, fetch_list=[loss])
    elif how == 'dataset':
        with open('part-%d' % rank, 'w') as file:
            file.writelines('4 %s\\n' % ' '.join('%.9g' % value for value in row) for batch in batches for row in batch)
        dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
        dataset.set_use_var([x])
        dataset.set_batch_size(4)
        dataset.set_thread(2)
        dataset.set_filelist(['part-%d' % rank])
        exe.train_from_dataset(main, dataset)
    else:
        if how == 'parallel_executor':
            parallel = fluid.ParallelExecutor(False, loss_name=loss.name, main_program=main)
        for batch in batches:
            if how == 'parallel_executor':
                parallel.run([loss.name], feed={'x': batch})
            else:
                exe.run(program, feed={'x': batch}, fetch_list=[loss])
            exe.run(test, feed={'x': batch[:1]}, fetch_list=[prediction])    # each rank evaluates by itself
    np.savez('%s%d.npz' % (path, rank), w=np.array(fluid.global_scope().find_var('w').get_tensor()))
    exe.close()
"""


def train(folder, how, ranks):
    with Ranks(folder, TRAIN, ranks, how, str(folder / how)) as job:
        job.end_well()
    return [np.load(folder / (f"{how}{rank}.npz"))["w"] for rank in range(ranks)]


@pytest.mark.parametrize(
    "how", ["plain", "compiled", "not_data_parallel", "parallel_executor", "dataset", "clone", "parsed", "uneven"]
)
def test_ranks_train_together(tmp_path, how):
    (alone,) = train(tmp_path, "alone", 1)
    for each in train(tmp_path, how, 2):
        np.testing.assert_allclose(each, alone, rtol=1e-5, atol=1e-6)


def transpiled(monkeypatch):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        config = fluid.DistributeTranspilerConfig()
        config.mode = "nccl2"
        fluid.DistributeTranspiler(config).transpile(
            0, trainers="127.0.0.1:6170,127.0.0.1:6171", current_endpoint="127.0.0.1:6170"
        )
    for name in ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_TRAINER_ID", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINERS_NUM"):
        monkeypatch.delenv(name, raising=False)
    return main, loss


def test_a_process_that_is_not_a_trainer_is_refused(monkeypatch):
    main, loss = transpiled(monkeypatch)
    read = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    with pytest.raises(penstock.StateError, match="E-ranks-unknown") as told:
        fluid.Executor(fluid.CPUPlace()).run(read, feed={"x": np.ones((2, 4), "float32")})
    assert "the 2 trainers 127.0.0.1:6170, 127.0.0.1:6171" in str(told.value)


def test_each_trainer_has_one_place(monkeypatch):
    main, loss = transpiled(monkeypatch)
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[fluid.CPUPlace()] * 3)
    with pytest.raises(NotImplementedError, match="3 places of one process, and num_trainers=2"):
        fluid.Executor(fluid.CPUPlace()).run(compiled, feed={"x": np.ones((6, 4), "float32")})
