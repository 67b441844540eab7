"""Embeddings with entry, evict and budget_mb: jobs of real processes compared with a few lines of NumPy."""

import json

import numpy as np
import pytest
from fleet_jobs import launch_and_read
from penstock._src.io import table_files

WAIT_S = 240
WIDTH, BATCH, IDS = 4, 8, 40
SCRIPT = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import launched_program_of

    out, steps, policy = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
    index = int(os.environ.get("PADDLE_TRAINER_ID", 0))
    ids = fluid.data("ids", [None, 1], "int64")
    words = fluid.layers.embedding(ids, [1000, 4], is_sparse=True, is_distributed=True, param_attr=fluid.ParamAttr(
        "words", initializer=fluid.initializer.Constant(0.5)), **policy)
    loss = fluid.layers.mean(fluid.layers.reduce_sum(words, dim=1))
    main = fluid.default_main_program()
    test = main.clone(for_test=True)
    optimizer = os.environ.get("OPTIMIZER", "SGD")
    getattr(fluid.optimizer, optimizer)(1.0, **({"momentum": 0.5} if optimizer == "Momentum" else {})).minimize(loss)
    t = fluid.DistributeTranspiler()
    servers = os.environ["PADDLE_PSERVER_ENDPOINTS"]
    t.transpile(index, pservers=servers, trainers=2, sync_mode="ASYNC" not in os.environ)
    exe = fluid.Executor(fluid.CPUPlace())
    program = launched_program_of(exe, t)
    exe.run(fluid.default_startup_program())
    import penstock
    read = []
    for step in range(penstock.resume_step(), steps):
        batch = np.load(os.path.join(out, "ids.npy"))[step, index].reshape(-1, 1)
        exe.run(program, feed={"ids": batch}, fetch_list=[])
        if "READ" in os.environ:
            read.append(exe.run(test, feed={"ids": np.arange(40).reshape(-1, 1)}, fetch_list=[words])[0])
    if read:
        np.save(os.path.join(out, f"read{index}.npy"), read)
    if "SAVE" in os.environ:
        fluid.io.save_persistables(exe, os.path.join(out, "saved"), program)
    exe.close()
