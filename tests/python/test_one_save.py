"""A save of several files is one save: whatever interrupts it, a load gets all of its files, all previous ones, or an
error that says what is wrong."""

import builtins
import errno
import os
import shutil
import signal

import numpy as np
import penstock
import pytest


def killed_at(point, when, call):
    """Runs a function in a child process that is killed before or after its file operation number `point`. Returns
    whether the function had fewer."""
    child = os.fork()
    if child == 0:
        count = 0

        def hooked(function):

            def hook(*args, **named):
                nonlocal count
                count += 1
                kills = count == point
                if kills and when == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                result = function(*args, **named)
                if kills:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return hook

        for name in ("open", "fsync", "replace", "rename", "makedirs", "mkdir", "remove", "unlink"):
            setattr(os, name, hooked(getattr(os, name)))
        builtins.open = hooked(builtins.open)
        try:
            call()
        finally:
            os._exit(count < point)
    return os.waitpid(child, 0)[1] == 1 << 8


def network(fluid):
    x = fluid.data("x", [None, 4])
    out = fluid.layers.fc(x, 2, param_attr="w", bias_attr="b")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(out))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, out


def put(fluid, number):
    for name in "wb":
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.full(tensor.shape(), number, "float32"), fluid.CPUPlace())


def held(fluid):
    """The numbers in the two parameters; one if they are from one save."""
    return {
        float(number)
        for name in "wb"
        for number in np.unique(np.array(fluid.global_scope().find_var(name).get_tensor()))
    }


def saved_twice(fluid, folder, *names):
    """Two saves over each other, of 1 and 2; the files `names` are those of the first. Returns the executor."""
    exe, _ = network(fluid)
    put(fluid, 1)
    fluid.io.save_persistables(exe, str(folder))
    for name in names:
        shutil.copy(folder / name, str(folder) + "-" + name)
    put(fluid, 2)
    fluid.io.save_persistables(exe, str(folder))
    for name in names:
        shutil.copy(str(folder) + "-" + name, folder / name)
    put(fluid, 0)
    return exe


def save(fluid, exe, out, folder, kind):
    if kind == "persistables":
        fluid.io.save_persistables(exe, folder)
    elif kind == "inference":
        fluid.io.save_inference_model(folder, ["x"], [out], exe)
    else:
        fluid.save(fluid.default_main_program(), os.path.join(folder, "m"))


def load(fluid, exe, folder, kind):
    if kind == "persistables":
        fluid.io.load_persistables(exe, folder)
    elif kind == "inference":
        fluid.io.load_inference_model(folder, exe)
    else:
        fluid.load(fluid.default_main_program(), os.path.join(folder, "m"))


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["persistables", "inference", "fluid.save"])
def test_a_killed_save_leaves_a_complete_save(fluid, tmp_path, kind, when):
    exe, out = network(fluid)
    put(fluid, 1)
    seen, point = set(), 0
    while True:
        point += 1
        folder = str(tmp_path / str(point))
        put(fluid, 1)
        save(fluid, exe, out, folder, kind)
        put(fluid, 2)
        ended = killed_at(point, when, lambda: save(fluid, exe, out, folder, kind))
        put(fluid, 0)
        load(fluid, exe, folder, kind)
        assert held(fluid) in ({1.0}, {2.0}), point
        seen.add(held(fluid).pop())
        put(fluid, 3)  # a save after the interrupted one
        save(fluid, exe, out, folder, kind)
        put(fluid, 0)
        load(fluid, exe, folder, kind)
        assert held(fluid) == {3.0}
        if ended:
            break
    assert seen == {1.0, 2.0} and point > 10


def test_a_file_of_another_save_is_reported(fluid, tmp_path):
    exe = saved_twice(fluid, tmp_path / "save", "w")
    with pytest.raises(penstock.DataError, match="w is not the file of the last save") as caught:
        fluid.io.load_persistables(exe, str(tmp_path / "save"))
    assert caught.value.id == "E-save-mixed" and str(tmp_path / "save") in str(caught.value)
    assert f"delete {tmp_path / 'save' / '__digests__'}" in str(caught.value)
    (tmp_path / "save" / "__digests__").unlink()  # as the error advises
    fluid.io.load_persistables(exe, str(tmp_path / "save"))
    assert held(fluid) == {1.0, 2.0}


def test_a_changed_byte_is_an_error(fluid, tmp_path):
    exe, _ = network(fluid)
    fluid.io.save_persistables(exe, str(tmp_path))
    data = bytearray((tmp_path / "w").read_bytes())
    data[-1] ^= 1
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(penstock.DataError) as caught:
        fluid.io.load_persistables(exe, str(tmp_path))
    assert caught.value.id == "E-save-mixed"


def test_single_variables_are_saved_over_a_save(fluid, tmp_path):
    exe, _ = network(fluid)
    fluid.io.save_persistables(exe, str(tmp_path))
    put(fluid, 5)
    for name in "wb":
        fluid.io.save_vars(exe, str(tmp_path), vars=[name])
    put(fluid, 0)
    fluid.io.load_persistables(exe, str(tmp_path))
    assert held(fluid) == {5.0}


def test_a_single_file_save_has_no_manifest(fluid, tmp_path):
    exe, _ = network(fluid)
    fluid.io.save_vars(exe, str(tmp_path), vars=["w"])
    fluid.io.save_persistables(exe, str(tmp_path / "all"), filename="all")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "w"]
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["all"]


