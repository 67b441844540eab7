"""Checkpoints of the collective fleet: one that was reported as saved is never lost."""

import json
import os
import shutil

import numpy as np
import penstock
import pytest
from fleet_jobs import launch_well
from penstock.fluid.incubate.fleet import collective
from penstock.fluid.incubate.fleet.base import role_maker
from penstock.fluid.incubate.fleet.collective import TrainStatus
from test_one_save import killed_at

PREFIX = "__paddle_fleet_checkpoint__."


@pytest.fixture
def saver(fluid, monkeypatch):
    """A fleet of one rank whose parameter w is the number of the last `put`."""
    made = collective.Collective()
    monkeypatch.setattr(collective, "fleet", made)
    made.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr="w", bias_attr=False))
    made.distributed_optimizer(fluid.optimizer.Momentum(0.1, 0.9)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(made.startup_program)
    return Saver(fluid, made, exe)


class Saver:
    def __init__(self, fluid, fleet, exe):
        self.w, self.fleet, self.exe = fluid.global_scope().find_var("w").get_tensor(), fleet, exe

    def save(self, path, epoch, keep=True):
        self.w.set(np.full((4, 2), epoch, "float32"), None)
        self.fleet.save_check_point(self.exe, str(path), TrainStatus(epoch), remain_all_checkpoint=keep)

    def load(self, path):
        """The epoch of the loaded checkpoint, whose parameters it must have."""
        self.w.set(np.full((4, 2), -1, "float32"), None)
        status = self.fleet.load_check_point(self.exe, str(path), 0)
        assert np.unique(np.array(self.w)).tolist() == [status._epoch_no]
        return status._epoch_no


@pytest.mark.parametrize(
    "when, keep",
    [
        ("before", False),
        pytest.param("after", False, marks=pytest.mark.slow),
        pytest.param("before", True, marks=pytest.mark.slow),
    ],
)
def test_a_killed_save_leaves_a_whole_checkpoint(saver, tmp_path, keep, when):
    seen, point, ended = set(), 0, False
    while not ended:
        point += 1
        path = tmp_path / str(point)
        saver.save(path, 1)
        ended = killed_at(point, when, lambda: saver.save(path, 2, keep))
        seen.add(saver.load(path))
        saver.save(path, 3, keep=False)
        assert saver.load(path) == 3
        assert len(os.listdir(path)) == 1
    assert seen == {1, 2} and point > 10


def test_files_are_synced_before_rename_and_old_checkpoints_removed_last(saver, tmp_path, monkeypatch):
    happened = []
    fsync, rename, rmtree = os.fsync, os.rename, shutil.rmtree
    monkeypatch.setattr(os, "fsync", lambda file: (happened.append(("sync", os.fstat(file).st_ino)), fsync(file))[1])
    monkeypatch.setattr(os, "rename", lambda old, new: (happened.append(("name", new)), rename(old, new))[1])
    monkeypatch.setattr(shutil, "rmtree", lambda path: (happened.append(("delete", path)), rmtree(path))[1])
    saver.save(tmp_path, 1)
    del happened[:]
    saver.save(tmp_path, 2, keep=False)
    new = tmp_path / (PREFIX + "1")
    named, deleted = happened.index(("name", str(new))), happened.index(("delete", str(tmp_path / (PREFIX + "0"))))
    files = [new, *new.iterdir()]
    assert len(files) == 4 and all(("sync", file.stat().st_ino) in happened[:named] for file in files)
    assert ("sync", tmp_path.stat().st_ino) in happened[named:deleted]


@pytest.mark.parametrize("damage", ["missing", "empty", "shorter", "byte", "no file"])
@pytest.mark.parametrize("file", ["fleet_train_status", "_paddle_fleet_param__", "__digests__"])
def test_a_damaged_checkpoint_is_left_out_with_a_warning(saver, tmp_path, file, damage):
    for epoch in (1, 2, 3):
        saver.save(tmp_path, epoch)
    path = tmp_path / (PREFIX + "2") / file
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "no file":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"empty": b"", "shorter": data[:-3], "byte": data[:-1] + bytes([data[-1] ^ 1])}[damage])
    if file == "__digests__" and damage == "missing":  # as in a checkpoint of Fluid
        assert saver.load(tmp_path) == 3
        return
    with pytest.warns(UserWarning, match="checkpoint .*__.2 is damaged, so an earlier one is loaded"):
        assert saver.load(tmp_path) == 2
    saver.save(tmp_path, 4)
    assert saver.load(tmp_path) == 4


