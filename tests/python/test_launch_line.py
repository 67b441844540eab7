"""MXNet's command line for its launcher: `penstock-launch -n 2 -s 2 -H hosts --launcher ssh python train.py`.

corpus/kvstore/open/launch.json has what MXNet's own launcher ran for the same arguments. Ours runs the same programs on
the same hosts with the same words and DMLC_* values; where MXNet's has a defect, it does what its user expects.
"""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from penstock._src.launch.backends.addresses import free_port, own_address
from penstock._src.launch.backends.hosts import Host, read_hosts
from penstock._src.launch.errors import JobError
from penstock._src.launch.main import main
from penstock._src.launch.options import parse_options

LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 180
# Errors of MXNet's launcher whose arguments are good: without hosts, mpirun has its own, and SGE's queue has them.
RUNS_HERE = {"mpi", "sge"}
ADDRESS = "10.9.8.7"  # of this machine, as far as the job is concerned


@pytest.fixture
def dry_run(tmp_path, monkeypatch, capsys):
    """Returns what --dry-run prints in the test's folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, **environment):
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            assert main(["--dry-run", *arguments]) == 0
        return capsys.readouterr().out

    return run


def processes(text):
    """The processes that --dry-run prints: [{kind, host, folder, env, argv}]."""
    found = []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        name = re.fullmatch(
            r"# (\w+) (\d+)(?: on (?P<host>this machine|\S+)(?: port (?P<port>\d+))?, in (?P<folder>.*)|, log .*)", line
        )
        if name is None or name[1] not in ("scheduler", "pserver", "trainer"):
            continue
        words = shlex.split(lines[i + 1])
        count = next(k for k, word in enumerate(words) if not re.match(r"\w+=", word))
        host = None if name["host"] in (None, "this machine") else name["host"]
        found.append(
            {
                "kind": name[1],
                "host": host,
                "port": name["port"],
                "folder": name["folder"],
                "env": dict(word.split("=", 1) for word in words[:count]),
                "argv": words[count:],
            }
        )
    return found


def dmlc(environment):
    return {name: value for name, value in environment.items() if name.startswith("DMLC_")}


def of_corpus(run, folder):
    """One run of the corpus in the same form: a process that MXNet's launcher started, directly or through ssh."""
    command = ["python", "train.py"]
    if run["program"] == "command":
        return {"host": None, "port": None, "env": run["env"], "argv": command + run["argv"]}
    *_, host, p, port, line = run["argv"]
    assert run["program"] == "ssh" and p == "-p"
    *settings, where, words = [part.strip() for part in line.split(";")]
    env = dict(setting.removeprefix("export ").split("=", 1) for setting in settings)
    return {"host": host, "port": None if port == "22" else port, "env": env, "argv": words.split(), "cd": where}


def cases(corpus):
    return json.loads((corpus / "kvstore" / "open" / "launch.json").read_text())


def with_numbers(process, ours):
    """MXNet's launcher numbers local processes only; ours numbers all, so that ranks are stable."""
    env = dict(process["env"])
    if "DMLC_TASK_ID" not in env and ours["env"].get("DMLC_TASK_ID") is not None:
        env["DMLC_TASK_ID"] = ours["env"]["DMLC_TASK_ID"]
    return env


def test_the_same_processes_run_on_the_same_hosts_as_with_mxnets_launcher(corpus, tmp_path, dry_run):
    compared = 0
    for case in cases(corpus):
        launcher = parse_options(case["args"]).launcher if "-H" in case["args"] or "local" in case["args"] else "none"
        if launcher not in ("local", "ssh"):
            continue
        (tmp_path / "hosts").write_text(case["hosts"])
        uri = "127.0.0.1" if launcher == "local" else ADDRESS
        root = {} if launcher == "local" else {"DMLC_NODE_HOST": ADDRESS}
        ours = processes(dry_run(*case["args"], **root))
        port = ours[0]["env"]["DMLC_PS_ROOT_PORT"]
        assert 9091 <= int(port) <= 9998
        theirs = [of_corpus(run, tmp_path) for run in case["runs"] if run["program"] != "rsync"]
        assert len(ours) == len(theirs)
        for process in ours:
            role = process["env"]["DMLC_ROLE"]
            wanted = [
                one
                for one in theirs
                if one["env"]["DMLC_ROLE"] == role
                and one["host"] == process["host"]
                and one["env"].get("DMLC_TASK_ID", process["env"].get("DMLC_TASK_ID"))
                == process["env"].get("DMLC_TASK_ID")
            ]
            assert wanted, process
            theirs.remove(wanted[0])
            expected = with_numbers(wanted[0], process)
            expected.update(DMLC_PS_ROOT_URI=uri, DMLC_PS_ROOT_PORT=port)
            assert dmlc(process["env"]) == expected
            assert (process["argv"], process["port"]) == (wanted[0]["argv"], wanted[0]["port"])
            if "cd" in wanted[0]:
                assert f"cd {process['folder']}" == wanted[0]["cd"].replace("{cwd}/", str(tmp_path))
        assert not theirs
        compared += 1
    assert compared == 6


