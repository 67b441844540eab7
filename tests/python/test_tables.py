"""Embeddings with is_distributed=True: jobs of real processes compared with one machine."""

import textwrap

import numpy as np
import pytest
from test_jobs import Job

SCRIPT = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    rows = int(os.environ.get('ROWS', 50))
    endpoints = os.environ['ENDPOINTS']
    optimizer = {'adam': lambda: fluid.optimizer.Adam(0.05), 'sgd': lambda: fluid.optimizer.SGD(0.5),
                 'momentum': lambda: fluid.optimizer.Momentum(0.1, 0.9)}[os.environ['OPTIMIZER']]()
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    ids = fluid.layers.data('ids', [4, 1], dtype='int64')
    label = fluid.layers.data('label', [1], dtype='float32')
    embedding = fluid.embedding if 'V2' in os.environ else fluid.layers.embedding
    words = embedding(ids, [rows, 8], is_sparse=True, is_distributed='IN_SLICES' not in os.environ,
                      padding_idx=3, param_attr=fluid.ParamAttr('words', initializer=fluid.initializer.Constant(
                          0.1) if 'ALIKE' in os.environ else None))
    output = fluid.layers.fc(fluid.layers.reduce_sum(words, dim=1), 1, act='sigmoid')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, label))
    test = fluid.default_main_program().clone(for_test=True)
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())

    def feed(step, whole=False):
        random = np.random.RandomState(step)
        ids = random.randint(rows - 50, rows, [8, 4, 1]).astype('int64')
        ids[0, 0, 0] = 3
        numbers = ids
        if 'ANY_ID' in os.environ:    # ids of hashed features: 50 of them; 3 stays the padding id
            names = np.random.RandomState(7).randint(-2**63, 2**63 - 1, [rows], dtype='int64')
            names[3], names[4], names[5] = 3, -1, rows
            ids = names[ids]
        label = (numbers.sum(axis=(1, 2)).reshape([8, 1]) % 2).astype('float32')
        mine = slice(0, 8) if role == 'local' or whole else slice(4 * index, 4 * index + 4)
        return {'ids': ids[mine], 'label': label[mine]}

    program = fluid.default_main_program()
    if role != 'local':
        t = fluid.DistributeTranspiler()
        t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2)
        if role == 'pserver':
            main, startup = t.get_pserver_programs(endpoints.split(',')[index])
            exe.run(startup)
            if 'LOAD' in os.environ:
                load = fluid.Program()
                table = load.global_block().create_var(name='words', type=fluid.core.VarDesc.VarType.SELECTED_ROWS,
                                                       shape=[25, 8], dtype='float32', persistable=True)
                load.global_block().append_op('load', outputs={'Out': table}, attrs={
                    'file_path': os.path.join(out, 'saved', '__lookup_table__', 'words_%d' % index)})
                exe.run(load)
            if 'INCREMENT' in os.environ:
                saved = os.path.join(out, 'saved')
                fluid.contrib.utils.load_persistables_for_increment(
                    saved, exe, main, 'words', os.path.join(saved, '__lookup_table__', 'words_%d' % index))
            exe.run(main)
            sys.exit(0)
        program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    if 'GO_ON' in os.environ:
        fluid.io.load_persistables(exe, os.path.join(out, 'saved'), program)
    first = int(os.environ.get('FIRST', 0))
    losses = [exe.run(program, feed=feed(step), fetch_list=[loss])[0][0] for step in range(first, first + steps)]
    if 'TEST' in os.environ:    # between steps
        tests = []
        for step in range(first + steps, first + steps + 2):
            tests.append(exe.run(test, feed=feed(step, whole=True), fetch_list=[loss])[0][0])
            exe.run(program, feed=feed(step), fetch_list=[])
        np.save(os.path.join(out, role + str(index) + '.test'), tests)
    if 'ALONE' in os.environ and index == 0:
        fluid.io.save_inference_model(os.path.join(out, 'alone'), ['ids'], [output], exe, program)
    if 'SAVE' in os.environ:
        fluid.io.save_persistables(exe, os.path.join(out, 'saved' if role == 'trainer' else 'saved_by_one'), program)
    if 'CONVERT' in os.environ and index == 0:
        converted = fluid.contrib.utils.convert_dist_to_sparse_program(program)
        with open(os.path.join(out, 'saved', '__model__'), 'wb') as file:
            get = fluid.contrib.utils.lookup_table_utils.get_inference_model
            file.write(get(converted, ['ids'], [output]).desc.serialize_to_string())
        np.save(os.path.join(out, 'output'), [output.name])
    np.save(os.path.join(out, role + str(index)), losses)
    exe.close()