def test_if_all_checkpoints_are_damaged_the_newest_is_reported(saver, tmp_path):
    for epoch in (1, 2):
        saver.save(tmp_path, epoch)
    for folder in tmp_path.iterdir():
        (folder / "fleet_train_status").write_text("{}")
    with pytest.warns(UserWarning), pytest.raises(penstock.DataError, match=r"__\.1") as caught:
        saver.load(tmp_path)
    assert caught.value.id == "E-save-mixed"


def test_a_checkpoint_of_another_program_is_an_error(fluid, saver, tmp_path):
    saver.save(tmp_path, 1)
    other = fluid.Program()
    other.global_block().create_var(name="w", shape=[4, 3], dtype="float32", persistable=True)
    with pytest.raises(ValueError, match="holds more than the 1 requested variables"):
        saver.fleet.load_check_point(saver.exe, str(tmp_path), 0, main_program=other)


def test_fluids_checkpoints_are_loaded(saver, tmp_path):
    """They have neither a list of digests nor the rank."""
    saver.save(tmp_path, 7)
    folder = tmp_path / (PREFIX + "0")
    (folder / "__digests__").unlink()
    (folder / "fleet_train_status").write_text(json.dumps({"epoch_no": 7}))
    assert saver.load(tmp_path) == 7


def test_the_newest_checkpoints_are_kept_despite_gaps(saver, tmp_path):
    for epoch in range(4):
        saver.save(tmp_path, epoch)
    shutil.rmtree(tmp_path / (PREFIX + "2"))
    saver.fleet.clean_redundant_check_points(str(tmp_path), checkpoint_num=2)
    assert sorted(os.listdir(tmp_path)) == [PREFIX + "1", PREFIX + "3"]


RANKS = """
    import os, sys, warnings
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.collective import TrainStatus, fleet

    keep, same = sys.argv[1] == 'keep', sys.argv[2] == 'same'
    x = fluid.data('x', [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 2, param_attr='w'))
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    fleet.distributed_optimizer(fluid.optimizer.Momentum(0.1, 0.9)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    path = 'checkpoints' if same else 'checkpoints%d' % fleet.worker_index()
    said = []
    for epoch in range(6):
        exe.run(fleet.main_program, feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            fleet.save_check_point(exe, path, TrainStatus(epoch), remain_all_checkpoint=keep)
        said += [str(one.message) for one in caught]
    saved = np.array(fluid.global_scope().find_var('w').get_tensor())
    epoch = fleet.load_check_point(exe, path, 0)._epoch_no
    loaded = np.array(fluid.global_scope().find_var('w').get_tensor())
    np.savez('worker%d.npz' % fleet.worker_index(), epoch=epoch, same=(saved == loaded).all(),
             said=sum('fleet.is_first_worker()' in one for one in said), all_said=len(said))
    exe.close()
"""


@pytest.mark.parametrize("keep", ["keep", "newest"])
@pytest.mark.parametrize("folders", ["same", "own"])
def test_ranks_save_in_turn_and_skip_equal_checkpoints(tmp_path, keep, folders):
    ranks, _ = launch_well(tmp_path, RANKS, keep, folders, servers=0)
    assert [int(rank["epoch"]) for rank in ranks] == [5, 5] and all(rank["same"] for rank in ranks)
    said = sum(int(rank["said"]) for rank in ranks)
    assert said == sum(int(rank["all_said"]) for rank in ranks) == (6 if folders == "same" else 0)
    for folder in ("checkpoints",) if folders == "same" else ("checkpoints0", "checkpoints1"):
        assert len(os.listdir(tmp_path / folder)) == (6 if keep == "keep" else 1)
