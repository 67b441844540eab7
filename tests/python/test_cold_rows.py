"""Embeddings with cold_dir: jobs of real processes whose rows are on disk, compared with jobs in memory."""

import json

import numpy as np
import pytest
from fleet_jobs import launch_and_read

WAIT_S = 240
SCRIPT = """
    import os, signal, sys, threading, time
    import numpy as np
    import penstock
    import penstock.fluid as fluid

    out, steps, policy = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
    role, index = os.environ["TRAINING_ROLE"], int(os.environ.get("PADDLE_TRAINER_ID", 0))
    ids = fluid.data("ids", [None, 1], "int64")
    words = fluid.layers.embedding(ids, [1000, 2048], is_sparse=True, is_distributed=True, param_attr=fluid.ParamAttr(
        "words", initializer=fluid.initializer.Uniform(-1.0, 1.0, seed=7)), **policy)
    loss = fluid.layers.mean(fluid.layers.reduce_sum(fluid.layers.square(words), dim=1))
    main = fluid.default_main_program()
    test = main.clone(for_test=True)
    optimizer = os.environ.get("OPTIMIZER", "Adam")
    if optimizer == "Regularized":
        fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)
    else:
        getattr(fluid.optimizer, optimizer)(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(index, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"], trainers=2)
    exe = fluid.Executor(fluid.CPUPlace())
    if role == "PSERVER":
        if "KILL_AFTER" in os.environ and os.environ["PENSTOCK_ROLE_RESTART_COUNT"] == "0":
            def kill():
                while not os.path.exists(os.environ["KILL_AFTER"]):
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            if os.environ["PADDLE_PSERVER_ID"] == "0":
                threading.Thread(target=kill, daemon=True).start()
        program, startup = t.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        exe.run(program)
        sys.exit(0)
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    for step in range(penstock.resume_step(), steps):
        if step == 30 and "KILL_AFTER" in os.environ:
            time.sleep(0.5)  # time for the kill
        batch = np.load(os.path.join(out, "ids.npy"))[step, index].reshape(-1, 1)
        exe.run(program, feed={"ids": batch}, fetch_list=[])
    read = exe.run(test, feed={"ids": np.arange(500).reshape(-1, 1)}, fetch_list=[words])[0]
    np.save(os.path.join(out, f"read{index}.npy"), read)
    fluid.io.save_persistables(exe, os.path.join(out, os.environ["SAVED"]), program)
    exe.close()
"""


def launch(folder, steps, policy, saved, options=(), servers=2, **environment):
    """(exit code, what the launcher and all roles said)"""
    environment = {"PENSTOCK_CHECKPOINT_DIR": str(folder), "SAVED": saved, **environment}
    arguments = folder, steps, repr(policy)
    return launch_and_read(folder, SCRIPT, *arguments, options=options, servers=servers, wait_s=WAIT_S, **environment)


def batches(folder, steps):
    """Ids of which some come often, and most once in a while: 1 MB has 40 of their rows with Adam."""
    random = np.random.RandomState(5)
    ids = np.where(random.rand(steps, 2, 20) < 0.3, random.randint(0, 10, [steps, 2, 20]), 0)
    ids = np.where(ids == 0, random.randint(0, 500, [steps, 2, 20]), ids)
    np.save(folder / "ids.npy", ids.astype("int64"))


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def receipts(folder, servers=2):
    return [json.loads((folder / "mylog" / f"receipt.pserver.{i}.json").read_text()) for i in range(servers)]


@pytest.mark.parametrize("evict", [None, "unseen 25"])
def test_a_job_has_the_same_bytes_as_in_memory(tmp_path, evict):
    """With Adam as Fluid means it: rows that a step does not list move too, and get that when they return."""
    batches(tmp_path, 40)
    policy = {} if evict is None else {"evict": evict, "entry": "probability 0.8"}
    reads, saved = [], []
    for name, cold in ("memory", {}), ("disk", {"budget_mb": 1, "cold_dir": str(tmp_path / "rows")}):
        code, said = launch(tmp_path, 40, {**policy, **cold}, name)
        assert code == 0, said
        reads.append(np.load(tmp_path / "read0.npy"))
        saved.append(files(tmp_path / name))
    np.testing.assert_array_equal(*reads)
    assert saved[0] == saved[1] and len(saved[0]) >= 4
    for receipt in receipts(tmp_path):
        # The save at the end reads all rows; how many are on disk again depends on when the server ends.
        assert receipt["rows_fetched"] > 50 and receipt["rows_spilled"] > 50
        assert receipt["rows_fetched"] < receipt["rows_asked"]
        assert receipt["rows_hot"] + receipt["rows_cold"] > 150 and receipt["rows_cold_bytes"] > 0
    assert "rows on disk" in said
    assert list((tmp_path / "rows").iterdir()) == [], "files have no names that could stay behind"