"""


def launch(folder, steps, policy, options=(), servers=2, **environment):
    """(exit code, what the launcher and all roles said)"""
    environment = {"PENSTOCK_CHECKPOINT_DIR": str(folder), **environment}
    arguments = folder, steps, repr(policy)
    return launch_and_read(folder, SCRIPT, *arguments, options=options, servers=servers, wait_s=WAIT_S, **environment)


def batches(folder, steps):
    """[steps, trainers, BATCH] ids, saved for the job: some often, most rarely."""
    random = np.random.RandomState(5)
    often = random.randint(0, 6, [steps, 2, BATCH])
    rarely = (random.randint(0, 12, [steps, 2, BATCH]) + np.arange(steps).reshape(-1, 1, 1)) % IDS
    ids = np.where(random.rand(steps, 2, BATCH) < 0.4, often, rarely).astype("int64")
    np.save(folder / "ids.npy", ids)
    return ids


def expected(ids, entry=1, unseen=None):
    """(the rows that readers see after each step, {id: row} that are stored, {count: number})"""
    rows, seen, times, counts, read = {}, {}, {}, {"entered": 0, "rejected": 0}, []
    for step, batch in enumerate(ids):
        for id in np.unique(batch):
            if id not in rows:
                times[id] = times.get(id, 0) + 1
                if times[id] < entry:
                    counts["rejected"] += sum(id in each for each in batch)
                    seen[id] = step
                    continue
                times.pop(id)
                counts["entered"] += 1
                rows[id] = 0.5
            seen[id] = step
            rows[id] -= np.sum(batch == id) / BATCH / 2
        if unseen is not None:
            for id in [id for id in (*rows, *times) if step - seen[id] > unseen]:
                rows.pop(id, None)
                times.pop(id, None)
        read.append([rows.get(id, 0.5) for id in range(IDS)])
    return np.array(read), rows, counts


def stored(folder):
    """{id: row} of the files that the servers saved."""
    rows = {}
    for path in table_files.shard_files(str(folder / "saved"), "words"):
        record = table_files._rows_in(path, table_files._read(path, None)).get_selected_rows()
        rows.update(zip(record.rows(), np.array(record.get_tensor())))
    return rows


def receipts(folder, servers=2):
    each = [json.loads((folder / "mylog" / f"receipt.pserver.{i}.json").read_text()) for i in range(servers)]
    return {key: sum(one.get("rows_" + key, 0) for one in each) for key in ("entered", "rejected", "evicted")}


@pytest.mark.parametrize("servers", [1, 2])
def test_ids_enter_and_rows_are_evicted_as_the_rules_say(tmp_path, servers):
    """On any number of servers; whole numbers of eighths, so that no bit is left to chance."""
    ids = batches(tmp_path, 16)
    policy = {"entry": "count 2", "evict": ["unseen 3"], "budget_mb": 64}
    code, said = launch(tmp_path, 16, policy, servers=servers, READ="1", SAVE="1")
    assert code == 0, said
    read, rows, counts = expected(ids, entry=2, unseen=3)
    for index in range(2):
        seen = np.load(tmp_path / f"read{index}.npy")
        np.testing.assert_array_equal(seen, np.repeat(read[:, :, None], WIDTH, axis=2))
    saved = stored(tmp_path)
    assert sorted(saved) == sorted(rows)
    assert all((saved[id] == rows[id]).all() for id in rows)
    noted = receipts(tmp_path, servers)
    assert {key: noted[key] for key in counts} == counts
    assert counts["rejected"] > 10 and 0 < noted["evicted"] <= counts["entered"] - len(rows)
    assert f"{counts['entered']} made" in said if servers == 1 else "rows of tables" in said


def test_columns_of_optimizers_without_row_rules_are_evicted_too(tmp_path):
    ids = batches(tmp_path, 12)
    code, said = launch(tmp_path, 12, {"entry": "count 2", "evict": "unseen 2"}, READ="1", OPTIMIZER="DecayedAdagrad")
    assert code == 0, said
    read, _, _ = expected(ids, entry=2, unseen=2)
    seen = np.load(tmp_path / "read0.npy")
    np.testing.assert_array_equal(seen[:, :, 0] == 0.5, read == 0.5)
    assert (read == 0.5).any() and (read != 0.5).any()


def test_a_job_repeats_bit_for_bit(tmp_path):
    batches(tmp_path, 12)
    policy = {"entry": "probability 0.5", "evict": ["shows 1.5 decay 0.5 every 3", "count 2 after 2"]}
    results = []
    for run, servers in ("first", 2), ("second", 2), ("third", 1):
        code, said = launch(tmp_path, 12, policy, servers=servers, READ="1")
        assert code == 0, said
        results.append(np.load(tmp_path / "read0.npy"))
        assert receipts(tmp_path, servers)["rejected"] > 0, run
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    assert (results[0][-1] != 0.5).any()


def test_a_job_continues_from_its_checkpoint_with_its_counts(tmp_path):
    """Counters of ids that have not entered, times and decayed shows: as in a job that was not interrupted."""
    batches(tmp_path, 12)
    policy = {"entry": "count 3", "evict": ["unseen 4", "shows 1.2 decay 0.5 every 3"]}
    reads, tables = [], []
    for folder, ends in ("whole", [12]), ("cut", [6, 12]):
        for begin, end in zip([0, *ends], ends):
            options = ["--checkpoint_dir", folder, "--checkpoint_steps", 6, *(["--resume"] if begin > 0 else [])]
            code, said = launch(tmp_path, end, policy, options=options, READ="1")
            assert code == 0, said
        reads.append(np.load(tmp_path / "read0.npy")[-6:])
        tables.append([path.read_bytes() for path in sorted((tmp_path / folder / "step-12").glob("*.values"))])
    np.testing.assert_array_equal(*reads)
    assert tables[0] == tables[1] and len(tables[0]) == 2


def test_asynchronous_jobs_apply_the_rules(tmp_path):
    batches(tmp_path, 10)
    code, said = launch(tmp_path, 10, {"entry": "count 3", "evict": "unseen 6"}, SAVE="1", ASYNC="1")
    assert code == 0, said
    noted = receipts(tmp_path)
    assert noted["rejected"] > 0 and noted["entered"] > 0
    assert 0 < len(stored(tmp_path)) < IDS


def test_policies_of_layers(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    big = {"is_sparse": True, "is_distributed": True}
    fluid.layers.embedding(ids, [100, 8], **big, entry="probability 0.5", evict=["count 2 after 9", "unseen 50"])
    fluid.embedding(ids, [100, 8], **big, budget_mb=7)
    fluid.embedding(ids, [100, 8], **big)
    first, second, third = fluid.default_main_program().global_block().ops
    assert first.attr("row_policy") == "entry probability 0.5, evict unseen 50, evict count 2 after 9"
    assert second.attr("row_policy") == "budget_mb 7"
    assert not third.has_attr("row_policy"), "programs without a policy stay as they are"


@pytest.mark.parametrize(
    "given, id, said",
    [
        ({"entry": "count 0"}, "E-row-policy-value", "entry count must be from 1"),
        ({"entry": "often"}, "E-text-syntax", "expected count or probability"),
        ({"evict": ["unseen 3", "unseen 4"]}, "E-text-syntax", "two rules evict unseen"),
        ({"budget_mb": -1}, "E-row-policy-value", "budget_mb must be from 1"),
        ({"entry": "count 2", "is_distributed": False}, "E-row-policy-table", "use is_sparse=True and is_distributed"),
    ],
)
def test_wrong_policies_are_errors(fluid, given, id, said):
    import penstock

    ids = fluid.data("ids", [None, 1], "int64")
    with pytest.raises(penstock.ProgramError, match=said) as caught:
        fluid.embedding(ids, [100, 8], **{"is_sparse": True, "is_distributed": True, **given})
    assert id in str(caught.value)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"entry": 3}, "entry must be a rule"),
        ({"entry": ["count 2", "count 3"]}, "entry must be one string"),
        ({"evict": "unseen 3, unseen 4"}, "evict must be a rule"),
        ({"budget_mb": 1.5}, "budget_mb must be an integer"),
    ],
)
def test_policies_of_other_types_are_errors(fluid, given, said):
    ids = fluid.data("ids", [None, 1], "int64")
    with pytest.raises(TypeError, match=said):
        fluid.embedding(ids, [100, 8], is_sparse=True, is_distributed=True, **given)


def test_fluids_wire_has_no_policies(tmp_path):
    batches(tmp_path, 2)
    code, said = launch(tmp_path, 2, {"entry": "count 2"}, PENSTOCK_WIRE="fluid")
    assert code != 0
    assert "rows does not run on Fluid's wire" in said and "E-contract-policy" in said
