"""Names of launching and Fleet that scripts for Fluid use: launch variables, paddle.distributed, fleet.utils."""

import http.client
import subprocess
import sys
import types
import urllib.error
import urllib.request

import penstock
import pytest
from penstock._src.launch.job import make_job, make_plan
from penstock._src.launch.options import parse_options


def roles(tmp_path, monkeypatch, *arguments, **environment):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    plan = make_plan(parse_options([*arguments, "train.py"]), environment)
    return [(role.kind, role.address, role.environment) for role in make_job(plan, (plan.own,)).roles]


def test_every_role_receives_the_common_pserver_port(tmp_path, monkeypatch):
    (_, server, served), (_, _, trained) = roles(tmp_path, monkeypatch, "--server_num", "1", "--worker_num", "1")
    port = server.rpartition(":")[2]
    for role in (served, trained):
        assert role["PADDLE_PORT"] == role["PADDLE_PSERVER_PORT"] == port
        assert role["PADDLE_PSERVERS"] == role["PADDLE_PSERVER_IPS"] == role["PADDLE_TRAINER_IPS"] == "127.0.0.1"
        assert role["PADDLE_CURRENT_IP"] == role["POD_IP"] == "127.0.0.1"
        assert role["PADDLE_TRAINERS"] == role["PADDLE_TRAINERS_NUM"] == role["TRAINER_PORTS_NUM"] == "1"
        assert role["DISTRIBUTED_TRAINER_ENDPOINTS"] == role["PADDLE_TRAINER_ENDPOINTS"]


def test_pservers_with_different_ports_set_no_common_port(tmp_path, monkeypatch):
    made = roles(tmp_path, monkeypatch, "--server_num", "2", "--worker_num", "1")
    for kind, address, role in made:
        own = {address.rpartition(":")[2]} if kind == "pserver" else set()
        assert {role[name] for name in ("PADDLE_PORT", "PADDLE_PSERVER_PORT") if name in role} == own
        assert role["PADDLE_PSERVERS"] == "127.0.0.1,127.0.0.1"


def test_one_pserver_per_machine_uses_one_port(tmp_path, monkeypatch):
    made = roles(tmp_path, monkeypatch, "--endpoints", "127.0.0.2:6200,127.0.0.1:6200", "--worker_num", "1")
    assert {role["PADDLE_PORT"] for _, _, role in made} == {"6200"}


def test_paddlecloud_roles_do_not_receive_paddle_trainers(tmp_path, monkeypatch):
    made = roles(
        tmp_path,
        monkeypatch,
        "--use_paddlecloud",
        "--worker_num",
        "1",
        PADDLE_TRAINERS="127.0.0.1",
        PADDLE_PSERVERS="127.0.0.1",
        POD_IP="127.0.0.1",
        PADDLE_PORT="6300",
    )
    assert all("PADDLE_TRAINERS" not in role for _, _, role in made)


def transpiled(fluid, pservers, **kwargs):
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1)))
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=pservers, trainers=2, **kwargs)
    return t


def test_mismatched_pserver_lists_are_reported(fluid, monkeypatch, capfd):
    monkeypatch.setenv("PADDLE_PSERVER_ENDPOINTS", "127.0.0.1:4001,127.0.0.1:4002")
    with pytest.raises(penstock.ProgramError, match="listed twice") as caught:
        transpiled(fluid, "127.0.0.1:6174,127.0.0.1:6174")
    assert caught.value.id == "E-plan-pserver-dup"
    assert "note: the launcher has started pservers at 127.0.0.1:4001, 127.0.0.1:4002" in str(caught.value)
    transpiled(fluid, "127.0.0.1:4001,127.0.0.1:6174")
    assert "no pserver was started at 127.0.0.1:6174: the launcher has started" in capfd.readouterr().err
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        transpiled(fluid, "127.0.0.1:4002,127.0.0.1:4001")
    assert "no pserver was started" not in capfd.readouterr().err


def test_geo_mode_returns_the_trainers_startup_program(fluid):
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1)))
    t = fluid.transpiler.GeoSgdTranspiler()
    t.transpile(0, pservers="127.0.0.1:6174", trainers=2)
    assert t.trainer_startup_program is fluid.default_startup_program()


def test_fleet_reports_its_implementation():
    from penstock.fluid.incubate.fleet.parameter_server import version

    assert version.is_transpiler() and version.BUILD_MODE == 1