def test_the_folder_is_copied_to_the_hosts_as_by_mxnets_launcher(corpus, tmp_path, dry_run):
    (case,) = [case for case in cases(corpus) if "--sync-dst-dir" in case["args"]]
    (tmp_path / "hosts").write_text(case["hosts"])
    text = dry_run(*case["args"], DMLC_NODE_HOST=ADDRESS)
    ours = {shlex.split(line)[-1]: shlex.split(line) for line in text.splitlines() if line.startswith("rsync")}
    used = {process["host"] for process in processes(text) if process["host"]}
    for run in [run for run in case["runs"] if run["program"] == "rsync"]:
        target = run["argv"][-1]
        if target.partition(":")[0] in used:  # a host without a process needs no copy
            words = ours.pop(target)
            assert words[-2] == f"{tmp_path}/" == run["argv"][-2].replace("{cwd}", str(tmp_path))
            port = re.search(r"-p (\d+)", run["argv"][1])[1]
            assert (f"-p {port} " in " ".join(words)) == (port != "22")
    assert not ours


def test_every_case_of_the_corpus_is_compared_or_is_an_error_of_mxnets_launcher(corpus):
    kinds = ["error" if case["error"] else "mpi" if "mpi" in case["args"] else "run" for case in cases(corpus)]
    assert (kinds.count("run"), kinds.count("mpi"), kinds.count("error")) == (6, 1, 3)


def test_ssh_without_hosts_is_an_error(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["-n", "2", "--launcher", "ssh", "python", "train.py"])
    assert raised.value.code == 2
    assert "--launcher ssh needs -H FILE" in capsys.readouterr().err


# Words.
def test_words_behind_the_options_are_the_command_as_they_are():
    options = parse_options(["-n", "2", "python", "train.py", "-n", "5", "--gpus", "1", "a b", "--", "--x", "--"])
    assert (options.num_workers, options.gpus) == (2, None)
    assert [options.training_script, *options.training_script_args] == [
        "python", "train.py", "-n", "5", "--gpus", "1", "a b", "--", "--x", "--",
    ]  # fmt: skip
    options = parse_options(["-n", "2", "--", "python", "-n", "--", "x"])
    assert [options.training_script, *options.training_script_args] == ["python", "-n", "--", "x"]


def test_settings_of_workers_and_servers_have_either_spelling():
    options = parse_options(["-n", "1", "--env-server", "A:1:2", "--env-worker", "B=3", "--env", "C", "x"])
    assert options.env == [("pserver", None, "A", "1:2"), ("trainer", None, "B", "3"), (None, None, "C", None)]