def test_a_job_continues_from_checkpoints_that_have_rows_of_the_disk(tmp_path):
    batches(tmp_path, 40)
    cold = {"budget_mb": 1, "cold_dir": str(tmp_path / "rows")}
    saved = []
    for policy, folder, ends in ({}, "whole", [40]), (cold, "cut", [20, 40]):
        for begin, end in zip([0, *ends], ends):
            options = ["--checkpoint_dir", folder, "--checkpoint_steps", 5, *(["--resume"] if begin > 0 else [])]
            code, said = launch(tmp_path, end, policy, f"{folder}/saved{end}", options=options)
            assert code == 0, said
        saved.append(files(tmp_path / folder / "saved40"))
    assert saved[0] == saved[1] and len(saved[0]) >= 4
    assert all(receipt["rows_fetched"] > 10 for receipt in receipts(tmp_path))


def test_a_server_that_is_killed_has_its_cold_rows_again(tmp_path):
    batches(tmp_path, 40)
    saved = []
    for name, cold in ("memory", {}), ("disk", {"budget_mb": 1, "cold_dir": "rows"}):
        kill = {"KILL_AFTER": str(tmp_path / "disk.ckpt" / "step-12")} if cold else {}
        options = ["--checkpoint_dir", name + ".ckpt", "--checkpoint_steps", 6]
        policy = {"evict": "unseen 30", **cold}
        code, said = launch(tmp_path, 40, policy, name + ".ckpt/saved", options=options, **kill)
        assert code == 0, said
        saved.append(files(tmp_path / (name + ".ckpt") / "saved"))
    assert saved[0] == saved[1] and len(saved[0]) >= 4
    assert "was started again" in said


def test_an_optimizer_that_needs_all_rows_is_refused(tmp_path):
    batches(tmp_path, 2)
    code, said = launch(tmp_path, 2, {"budget_mb": 1, "cold_dir": "rows"}, "saved", OPTIMIZER="Regularized")
    assert code != 0
    assert "E-server-cold" in said and "an update of the table may change any of its rows" in said


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    batches(tmp_path, 2)
    (tmp_path / "file").write_text("")
    code, said = launch(tmp_path, 2, {"budget_mb": 1, "cold_dir": "file/rows"}, "saved")
    assert code != 0
    assert "file/rows" in said and "E-file-write" in said


def test_policies_of_layers(fluid, tmp_path):
    ids = fluid.data("ids", [None, 1], "int64")
    big = {"is_sparse": True, "is_distributed": True}
    fluid.layers.embedding(ids, [100, 8], **big, evict="unseen 5", budget_mb=7, cold_dir=tmp_path)
    fluid.embedding(ids, [100, 8], **big, budget_mb=7, cold_dir='/a "b" \\ é')
    first, second = fluid.default_main_program().global_block().ops
    assert first.attr("row_policy") == f'evict unseen 5, budget_mb 7, cold_dir "{tmp_path}"'
    assert second.attr("row_policy") == 'budget_mb 7, cold_dir "/a \\"b\\" \\\\ é"'


@pytest.mark.parametrize(
    "given, id, said",
    [
        ({"cold_dir": "/cold"}, "E-row-policy-value", 'cold_dir "/cold" needs budget_mb'),
        ({"cold_dir": "", "budget_mb": 1}, "E-row-policy-value", "cold_dir must be a folder"),
        ({"cold_dir": "/cold", "budget_mb": 1, "is_distributed": False}, "E-row-policy-table", "is_distributed"),
    ],
)
def test_wrong_policies_are_errors(fluid, given, id, said):
    import penstock

    ids = fluid.data("ids", [None, 1], "int64")
    with pytest.raises(penstock.ProgramError, match=said) as caught:
        fluid.embedding(ids, [100, 8], **{"is_sparse": True, "is_distributed": True, **given})
    assert id in str(caught.value)


def test_a_path_of_another_type_is_an_error(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    with pytest.raises(TypeError, match="cold_dir must be the path of a folder, not 3"):
        fluid.embedding(ids, [100, 8], is_sparse=True, is_distributed=True, budget_mb=1, cold_dir=3)
