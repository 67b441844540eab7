"""Utilities of fleet scripts: an AUC over all trainers, and files in Hadoop (with a stand-in for its client)."""

import os

import numpy as np
import pytest
from penstock.fluid.contrib.utils import multi_download, multi_upload
from penstock.fluid.incubate.fleet.base import role_maker
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from penstock.fluid.incubate.fleet.utils.fleet_util import FleetUtil
from penstock.fluid.incubate.fleet.utils.fs import BDFS, LocalFS
from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient

# A stand-in for `hadoop fs` on a local folder, $ROOT, which records its calls.
HADOOP = """#!/bin/sh
echo "$@" >>"$ROOT/../asked"
shift
while [ "${1#-D}" != "$1" ]; do shift; done
case "$1" in
  -test) exec test "$2" "$ROOT$3" ;;
  -cat) exec cat "$ROOT$2" ;;
  -mkdir) exec mkdir -p "$ROOT$3" ;;
  -rm) if [ "$2" = -r ]; then exec rm -r "$ROOT$3"; fi; exec rm "$ROOT$2" ;;
  -mv) exec mv "$ROOT$2" "$ROOT$3" ;;
  -get) exec cp -r "$ROOT$2" "$3" ;;
  -put) exec cp -r "$2" "$ROOT$3" ;;
  -ls) echo "Found some items"
    for f in "$ROOT$2"/*; do echo "-rw-r--r-- 3 user group 5 2020-01-01 00:00 ${f#$ROOT}"; done ;;
  -lsr) find "$ROOT$2" -mindepth 1 | sort | while read -r f; do
      kind=-; [ -d "$f" ] && kind=d
      echo "${kind}rw-r--r-- 3 user group 5 2020-01-01 00:00 ${f#$ROOT}"; done ;;
  *) exit 9 ;;
esac
"""


@pytest.fixture
def client(tmp_path, monkeypatch):
    (tmp_path / "home" / "bin").mkdir(parents=True)
    (tmp_path / "root").mkdir()
    tool = tmp_path / "home" / "bin" / "hadoop"
    tool.write_text(HADOOP)
    tool.chmod(0o755)
    monkeypatch.setenv("ROOT", str(tmp_path / "root"))
    return HDFSClient(str(tmp_path / "home"), {"fs.default.name": "hdfs://x"})


def test_hdfs_client_runs_hadoop_commands(client, tmp_path):
    (tmp_path / "local").mkdir()
    for name in "ab":
        (tmp_path / "local" / name).write_text(name * 3)
    assert client.makedirs("/data") and client.is_dir("/data") and not client.is_file("/data")
    assert client.upload("/data", str(tmp_path / "local"))
    assert client.ls("/data") == ["/data/a", "/data/b"] and client.cat("/data/a") == "aaa"
    assert client.is_file("/data/a") and not client.is_exist("/data/c") and client.cat("/data/c") == ""
    assert client.upload_dir("/more", str(tmp_path / "local")) and client.lsr("/", ["/more/local/b"]) == [
        "/data/a",
        "/data/b",
        "/more/local/a",
    ]
    copies = client.download("/data", str(tmp_path / "copy"))
    assert copies == [str(tmp_path / "copy" / name) for name in "ab"]
    assert not client.rename("/data/a", "/data/b") and client.rename("/data/a", "/data/b", overwrite=True)
    assert client.cat("/data/b") == "aaa"
    assert client.delete("/data/b") and client.delete("/data/b") and client.delete("/data")
    assert not client.upload("/nowhere/x", str(tmp_path / "local" / "a"), retry_times=0)
    assert "fs -Dfs.default.name=hdfs://x -mkdir -p /data" in (tmp_path / "asked").read_text()
    assert HDFSClient.split_files(list("abc"), 1, 2) == ["c"]