@pytest.mark.parametrize(
    "words, error",
    [
        (["-n", "0", "x"], "argument -n/--num-workers/--num_workers: '0' is not a count of at least 1"),
        (["-n", "1"], "-n needs a command behind the options"),
        (["-n", "1", "--worker_num", "2", "x"], "-n, the workers of the whole job, and --worker_num exclude"),
        (["-s", "1", "x.py"], "-s needs -n"),
        (["-n", "1", "--scheduler", "slurm", "x"], "-n, which says where the job runs, and --scheduler exclude"),
        (
            ["-H", "hosts", "--nnodes", "2", "x.py"],
            "--launcher ssh, which says where the job runs, and --nnodes exclude",
        ),
        (["--p3", "x.py"], "--p3 needs -n"),
        (["-n", "1", "--env-worker", "A", "x"], "'A' is not NAME:VALUE"),
        (["--env", "A", "x.py"], "argument --env: 'A' is not [pserver:|trainer:|pserver.N:|trainer.N:]NAME=VALUE"),
        (["-n", "1", "--sync-dst-dir", "d", "x"], "--sync-dst-dir copies over ssh"),
        (["-n", "1", "--launcher", "k8s", "x"], "--launcher k8s needs --image NAME"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, error, capsys):
    with pytest.raises(SystemExit) as raised:
        parse_options(words)
    assert raised.value.code == 2 and error in " ".join(capsys.readouterr().err.split())


# Hosts and addresses.
def test_a_file_of_hosts_has_three_forms_of_lines(tmp_path):
    (tmp_path / "hosts").write_text(
        "# all\n10.0.0.1\n\nme@node:2222  # busy\nbig slots=4 max_slots=8\n[::1]:22\nfe80::1\n"
    )
    assert read_hosts(str(tmp_path / "hosts")) == (
        Host("10.0.0.1"), Host("me@node", 2222), Host("big"), Host("::1", 22), Host("fe80::1"),
    )  # fmt: skip
    assert read_hosts(str(tmp_path / "hosts"))[1].address == "node"


@pytest.mark.parametrize("line", ["-oProxyCommand=x", "host:port", "host:0", "host:70000", "a b", ":22", "host cpus=4"])
def test_lines_that_name_no_host_are_refused(tmp_path, line):
    (tmp_path / "hosts").write_text(f"first\n{line}\n")
    with pytest.raises(JobError, match="hosts:2: .* is not a host") as raised:
        read_hosts(str(tmp_path / "hosts"))
    assert raised.value.id == "E-launch-hosts"


def test_a_file_without_hosts_is_refused(tmp_path):
    (tmp_path / "hosts").write_text("# none\n")
    with pytest.raises(JobError, match="names no host"):
        read_hosts(str(tmp_path / "hosts"))
    with pytest.raises(JobError, match="No such file"):
        read_hosts(str(tmp_path / "absent"))


def test_the_address_of_an_interface_is_taken_and_an_unknown_one_refused():
    assert own_address({"DMLC_INTERFACE": "lo"}) == "127.0.0.1"
    assert own_address({"DMLC_INTERFACE": "lo", "DMLC_NODE_HOST": "10.1.1.1"}) == "10.1.1.1"
    with pytest.raises(JobError, match="DMLC_INTERFACE is 'none0', .* are .*lo") as raised:
        own_address({"DMLC_INTERFACE": "none0"})
    assert raised.value.id == "E-launch-address"


def test_two_launchers_get_different_ports_of_mxnets_range():
    ports = [free_port(), free_port()]
    assert ports[0] != ports[1] and all(9091 <= port <= 9998 for port in ports)


# Jobs on this machine.
SHOW = """
import json, os, sys
name = "-".join(filter(None, [os.environ["DMLC_ROLE"], os.environ.get("DMLC_TASK_ID")]))
with open(name + ".json", "w") as out:
    json.dump({"argv": sys.argv[1:], "environment": dict(os.environ)}, out)
print("hello from", name)
sys.exit(int(os.environ.get("FAILS", "0")))
"""


def launch(folder, *arguments, **environment):
    (folder / "job.py").write_text(SHOW)
    done = subprocess.run(
        [*LAUNCH, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    shown = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    return done, shown


def test_a_local_job_has_a_scheduler_servers_and_workers(tmp_path):
    done, shown = launch(
        tmp_path, "-n", "2", "-s", "1", "--env-worker", "ONLY:x y", sys.executable, "job.py", "a b", "$X", "*",
        PS_VERBOSE="2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(shown) == {"scheduler", "server-2", "worker-0", "worker-1"}
    environments = {name: one["environment"] for name, one in shown.items()}
    for name, environment in environments.items():
        assert shown[name]["argv"] == ["a b", "$X", "*"]
        assert (environment["DMLC_NUM_WORKER"], environment["DMLC_NUM_SERVER"]) == ("2", "1")
        assert environment["PS_VERBOSE"] == "2"
        assert environment.get("ONLY") == ("x y" if "worker" in name else None)
    assert len({one["PENSTOCK_JOB_TOKEN"] for one in environments.values()}) == 1
    assert environments["worker-0"]["PENSTOCK_JOB_TOKEN"] not in done.stdout + done.stderr
    assert "[trainer 1] hello from worker-1" in done.stdout


def test_the_exit_code_is_that_of_the_process_that_failed_first(tmp_path):
    done, _ = launch(tmp_path, "-n", "2", "-s", "1", "--env", "trainer.1:FAILS=7", sys.executable, "job.py")
    assert done.returncode == 7
    assert "exited with code 7" in done.stderr and "cause: trainer 1 exited with code 7" in done.stderr
    done, _ = launch(tmp_path, "-n", "1", "-s", "0", "sh -c 'kill -9 $$'")
    assert done.returncode == 137


def test_a_word_with_spaces_alone_is_a_line_for_the_shell(tmp_path):
    done, shown = launch(tmp_path, "-n", "1", "-s", "1", f"{sys.executable} job.py x $WORD", WORD="y z")
    assert done.returncode == 0, done.stderr
    assert shown["worker-0"]["argv"] == ["x", "y", "z"]


def test_workers_without_servers_are_ranks(tmp_path):
    done, shown = launch(tmp_path, "-n", "2", "-s", "0", sys.executable, "job.py")
    assert done.returncode == 0 and set(shown) == {"worker-0", "worker-1"}
    environment = shown["worker-1"]["environment"]
    assert (environment["PADDLE_TRAINER_ID"], environment["RANK"], environment["LOCAL_RANK"]) == ("1", "1", "1")
    assert len(environment["PADDLE_TRAINER_ENDPOINTS"].split(",")) == 2


def test_secrets_are_not_printed(tmp_path, dry_run):
    (tmp_path / "hosts").write_text("node1\nnode2\n")
    secrets = {"AWS_SECRET_ACCESS_KEY": "s3cr3t", "PENSTOCK_JOB_TOKEN": "t0k3n", "AWS_ACCESS_KEY_ID": "k3y"}
    text = dry_run("-n", "1", "-H", "hosts", "python", "x.py", DMLC_NODE_HOST=ADDRESS, **secrets)
    assert "AWS_SECRET_ACCESS_KEY=..." in text
    assert not any(secret in text for secret in secrets.values())


def test_a_variable_that_is_not_set_cannot_be_passed_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "hosts").write_text("node1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DMLC_NODE_HOST", ADDRESS)
    assert main(["-n", "1", "-H", "hosts", "--dry-run", "--env", "NO_SUCH", "python", "x.py"]) == 2
    assert "--env NO_SUCH: this variable is not set" in capsys.readouterr().err
