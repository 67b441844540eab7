"""A table of a job of real processes, exported for serving in parts and by what has changed."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

SCRIPT = """
    import os
    import numpy as np
    import penstock.fluid as fluid

    words = fluid.data('words', [None, 1], 'int64')
    word = fluid.layers.embedding(words, [400, 8], is_sparse=True, is_distributed=True, param_attr='table',
                                  evict='unseen 6')
    output = fluid.layers.fc(word, 1, param_attr='w')
    fluid.optimizer.Adam(0.1, lazy_mode=True).minimize(fluid.layers.mean(output))
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=os.environ['PADDLE_PSERVERS_IP_PORT_LIST'], trainers=1)
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        program, startup = transpiler.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        exe.run(program)
    else:
        exe.run(fluid.default_startup_program())
        program = transpiler.get_trainer_program()
        for step in range(10):
            exe.run(program, feed={'words': np.arange(40 * step // 3, 40 * step // 3 + 60).reshape(-1, 1)})
        exe.close()
"""
TYPES = {"F32": np.float32, "I64": np.int64}


def run(folder, *command):
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def export(folder, *arguments):
    run(folder, pathlib.Path(sys.executable).with_name("penstock"), "ckpt", "export", *arguments)


def read_safetensors(path):
    """{name: array}"""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, array in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        first, end = (begin + offset for offset in array["data_offsets"])
        arrays[name] = np.frombuffer(data[first:end], TYPES[array["dtype"]]).reshape(array["shape"])
    return arrays


def rows_of(folder, name):
    """{id: row} from all parts of the table, each id once."""
    rows = {}
    for path in folder.glob("table.part-*.safetensors"):
        part = read_safetensors(path)
        assert list(part["table.ids"]) == sorted(part["table.ids"])
        assert not rows.keys() & set(part["table.ids"])
        rows.update(zip(part["table.ids"], (row.tobytes() for row in part[name])))
    return rows


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
    options = ["--server_num", 2, "--worker_num", 1, "--checkpoint_dir", "ckpt", "--checkpoint_steps", 5]
    run(folder, sys.executable, "-m", "penstock.distributed.launch", *options, "job.py")
    return folder


def test_parts_for_serving_have_the_rows_of_the_table(job):
    export(job, "ckpt/step-10", "tensors", "--safetensors")
    export(job, "ckpt/step-10", "arrays", "--numpy")
    export(job, "ckpt/step-10", "parts", "--numpy", "--part_mb", 1)
    ids = np.load(job / "arrays" / "table.ids.npy")
    assert 60 < len(ids) < 180, "some are evicted"
    for name in ("table", "table_moment1_0", "table_moment2_0"):
        whole = np.load(job / "arrays" / f"{name}.npy")
        assert rows_of(job / "tensors", name) == dict(zip(ids, (row.tobytes() for row in whole)))
        assert np.array_equal(np.load(job / "parts" / f"{name}.part-0.npy"), whole)
    assert np.array_equal(np.load(job / "parts" / "table.part-0.ids.npy"), ids)
    variables = read_safetensors(job / "tensors" / "variables.safetensors")
    assert np.array_equal(variables["w"], np.load(job / "arrays" / "w.npy"))


def test_what_changed_since_a_step_brings_its_rows_up_to_date(job):
    export(job, "ckpt/step-5", "before", "--safetensors", "--states=false")
    export(job, "ckpt/step-10", "after", "--safetensors")
    export(job, "ckpt/step-10", "changes", "--safetensors", "--since", 5)
    rows, changes = rows_of(job / "before", "table"), rows_of(job / "changes", "table")
    gone = read_safetensors(job / "changes" / "table.gone.safetensors")["table.gone"]
    assert 0 < len(gone)
    after = rows_of(job / "after", "table")
    assert 0 < len(changes) < len(after)
    for row in gone:
        rows.pop(row, None)
    assert {**rows, **changes} == after
