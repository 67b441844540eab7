"""Where saved variables go: into the requested folder, safe from crashes and from other users' links."""

import os

import numpy as np
import pytest


def files(folder):
    return {
        os.path.relpath(os.path.join(here, name), folder): open(os.path.join(here, name), "rb").read()
        for here, _, names in os.walk(folder)
        for name in names
    }


def one_persistable(fluid, name):
    """A program with one persistable variable of this name, which has a value."""
    program = fluid.Program()
    var = program.global_block().create_var(name=name, shape=[2], dtype="float32", persistable=True)
    fluid.global_scope().var(name).get_tensor().set(np.array([1, 2], "float32"), None)
    return program, var


@pytest.mark.parametrize("name", ["../x", "../../x", "a/../../x", "./../x", "..", "ABSOLUTE"])
def test_names_cannot_leave_the_folder(fluid, tmp_path, name):
    name = str(tmp_path / "x") if name == "ABSOLUTE" else name
    folder = tmp_path / "deep" / "model"
    program, var = one_persistable(fluid, name)
    outside = one_persistable(fluid, "x")[0]
    for above in (tmp_path, tmp_path / "deep"):
        fluid.io.save_persistables(None, str(above), outside)
    before = files(tmp_path)
    for call in (
        lambda: fluid.io.save_persistables(None, str(folder), program),
        lambda: fluid.io.save_vars(None, str(folder), program, vars=[var]),
        lambda: fluid.io.load_persistables(None, str(folder), program),
        lambda: fluid.load(program, str(tmp_path / "deep")),
        lambda: fluid.io.load_program_state(str(tmp_path / "deep"), var_list=[var]),
    ):
        with pytest.raises(ValueError, match="is outside") as caught:
            call()
        assert caught.value.id == "E-file-outside"
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["tower/fc/w", "a/../w", "..w"])
def test_names_with_slashes_stay_in_the_folder(fluid, tmp_path, name):
    program, _ = one_persistable(fluid, name)
    fluid.io.save_persistables(None, str(tmp_path), program)
    assert list(files(tmp_path)) == [os.path.normpath(name)]
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(None, str(tmp_path), program)
        assert np.array(fluid.global_scope().find_var(name).get_tensor()).tolist() == [1, 2]


def test_a_file_and_its_folder_are_synced(fluid, tmp_path, monkeypatch):
    forced, fsync = [], os.fsync

    def recorded(file):
        forced.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    monkeypatch.setattr(os, "fsync", recorded)
    program, _ = one_persistable(fluid, "x")
    fluid.io.save_persistables(None, str(tmp_path), program)
    assert len(forced) == 2 and forced[0].startswith(str(tmp_path / "x.")) and forced[1] == str(tmp_path)


def test_a_temporary_file_follows_no_link(fluid, tmp_path, monkeypatch):
    (tmp_path / "victim").write_bytes(b"old")
    tried, replace = [], os.replace

    def recorded(old, new):
        tried.append(old)
        replace(old, new)

    monkeypatch.setattr(os, "replace", recorded)
    program, _ = one_persistable(fluid, "x")
    fluid.io.save_persistables(None, str(tmp_path), program)
    head, number = tried[0][: -len(".partial")].rsplit("-", 1)
    for guess in (1, 2):  # an attacker with write access to the folder can guess the next name
        os.symlink(tmp_path / "victim", f"{head}-{int(number) + guess}.partial")
    fluid.io.save_persistables(None, str(tmp_path), program)
    assert (tmp_path / "victim").read_bytes() == b"old"
    assert not (tmp_path / "x").is_symlink() and tried[1] == f"{head}-{int(number) + 3}.partial"
