"""Trainers ask for the rows of the next batch before the step that looks them up. Real processes."""

import json

import numpy as np
import pytest
from fleet_jobs import launch_well

STEPS = 12

# argv: where batches come from. One table is sharded by id, one is in slices; the gradients depend on the rows.
SCRIPT = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import start_worker
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet
    L = fluid.layers

    STEPS, PART = 12, 8
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = startup.random_seed = 3
    words, other = fluid.data('words', [None, 1], 'int64'), fluid.data('other', [None, 1], 'int64')
    if sys.argv[1] == 'reader':
        loader = fluid.io.DataLoader.from_generator([words, other], capacity=4, iterable=False)
    by_id = L.embedding(words, [50, 4], is_sparse=True, is_distributed=True, param_attr=fluid.ParamAttr('by_id'))
    sliced = L.embedding(other, [50, 4], is_sparse=True, padding_idx=3, param_attr=fluid.ParamAttr('sliced'))
    loss = L.reduce_mean(L.square(L.fc(by_id * sliced, 2)))
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init(role_maker.PaddleCloudRoleMaker())
    optimizer = fluid.optimizer.Adagrad(0.1)
    fleet.distributed_optimizer(optimizer, StrategyFactory.create_sync_strategy()).minimize(loss)
    start_worker(fleet, exe)
    random = np.random.RandomState(fleet.worker_index())
    batches = random.randint(0, 50, [STEPS, 2, PART, 1])
    losses = []
    if sys.argv[1] == 'reader':
        loader.set_batch_generator(lambda: ([np.int64(a), np.int64(b)] for a, b in batches))
        loader.start()
        while True:
            try:
                losses.append(exe.run(fleet.main_program, fetch_list=[loss])[0])
            except fluid.core.EOFException:
                break
    else:
        name = 'batches%d' % fleet.worker_index()
        with open(name, 'w') as file:
            for a, b in batches:
                file.writelines('1 %d 1 %d\\n' % pair for pair in zip(a.ravel(), b.ravel()))
        dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
        dataset.set_use_var([words, other])
        dataset.set_batch_size(PART)
        dataset.set_thread(1)
        dataset.set_filelist([name])
        kept = type('Kept', (fluid.executor.FetchHandler,), {
            'handler': lambda self, values: losses.append(values['loss'])})
        exe.train_from_dataset(fleet.main_program, dataset, fetch_handler=kept({'loss': loss}, period_secs=0))
    np.savez('worker%d.npz' % fleet.worker_index(), losses=np.concatenate([np.ravel(each) for each in losses]))
    fleet.stop_worker()
"""


@pytest.mark.parametrize("source", ["reader", "dataset"])
def test_lookups_ahead_change_no_byte_and_are_in_the_receipt(tmp_path, source):
    losses, ahead = {}, {}
    for setting in ("on", "off"):
        folder = tmp_path / setting
        folder.mkdir()
        workers, _ = launch_well(folder, SCRIPT, source, PENSTOCK_LOOKUPS_AHEAD=setting, PENSTOCK_TABLE_SHARDS="2")
        losses[setting] = [worker["losses"] for worker in workers]
        receipts = [json.loads((folder / "mylog" / f"receipt.trainer.{i}.json").read_text()) for i in range(2)]
        ahead[setting] = receipts
    np.testing.assert_array_equal(losses["on"], losses["off"])
    assert len(losses["on"][0]) == STEPS and np.ptp(losses["on"][0]) > 0
    assert all("lookups_ahead" not in receipt for receipt in ahead["off"])
    for receipt in ahead["on"]:
        assert receipt["lookups_ahead"] > 0 and receipt["lookups_ahead_unused"] == 0
        assert receipt["lookups_hidden_s"] > 0