def test_a_barrier_gives_hadoop_the_settings_of_the_environment(client, tmp_path, monkeypatch):
    from penstock.fluid.incubate.fleet.utils.fleet_barrier_util import check_all_trainers_ready

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FS_NAME", "hdfs://y")
    monkeypatch.delenv("FS_UGI", raising=False)
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, ["127.0.0.1:6174"]))
    check_all_trainers_ready("/ready", 3)
    asked = (tmp_path / "asked").read_text()
    assert "-Dfs.default.name=hdfs://y" in asked and "hadoop.job.ugi" not in asked


def test_hdfs_client_handles_many_files(client, tmp_path):
    for name in ("a", "b", "deep/c"):
        path = tmp_path / "local" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    multi_upload(client, "/data", str(tmp_path / "local"))
    (tmp_path / "local" / "a").write_text("newer")
    multi_upload(client, "/data", str(tmp_path / "local"), overwrite=True)
    assert client.lsr("/data") == ["/data/a", "/data/b", "/data/deep/c"] and client.cat("/data/a") == "newer"
    parts = [multi_download(client, "/data", str(tmp_path / "copies"), trainer, 2) for trainer in (0, 1)]
    assert parts == [[str(tmp_path / "copies" / name) for name in names] for names in (("a", "deep/c"), ("b",))]
    assert (tmp_path / "copies" / "deep" / "c").read_text() == "deep/c"
    with pytest.raises(ValueError, match="there is no trainer 2 of 2"):
        multi_download(client, "/data", str(tmp_path), 2, 2)
    with pytest.raises(TypeError, match="multi_upload takes an HDFSClient, not str"):
        multi_upload("hadoop", "/data", str(tmp_path))


def test_a_missing_hadoop_client_is_reported():
    with pytest.raises(ValueError, match="/no/hadoop/bin/hadoop cannot be run"):
        HDFSClient("/no/hadoop", {}).ls("/")


def test_auc_is_computed_over_all_trainers(fluid, capfd):
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, ["a:1"]))
    util = FleetUtil("transpiler")
    assert util.get_global_auc() is None
    random = np.random.RandomState(0)
    positive, negative = random.randint(0, 9, (1, 20)), random.randint(0, 9, (1, 20))
    scope = fluid.global_scope()
    for name, counts in (("pos", positive), ("neg", negative)):
        scope.var(name).get_tensor().set(counts.astype("int64"), None)
    # The share of pairs in which the positive example has the higher bucket; ties count half.
    above = sum(
        int(p) * int(n) * (1.0 if i > j else 0.5 * (i == j))
        for i, p in enumerate(positive[0])
        for j, n in enumerate(negative[0])
    )
    assert util.get_global_auc(None, "pos", "neg") == pytest.approx(above / (positive.sum() * negative.sum()))
    util.set_zero("pos")
    assert util.get_global_auc(None, "pos", "neg") == 0.5
    util.print_global_auc(None, "pos", "neg", "epoch 1")
    assert capfd.readouterr().out == "not found auc bucket\nepoch 1 global auc = 0.5\n"


def test_unsupported_fleet_utilities_are_refused():
    with pytest.raises(NotImplementedError, match="give 'transpiler'"):
        FleetUtil()
    with pytest.raises(ValueError, match="not 'x'"):
        FleetUtil("x")
    with pytest.raises(NotImplementedError, match="use LocalFS"):
        BDFS()


def test_local_fs_handles_files_and_folders(tmp_path):
    fs, folder = LocalFS(), str(tmp_path / "a" / "b")
    fs.mkdir(folder)
    (tmp_path / "a" / "file").write_text("x")
    assert fs.list_dirs(str(tmp_path / "a")) == ["b"] and fs.ls_dir(str(tmp_path / "a")) == ["b", "file"]
    fs.mv(str(tmp_path / "a" / "file"), folder + "/file")
    fs.delete(folder + "/file")
    fs.delete(folder)
    fs.delete(folder)
    assert not fs.stat(folder) and fs.ls_dir(folder) == [] and not os.path.exists(folder)
