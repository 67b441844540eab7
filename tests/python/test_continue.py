"""Training goes on from saved values: parameters, optimizer state, learning-rate steps and tables, on pservers that
hold slices of them in any number. Real processes."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from fleet_jobs import launch, launch_well
from penstock._src.io import pserver_held as _pserver_held
from penstock._src.io import pserver_values as _pserver_values

# argv: what to do ('alone', 'job', 'fleet'), the first step, the step after the last.
# environment: LOAD, how pservers load 'saved'; BY_TRAINERS, how trainers load it; SAVE, where to save at the end.
SCRIPT = """
    import os, sys, warnings
    import numpy as np
    import penstock.fluid as fluid

    how, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 64]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    word = fluid.layers.embedding(words, [4000, 8], is_sparse=True, param_attr='table',
                                  is_distributed='SHARDED' in os.environ)
    output = fluid.layers.fc([fluid.layers.fc(x, 512, act='tanh', param_attr='w'), word], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    if os.environ.get('SHARDED') == 'sgd':
        optimizer = fluid.optimizer.SGD(0.1)
    else:
        optimizer = fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 2, 0.9, staircase=True))
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = os.environ.get('TRAINING_ROLE') != 'PSERVER'
    index, trainers = int(os.environ.get('PADDLE_TRAINER_ID', 0)), int(os.environ.get('PADDLE_TRAINERS_NUM', 1))
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = 'ASYNC' not in os.environ

    if how == 'fleet':
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        fleet.init(role_maker.PaddleCloudRoleMaker())
        fleet.distributed_optimizer(optimizer, config).minimize(loss)
        if not trainer:
            fleet.init_server(os.environ.get('LOAD'))
            fleet.run_server()
            sys.exit(0)
        fleet.init_worker()
        main, startup = fleet.main_program, fleet.startup_program
    else:
        optimizer.minimize(loss)
        main, startup = fluid.default_main_program(), fluid.default_startup_program()
        if how == 'job':
            t = fluid.DistributeTranspiler(config)
            t.transpile(index if trainer else 0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=trainers,
                        sync_mode=config.sync_mode)
            if not trainer:
                main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
            else:
                main = t.get_trainer_program()

    def load(program, way):
        if way == 'folder':
            fluid.io.load_persistables(exe, 'saved', program)
        elif way == 'file':
            fluid.io.load_persistables(exe, 'saved', program, 'all')
        elif way == 'bytes':
            fluid.io.load_persistables(exe, None, program, open('saved/all', 'rb').read())
        elif way == 'load':
            fluid.load(program, 'saved/prefix')
        elif way == 'load folder':
            fluid.load(program, 'saved')
        elif way == 'state':
            fluid.set_program_state(program, fluid.load_program_state('saved/prefix'))
        elif way == 'vars':
            source = t.source_main.list_vars()
            names = [var.name for var in source if var.persistable and '@GRAD' not in var.name]
            held = {one.slice.name: one.origin.name
                    for one in t.vars_overview.get_distributed_vars_by_ep(os.environ['PADDLE_CURRENT_ENDPOINT'])}
            fluid.io.load_vars(exe, 'saved', program, vars=list(held))
            fluid.io.load_vars(exe, 'saved', program, predicate=lambda var: var.name in names and var.name not in held)
        elif way == 'params':
            fluid.io.load_params(exe, 'saved', program)

    exe.run(startup)
    if not trainer:
        if 'LOAD' in os.environ:
            load(main, os.environ['LOAD'])
        exe.run(main)
        sys.exit(0)
    if how == 'alone' and 'LOAD' in os.environ:
        load(main, os.environ['LOAD'])
    if how == 'job' and 'BY_TRAINERS' in os.environ:
        load(main, os.environ['BY_TRAINERS'])
    losses = []
    for step in range(first, end):
        random = np.random.RandomState(step)
        rows = random.rand(8, 64).astype('float32')
        ids = random.randint(0, 20 if 'SHARDED' in os.environ else 4000, (8, 1))
        mine = slice(index * 8 // trainers, (index + 1) * 8 // trainers)
        losses.append(exe.run(main, feed={'x': rows[mine], 'words': ids[mine], 'y': rows.mean(1, keepdims=True)[mine]},
                              fetch_list=[loss])[0][0])
    if 'SAVE' in os.environ and index == 0:
        save = fleet.save_persistables if how == 'fleet' else fluid.io.save_persistables
        if 'BY_SAVE' in os.environ:
            fluid.save(main, os.path.join(os.environ['SAVE'], 'prefix'))
        elif 'ONE_FILE' in os.environ:
            save(exe, os.environ['SAVE'], main, 'all')
        else:
            save(exe, os.environ['SAVE'], main)
        if how == 'alone':
            fluid.io.save_persistables(exe, os.environ['SAVE'], main, 'all')
            fluid.save(main, os.path.join(os.environ['SAVE'], 'prefix'))
    if how == 'fleet':
        fleet.barrier_worker()
        fleet.stop_worker()
    exe.close()
    np.savez('worker%d.npz' % index, losses=losses)
"""
MOMENTS = {"w_moment1_0", "w_moment2_0", "table_moment1_0", "w_beta1_pow_acc_0", "@LR_DECAY_COUNTER@"}


def alone(folder, first, end, **environment):
    (folder / "alone.py").write_text(textwrap.dedent(SCRIPT))
    subprocess.run(
        [sys.executable, "alone.py", "alone", str(first), str(end)],
        cwd=folder,
        check=True,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    return np.load(folder / "worker0.npz")["losses"]


def mean_losses(trainers):
    return np.mean([trainer["losses"] for trainer in trainers], 0)


@pytest.mark.parametrize(
    "way, servers",
    [
        ("folder", 2),
        ("folder", 3),
        ("file", 2),
        ("bytes", 1),
        ("load", 2),
        ("load folder", 2),
        ("state", 3),
        ("vars", 2),
    ],
)
def test_pservers_continue_from_a_save_of_one_machine(tmp_path, way, servers):
    want = alone(tmp_path, 0, 6)
    alone(tmp_path, 0, 3, SAVE="saved")
    trainers, _ = launch_well(tmp_path, SCRIPT, "job", 3, 6, servers=servers, LOAD=way)
    np.testing.assert_allclose(mean_losses(trainers), want[3:], rtol=1e-4)


def test_loading_only_parameters_resets_the_optimizer(tmp_path):
    alone(tmp_path, 0, 3, SAVE="saved")
    fresh = alone(tmp_path, 3, 6, LOAD="params")
    trainers, _ = launch_well(tmp_path, SCRIPT, "job", 3, 6, LOAD="params")
    np.testing.assert_allclose(mean_losses(trainers), fresh, rtol=1e-4)


@pytest.mark.parametrize("how, inside", [("job", True), ("job", False), ("fleet", True), ("fleet", False)])
def test_a_job_continues_with_another_number_of_pservers(tmp_path, how, inside):
    """Whether the folder is inside that of the pservers or not."""
    want = alone(tmp_path, 0, 6)
    job = tmp_path / "job"
    job.mkdir()
    saved = job / "saved" if inside else tmp_path / "elsewhere" / "saved"
    launch_well(job, SCRIPT, how, 0, 3, servers=2, SAVE=str(saved))
    assert MOMENTS <= {path.name for path in saved.iterdir()}
    assert not list(tmp_path.rglob("__pserver_state__*"))
    if not inside and how == "job":
        (job / "saved").symlink_to(saved)
    trainers, _ = launch_well(job, SCRIPT, how, 3, 6, servers=3, LOAD="folder" if how == "job" else str(saved))
    np.testing.assert_allclose(mean_losses(trainers), want[3:], rtol=1e-4)
    (tmp_path / "saved").symlink_to(saved)  # and one machine goes on from it
    np.testing.assert_allclose(alone(tmp_path, 3, 6, LOAD="folder"), want[3:], rtol=1e-4)


def test_fluid_save_on_a_trainer_saves_complete_parameters(tmp_path):
    want = alone(tmp_path, 0, 6)
    launch_well(tmp_path, SCRIPT, "job", 0, 3, SAVE="saved", BY_SAVE="1")
    trainers, _ = launch_well(tmp_path, SCRIPT, "job", 3, 6, servers=3, LOAD="load")
    np.testing.assert_allclose(mean_losses(trainers), want[3:], rtol=1e-4)
    np.testing.assert_allclose(alone(tmp_path, 3, 6, LOAD="load"), want[3:], rtol=1e-4)


def test_without_pservers_a_trainer_saves_its_own_values(fluid, tmp_path):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1, param_attr="w"))
    fluid.optimizer.Adam(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers="127.0.0.1:1", trainers=1)
    exe, program = fluid.Executor(fluid.CPUPlace()), t.get_trainer_program()
    for param in program.all_parameters():
        value = np.zeros(param.shape, "float32")
        fluid.global_scope().var(param.name).get_tensor().set(value, fluid.CPUPlace())
    with pytest.warns(UserWarning, match="the optimizer state that pservers have is not saved"):
        fluid.io.save_params(exe, str(tmp_path / "params"), program)
        fluid.io.save_persistables(exe, str(tmp_path / "all"), program)
    assert {"w", "fc_0.b_0"} <= {path.name for path in (tmp_path / "all").iterdir()}


def test_missing_optimizer_state_is_reported(tmp_path):
    alone(tmp_path, 0, 3, SAVE="saved")
    (tmp_path / "saved" / "w_moment1_0").unlink()
    code, said, logs = launch(tmp_path, SCRIPT, "job", 3, 4, LOAD="folder")
    assert code != 0 and "there is no value of w_moment1_0" in said + "".join(logs.values())
    _, logs = launch_well(tmp_path, SCRIPT, "fleet", 3, 4, LOAD="saved")
    assert "saved has no value of w_moment1_0: this optimizer state starts afresh" in "".join(logs.values())


@pytest.mark.parametrize("saved_by", ["alone", "job"])
def test_the_schedule_of_an_asynchronous_job_continues(tmp_path, saved_by):
    """One trainer alone makes the steps of one machine."""
    want = alone(tmp_path, 0, 6)
    if saved_by == "alone":
        alone(tmp_path, 0, 3, SAVE="saved")
    else:
        launch_well(tmp_path, SCRIPT, "job", 0, 3, workers=1, SAVE="saved", ASYNC="1")
    trainers, _ = launch_well(tmp_path, SCRIPT, "job", 3, 6, workers=1, LOAD="folder", ASYNC="1")
    np.testing.assert_allclose(mean_losses(trainers), want[3:], rtol=1e-4)


@pytest.mark.parametrize("way", ["folder", "load", "state"])
def test_trainers_send_loaded_tables_and_parameters_to_pservers(tmp_path, way):
    alone(tmp_path, 0, 3, SAVE="saved")
    fresh = alone(tmp_path, 3, 6, LOAD="params")
    trainers, logs = launch_well(tmp_path, SCRIPT, "job", 3, 6, BY_TRAINERS=way)
    np.testing.assert_allclose(mean_losses(trainers), fresh, rtol=1e-4)
    said = "holds optimizer state" if way != "state" else "state_dict holds variables that the program does not have"
    assert said in logs["workerlog.0"]


def save_sharded(folder, by, optimizer):
    if by == "alone":
        alone(folder, 0, 3, SAVE="saved", SHARDED=optimizer)
    else:
        launch_well(folder, SCRIPT, "job", 0, 3, SAVE="saved", SHARDED=optimizer)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("saved_by, servers", [("alone", 2), ("job", 2), ("job", 3)])
def test_tables_sharded_by_id_continue(tmp_path, optimizer, saved_by, servers):
    """With the state of their optimizer; rows that were not trained keep their initial values."""
    want = alone(tmp_path, 0, 6, SHARDED=optimizer)
    save_sharded(tmp_path, saved_by, optimizer)
    trainers, logs = launch_well(tmp_path, SCRIPT, "job", 3, 6, servers=servers, LOAD="folder", SHARDED=optimizer)
    np.testing.assert_allclose(mean_losses(trainers), want[3:], rtol=1e-4)
    assert "starts afresh" not in "".join(logs.values())
    if saved_by == "job":
        np.testing.assert_allclose(alone(tmp_path, 3, 6, LOAD="folder", SHARDED=optimizer), want[3:], rtol=1e-4)


@pytest.mark.parametrize(
    "way, saved_by",
    [
        ("file", "alone"),
        ("bytes", "alone"),
        ("load", "alone"),
        ("state", "alone"),
        ("vars", "alone"),
        ("vars", "job"),
        ("load folder", "job"),
    ],
)
def test_tables_sharded_by_id_continue_by_every_load_function(tmp_path, way, saved_by):
    want = alone(tmp_path, 0, 6, SHARDED="sgd")
    save_sharded(tmp_path, saved_by, "sgd")
    trainers, _ = launch_well(tmp_path, SCRIPT, "job", 3, 6, LOAD=way, SHARDED="sgd")
    np.testing.assert_allclose(mean_losses(trainers), want[3:], rtol=1e-4)


def test_trainers_warn_that_they_skip_tables_sharded_by_id(tmp_path):
    save_sharded(tmp_path, "job", "adam")
    for way in ("folder", "load folder"):
        _, logs = launch_well(tmp_path, SCRIPT, "job", 3, 4, BY_TRAINERS=way, SHARDED="adam")
        assert "saved holds table table and optimizer state (" in logs["workerlog.0"]
    # One machine has the rows that were trained; the others keep their initial values.
    want = alone(tmp_path, 3, 4, LOAD="folder", SHARDED="adam")
    np.testing.assert_array_equal(alone(tmp_path, 3, 4, LOAD="load folder", SHARDED="adam"), want)


def test_a_trainer_cannot_load_a_table_sharded_by_id(fluid, tmp_path):
    words = fluid.data("words", [None, 1], "int64")
    word = fluid.layers.embedding(words, [40, 8], is_sparse=True, is_distributed=True, param_attr="table")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(word))
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers="127.0.0.1:1", trainers=1)
    program, exe = t.get_trainer_program(), fluid.Executor(fluid.CPUPlace())
    with pytest.raises(ValueError, match="table table is on the pservers, and this program is a trainer's: load"):
        fluid.io.load_vars(exe, str(tmp_path), program, vars=["table"])
    (tmp_path / "__lookup_table__").mkdir()
    (tmp_path / "__lookup_table__" / "table_0").write_bytes(b"")
    with pytest.raises(ValueError, match="__lookup_table__ holds rows of tables: give var_list without the tables"):
        fluid.load_program_state(str(tmp_path))
    assert fluid.load_program_state(str(tmp_path), var_list=[]) == {}


def test_a_single_file_warns_of_missing_pserver_state(tmp_path):
    _, logs = launch_well(tmp_path, SCRIPT, "job", 0, 1, SAVE="saved", ONE_FILE="1")
    assert "all has no optimizer state, which the pservers have (" in logs["workerlog.0"]
    _, logs = launch_well(tmp_path, SCRIPT, "job", 0, 1, SAVE="saved", BY_SAVE="1", SHARDED="adam")
    assert "fluid.save does not save the optimizer state of tables with is_distributed (table_" in logs["workerlog.0"]


@pytest.mark.parametrize("listed", [True, False])
def test_rows_of_another_save_are_refused(tmp_path, listed):
    """By the list of digests, which trainer 0 writes if it sees the pservers' files; without it, beside their state."""
    save_sharded(tmp_path, "job", "adam")
    folder = tmp_path / "saved" / "__lookup_table__"
    assert sorted(path.name for path in folder.iterdir()) == ["table_0", "table_0.state", "table_1", "table_1.state"]
    whole = (folder / "table_1").read_bytes()
    (folder / "table_1").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    if not listed:
        (tmp_path / "saved" / "__digests__").unlink()
    code, said, logs = launch(tmp_path, SCRIPT, "job", 3, 4, LOAD="folder", SHARDED="adam")
    why = "table_1 is not the file of the last save" if listed else "table_1.state is not of the same save as"
    assert code != 0 and why in said + "".join(logs.values())


def test_the_next_save_removes_files_of_more_pservers(tmp_path):
    launch_well(tmp_path, SCRIPT, "job", 0, 1, servers=3, SAVE="saved", SHARDED="adam")
    save_sharded(tmp_path, "job", "sgd")
    folder = tmp_path / "saved" / "__lookup_table__"
    assert sorted(path.name for path in folder.iterdir()) == ["table_0", "table_1"], "sgd has no state"


def test_rows_without_state_reset_the_optimizer(tmp_path):
    save_sharded(tmp_path, "job", "adam")
    folder = tmp_path / "saved" / "__lookup_table__"
    (folder / "table_1.state").unlink()
    _, logs = launch_well(tmp_path, SCRIPT, "job", 3, 4, LOAD="folder", SHARDED="adam")
    assert "saved has no value of table_moment1_0, table_moment2_0: this optimizer" in "".join(logs.values())


def write_shard(fluid, folder, ids, rows, rate):
    """Writes rows of a table and the state of Adam as pserver 0 does."""

    def tensor(value):
        held = fluid.Scope().var("any")
        held.get_tensor().set(value, None)
        return held._to_file_bytes()

    held = fluid.Scope().var("table")
    selected = held.get_selected_rows()
    selected.set_rows(ids)
    selected.set_height(40)
    selected.get_tensor().set(rows, None)
    state = {
        "table": np.array(ids),
        "crc32c": np.array([held._rows_crc32c()]),
        "table_moment1_0": rows + 1,
        "table_moment2_0": rows + 2,
        "table_beta1_pow_acc_0": np.array([0.5], "float32"),
        "learning_rate_0": np.array([rate], "float32"),
    }
    names = np.frombuffer("".join(name + "\n" for name in state).encode(), "uint8")
    (folder / "__lookup_table__").mkdir()
    (folder / "__lookup_table__" / "table_0").write_bytes(held._to_file_bytes())
    (folder / "__lookup_table__" / "table_0.state").write_bytes(b"".join(map(tensor, [names, *state.values()])))


@pytest.mark.parametrize(
    "kinds, what", [("MODEL_KINDS", {"rows", "state"}), ("ALL_KINDS", {"rows", "state", "rate"}), (None, {"rows"})]
)
def test_a_table_is_loaded_with_the_requested_state(fluid, tmp_path, kinds, what):
    """fleet.init_server() keeps a new learning rate; load_params loads the rows alone."""
    words = fluid.data("words", [None, 1], "int64")
    word = fluid.layers.embedding(words, [40, 2], is_sparse=True, is_distributed=True, param_attr="table")
    fluid.optimizer.Adam(0.25).minimize(fluid.layers.mean(word))
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers="127.0.0.1:1", trainers=1)
    program, startup = t.get_pserver_programs("127.0.0.1:1")
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
    exe.run(startup)
    rows = np.array([[1, 2], [3, 4]], "float32")
    write_shard(fluid, tmp_path, [7, 9], rows, rate=0.125)
    if kinds is None:
        fluid.io.load_params(exe, str(tmp_path), program)
    else:
        _pserver_values.load_folder(program, str(tmp_path), getattr(_pserver_held, kinds), strictly=False)

    def held(name):
        return scope.find_var(name).get_selected_rows()

    assert held("table").rows() == [7, 9]
    np.testing.assert_array_equal(held("table").get_tensor(), rows)
    assert (held("table_moment1_0").rows() == [7, 9]) == ("state" in what)
    power, rate = (np.array(scope.find_var(name).get_tensor()) for name in ("table_beta1_pow_acc_0", "learning_rate_0"))
    assert power == (0.5 if "state" in what else np.float32(0.9)) and rate == (0.125 if "rate" in what else 0.25)