def test_a_file_that_a_user_adds_is_loaded(fluid, tmp_path):
    exe, _ = network(fluid)
    fluid.io.save_persistables(exe, str(tmp_path))
    shutil.copy(tmp_path / "w", tmp_path / "mine")
    mine = (
        fluid.default_main_program()
        .global_block()
        .create_var(name="mine", shape=[4, 2], dtype="float32", persistable=True)
    )
    fluid.io.load_vars(exe, str(tmp_path), vars=[mine])
    assert set(fluid.load_program_state(str(tmp_path))) == {"w", "b", "mine", "learning_rate_0"}


def test_a_folder_rewritten_by_another_program_loads_with_a_warning(fluid, tmp_path):
    """As Fluid does, which knows no list: it writes all files; the learning rate is the same as before."""
    exe = saved_twice(fluid, tmp_path / "save", "w", "b", "learning_rate_0")
    later = (tmp_path / "save" / "__digests__").stat().st_mtime + 1
    for path in (tmp_path / "save").iterdir():
        if path.name != "__digests__":
            os.utime(path, (later, later))
    with pytest.warns(UserWarning, match="another program has written the files"):
        fluid.io.load_persistables(exe, str(tmp_path / "save"))
    assert held(fluid) == {1.0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"files": {"w": 3}}',
        '{"files": {"w": ["0", "../w.1-1.partial"]}}',
        '{"files": {"../w": ["0", "../w.1-1.partial"]}}',
        '{"files": {"w": ["0", "b"]}}',
    ],
)
def test_a_damaged_manifest_is_an_error(fluid, tmp_path, text):
    exe, _ = network(fluid)
    fluid.io.save_persistables(exe, str(tmp_path))
    (tmp_path / "__digests__").write_text(text)
    for call in (fluid.io.load_persistables, fluid.io.save_persistables):
        with pytest.raises(penstock.DataError) as caught:
            call(exe, str(tmp_path))
        assert caught.value.id == "E-save-list" and str(tmp_path / "__digests__") in str(caught.value)


def test_a_variable_cannot_have_the_name_of_the_manifest(fluid, tmp_path):
    program = fluid.Program()
    program.global_block().create_var(name="__digests__", shape=[1], dtype="float32", persistable=True)
    fluid.global_scope().var("__digests__").get_tensor().set(np.ones(1, "float32"), None)
    with pytest.raises(penstock.ProgramError) as caught:
        fluid.io.save_persistables(None, str(tmp_path), program)
    assert caught.value.id == "E-file-reserved"


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_an_error_with_the_path_and_keeps_the_previous_save(fluid, tmp_path, monkeypatch, call):
    exe, _ = network(fluid)
    put(fluid, 1)
    fluid.io.save_persistables(exe, str(tmp_path))
    before = sorted(path.name for path in tmp_path.iterdir())

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, data):
            if call == "write":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(data)

        def __getattr__(self, name):
            return getattr(self.file, name)

    from penstock._src.base import file_writing as _file_writing

    if call == "write":
        monkeypatch.setattr(_file_writing, "open", lambda *args: Full(open(*args)), raising=False)
    else:

        def no_sync(file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", no_sync)
    put(fluid, 2)
    with pytest.raises(OSError, match="No space left") as caught:
        fluid.io.save_persistables(exe, str(tmp_path))
    assert caught.value.errno == errno.ENOSPC and caught.value.filename.startswith(str(tmp_path))
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    fluid.io.load_persistables(exe, str(tmp_path))
    assert held(fluid) == {1.0}


def files_of_other_kinds(fluid, exe, path):
    from penstock.fluid.incubate.fleet.utils import utils

    def profile():
        with fluid.profiler.profiler("CPU", profile_path=path):
            exe.run(feed={"x": np.ones((1, 4), "float32")})

    main = fluid.default_main_program()
    return [
        lambda: utils.save_program(main, path),
        lambda: utils.save_program(main, path, is_text=True),
        profile,
        lambda: fluid.debugger.draw_block_graphviz(main.global_block(), path=path),
    ]


def refuse(file):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_programs_profiles_and_drawings_are_written_atomically(fluid, tmp_path, monkeypatch):
    exe, _ = network(fluid)
    path = str(tmp_path / "file")
    for save in files_of_other_kinds(fluid, exe, path):
        save()
        with open(path, "rb") as file:
            before = file.read()
        assert before and os.listdir(tmp_path) == ["file"]
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", refuse)
            with pytest.raises(OSError, match="No space left on device") as caught:
                save()
        assert caught.value.filename == path
        with open(path, "rb") as file:
            assert file.read() == before
        assert os.listdir(tmp_path) == ["file"]


def test_a_file_may_be_a_device_or_a_link(fluid, tmp_path):
    exe, _ = network(fluid)
    for save in files_of_other_kinds(fluid, exe, os.devnull):
        save()
    assert not os.path.isfile(os.devnull)
    (tmp_path / "real").write_bytes(b"")
    os.symlink(tmp_path / "real", tmp_path / "link")
    for save in files_of_other_kinds(fluid, exe, str(tmp_path / "link")):
        (tmp_path / "real").write_bytes(b"")
        save()
        assert (tmp_path / "real").read_bytes() and os.path.islink(tmp_path / "link")