CLUSTER = """
import os, sys, logging
from paddle.distributed.utils import *
from paddle.distributed import cloud_utils, fs_wrapper, utils
cluster, pod = utils.get_cluster(['a', 'b'], 'b', [['a:1', 'a:2'], ['b:1', 'b:2']], [0, 1])
assert cluster.trainers_endpoints() == ['a:1', 'a:2', 'b:1', 'b:2'] and cluster.trainers_nranks() == 4
assert pod.rank == 1 and [t.rank for t in pod.trainers] == [2, 3]
other, _ = utils.get_cluster(['a', 'b'], 'b', [['a:1', 'a:2'], ['b:1', 'b:2']], [0, 1])
assert cluster == other and cluster.get_pod_by_id(5) is None
other.pods[0].trainers[0].endpoint = 'a:9'
assert cluster != other
os.environ.update(PADDLE_TRAINERS='a,b', POD_IP='a', PADDLE_TRAINER_ID='0', TRAINER_PORTS_NUM='2', PADDLE_PORT='7000')
cluster, pod = cloud_utils.get_cloud_cluster('127.0.0.1', '127.0.0.1', None, [0, 1])
assert cluster.trainers_endpoints() == ['a:7000', 'a:7001', 'b:7000', 'b:7001'] and pod.addr == 'a'
os.environ['DISTRIBUTED_TRAINER_ENDPOINTS'] = 'a:1,a:2,b:3,b:4'
cluster, pod = cloud_utils.get_cloud_cluster('127.0.0.1', '127.0.0.1', None, [0])
assert cluster.trainers_endpoints() == ['a:1', 'b:3'] and cloud_utils.get_trainers_num() == 1
files = fs_wrapper.LocalFS()
files.mkdir('d'); assert files.stat('d') and files.list_dirs('.') == ['d']
assert len(utils.find_free_ports(3)) == 3 and utils.get_logger(logging.INFO, 'x').level == logging.INFO
ports = sorted(utils.find_free_ports(2))
cluster, pod = utils.get_cluster(['127.0.0.1'], '127.0.0.1', [['127.0.0.1:%d' % p for p in ports]], [0, 1])
procs = utils.start_local_trainers(cluster, pod, sys.argv[1], ['x'], log_dir='log')
while utils.watch_local_trainers(procs, 2):
    procs[0].proc.wait()
utils.terminate_local_procs(procs)
assert open('log/workerlog.1').read() == '1 of 2 x\\n', open('log/workerlog.1').read()
"""


def test_scripts_can_start_their_own_trainers(tmp_path):
    (tmp_path / "cluster.py").write_text(CLUSTER)
    (tmp_path / "trainer.py").write_text(
        'import os, sys\nprint(os.environ["PADDLE_TRAINER_ID"], "of", os.environ["PADDLE_TRAINERS_NUM"], sys.argv[1])'
    )
    done = subprocess.run(
        [sys.executable, "-m", "penstock.compat", "cluster.py", "trainer.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_fleet_utils_check_saved_programs(fluid, tmp_path):
    from penstock.fluid.incubate.fleet.utils import utils

    y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, bias_attr=False)
    main = fluid.default_main_program()
    for text in (False, True):
        utils.save_program(main, str(tmp_path / "main"), is_text=text)
        assert str(utils.load_program(str(tmp_path / "main"), is_text=text)) == str(main)
    utils.save_program(main, str(tmp_path / "main"))
    assert utils.program_type_trans(str(tmp_path), "main", False) == "main.pbtxt"
    assert utils.program_type_trans(str(tmp_path), "main.pbtxt", True) == "main.pbtxt.bin"
    assert utils.load_program(str(tmp_path / "main.pbtxt.bin")).desc.to_text() == main.desc.to_text()
    other = main.clone()
    other.global_block().var("fc_0.w_0").shape = (4, 3)
    assert utils.check_pruned_program_vars(main, main.clone()) and not utils.check_pruned_program_vars(main, other)
    utils.parse_program(main, str(tmp_path))
    assert "'fc_0.w_0'" in (tmp_path / "vars_persistable.log").read_text()
    assert "'mul'" in (tmp_path / "ops.log").read_text()
    utils.graphviz(main.global_block(), str(tmp_path))
    assert (tmp_path / "debug.dot").exists()

    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
    (tmp_path / "numbers").write_text(" ".join(map(str, range(8))) + "\n")
    for files in ([], [str(tmp_path / "numbers")]):
        feed = types.SimpleNamespace(
            feeded_vars_names=["x"], feeded_vars_dims=[4], feeded_vars_types=["float32"], feeded_vars_filelist=files
        )
        fetch = types.SimpleNamespace(fetch_vars_names=None)
        (result,) = utils.check_saved_vars_try_dump(str(tmp_path / "model"), "__model__", False, feed, fetch, 2)
        assert result.shape == (2, 2)
    feed.feeded_vars_dims = [5]
    with pytest.raises(RuntimeError, match="feed variable 'x': the program declares the shape"):
        utils.check_saved_vars_try_dump(str(tmp_path / "model"), "__model__", False, feed, fetch, 2)


def test_kv_server_stores_values_over_http():
    from penstock.fluid.incubate.fleet.utils.http_server import KVServer

    server = KVServer(0, {"job": 1})
    server.start()
    address = f"http://127.0.0.1:{server.http_server.server_address[1]}/"

    def ask(method, path, data=None):
        try:
            with urllib.request.urlopen(urllib.request.Request(address + path, data, method=method), timeout=30) as got:
                return got.status, got.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    try:
        assert ask("GET", "job/a") == (404, b"")
        assert ask("PUT", "job/a", b"value") == (200, b"")
        assert ask("GET", "job/a") == (200, b"value")
        assert ask("GET", "job") == (400, b"")
        large = http.client.HTTPConnection(*server.http_server.server_address, timeout=30)
        large.putrequest("PUT", "/job/b")
        large.putheader("Content-Length", str(2 << 20))
        large.endheaders()
        assert large.getresponse().status == 413
        large.close()
        assert not server.should_stop()
        assert ask("DELETE", "job/a") == (200, b"") and server.should_stop() and server.shoud_stop()
    finally:
        server.stop()
    KVServer(0).stop()  # one that was not started