""")


@pytest.fixture
def job(tmp_path):
    job = Job(tmp_path, SCRIPT)
    job.environment["PENSTOCK_CHECKPOINT_DIR"] = str(tmp_path)
    yield job
    job.kill_all()


def losses_of(job, names):
    job.wait_well()
    job.processes.clear()
    return [np.load(job.folder / (name + ".npy")) for name in names]


def test_trainer_0_saves_complete_tables(job):
    job.environment.update(OPTIMIZER="momentum", SAVE="1", IN_SLICES="1")
    job.start_all(steps=3)
    losses_of(job, ["trainer0", "trainer1"])
    job.start("local", 0, 3)
    losses_of(job, ["local0"])
    saved, expected = [(job.folder / name / "words").read_bytes() for name in ("saved", "saved_by_one")]
    values = 4 * 50 * 8
    assert saved[:-values] == expected[:-values], "they begin with the same shape"
    np.testing.assert_allclose(
        np.frombuffer(saved[-values:], "float32"), np.frombuffer(expected[-values:], "float32"), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_trainers_run_a_program_for_tests_between_their_steps(job, version):
    """The clone was made before the transpiler replaced the lookups, and trainers have no rows."""
    job.environment.update({"OPTIMIZER": "sgd", "TEST": "1", "IN_SLICES": "1", version: "1"})
    job.start_all(steps=2)
    job.start("local", 0, 2)
    first, second, local = losses_of(job, ["trainer0.test", "trainer1.test", "local0.test"])
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, local, rtol=1e-5)


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_an_inference_model_that_a_trainer_saves_runs_without_servers(job, fluid, version):
    job.environment.update({"OPTIMIZER": "sgd", "ALONE": "1", "IN_SLICES": "1", version: "1"})
    job.start_all(steps=2)
    losses_of(job, ["trainer0", "trainer1"])
    exe = fluid.Executor(fluid.CPUPlace())
    program, _, fetches = fluid.io.load_inference_model(str(job.folder / "alone"), exe)
    ids = np.array([[3, 4, 9, 49]])
    (got,) = exe.run(program, feed={"ids": ids.reshape(1, 4, 1)}, fetch_list=fetches)
    table, weight, bias = [
        np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("words", "fc_0.w_0", "fc_0.b_0")
    ]
    expected = 1 / (1 + np.exp(-(table[ids[0, 1:]].sum(axis=0, keepdims=True) @ weight + bias)))  # 3 is padding
    np.testing.assert_allclose(got.reshape(1, 1), expected, rtol=1e-5)


def test_trainers_continue_from_loaded_values_and_tables(job):
    """A parameter of two slices, one for each server."""
    job.environment.update(OPTIMIZER="sgd", IN_SLICES="1", ROWS="4096")
    job.start_all(steps=5)
    at_once = losses_of(job, ["trainer0", "trainer1"])
    job.environment["SAVE"] = "1"
    job.start_all(steps=3)
    losses_of(job, ["trainer0", "trainer1"])
    del job.environment["SAVE"]
    job.environment.update(GO_ON="1", FIRST="3")
    job.start_all(steps=2)
    np.testing.assert_array_equal(losses_of(job, ["trainer0", "trainer1"]), [losses[3:] for losses in at_once])


@pytest.mark.parametrize("optimizer, asked", [("sgd", ()), ("momentum", ()), ("adam", ()), ("adam", ("V2",))])
def test_a_distributed_embedding_trains_like_one_machine(job, optimizer, asked):
    job.environment.update(dict.fromkeys(asked, "1"), OPTIMIZER=optimizer)
    job.start_all(steps=6)
    trainers = losses_of(job, ["trainer0", "trainer1"])
    job.start("local", 0, 6)
    (local,) = losses_of(job, ["local0"])
    np.testing.assert_allclose(np.mean(trainers, axis=0), local, rtol=1e-4)
    assert len(set(local)) == len(local)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_any_int64_is_an_id(job, optimizer):
    """Such a table trains like one with ids below dict_size, because all rows start equal."""
    job.environment.update(OPTIMIZER=optimizer, ALIKE="1")
    job.start_all(steps=4)
    below = losses_of(job, ["trainer0", "trainer1"])
    job.environment["ANY_ID"] = "1"
    job.start_all(steps=4)
    named = losses_of(job, ["trainer0", "trainer1"])
    np.testing.assert_allclose(named, below, rtol=1e-6)
    assert len(set(named[0])) == 4


def test_servers_save_and_reload_their_rows(job):
    job.environment.update(OPTIMIZER="sgd", SAVE="1")
    job.start_all(steps=3)
    before = losses_of(job, ["trainer0", "trainer1"])
    saved = job.folder / "saved"
    assert sorted(path.name for path in (saved / "__lookup_table__").iterdir()) == ["words_0", "words_1"]
    assert not (saved / "words").exists() and (saved / "fc_0.w_0").exists()
    del job.environment["SAVE"]
    job.environment["LOAD"] = "1"
    job.start_all(steps=1)
    after = losses_of(job, ["trainer0", "trainer1"])
    assert all(a[0] != b[0] for a, b in zip(after, before)), "the first step is as before, but for the rows"


def test_servers_load_parameters_and_rows_of_a_saved_job(job):
    """After seven steps, in which every row was asked for."""
    job.environment["OPTIMIZER"] = "sgd"
    job.start_all(steps=9)
    at_once = losses_of(job, ["trainer0", "trainer1"])
    job.environment["SAVE"] = "1"
    job.start_all(steps=7)
    losses_of(job, ["trainer0", "trainer1"])
    del job.environment["SAVE"]
    job.environment.update(INCREMENT="1", FIRST="7")
    job.start_all(steps=2)
    for whole, rest in zip(at_once, losses_of(job, ["trainer0", "trainer1"])):
        np.testing.assert_allclose(rest, whole[7:], rtol=1e-6)


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_a_trainers_program_looks_up_saved_rows_without_servers(job, fluid, version):
    job.environment.update({"OPTIMIZER": "sgd", "SAVE": "1", "CONVERT": "1", "ANY_ID": "1", version: "1"})
    job.start_all(steps=3)
    losses_of(job, ["trainer0", "trainer1"])
    exe = fluid.Executor(fluid.CPUPlace())
    program = fluid.contrib.utils.load_persistables_for_inference(str(job.folder / "saved"), exe, None, "words")
    table = fluid.global_scope().find_var("words").get_selected_rows()
    trained = dict(zip(table.rows(), np.array(table.get_tensor())))
    known, unknown = max(trained), next(row for row in range(50) if row not in trained)
    ids = np.array([[3, known, unknown, known]])
    (output,) = np.load(job.folder / "output.npy")
    (got,) = exe.run(program, feed={"ids": ids.reshape(1, 4, 1)}, fetch_list=[str(output)])
    weight, bias = (np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("fc_0.w_0", "fc_0.b_0"))
    expected = 1 / (1 + np.exp(-(2 * trained[known] @ weight + bias)))  # 3 is padding
    np.testing.assert_allclose(got.reshape(1), expected, rtol=1e-5)
    assert len(trained) > 25 and len(set(trained)) == len(table.rows()), "of both servers, each row once"


def test_servers_save_no_table_outside_their_folder(job):
    job.environment.update(OPTIMIZER="sgd", SAVE="1", PENSTOCK_CHECKPOINT_DIR=str(job.folder / "elsewhere"))
    job.start_all(steps=1)
    results = job.wait()
    assert results["trainer0"][0] != 0 and "E-server-save-path" in results["trainer0"][2], results
    assert not (job.folder / "saved" / "__lookup_table__").exists() and not list(job.folder.rglob("words_*"))


def test_a_table_larger_than_memory_trains(job):
    job.environment.update(OPTIMIZER="adam", ROWS=str(10**11))
    job.start_all(steps=2)
    assert np.isfinite(losses_of(job, ["trainer0", "trainer1"])).all()
