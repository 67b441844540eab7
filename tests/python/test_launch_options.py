"""The launcher's options: machines, restarts, environment, output. Uses real processes if a job runs."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from penstock._src.launch.errors import JobError
from penstock._src.launch.job import free_ports, make_job, make_plan
from penstock._src.launch.options import parse_options
from penstock._src.launch.topology import expand_nodelist, find_topology

LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 180


def launch(folder, *arguments, **environment):
    return subprocess.run(
        [*LAUNCH, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )


def topology(*arguments, **environment):
    return find_topology(parse_options([*arguments, "x.py"]), environment)


def script(folder, text, name="job.py"):
    (folder / name).write_text("import os, sys\n" + text)
    return name


# Which machines there are.
def test_node_rank_and_master_address_identify_a_machine():
    first = topology("--nnodes", "2", "--node_rank", "0", "--master", "127.0.0.1:7000")
    second = topology("--nnodes", "2", "--node_rank", "1", "--master", "127.0.0.1:7000")
    assert first.nodes == second.nodes == ("127.0.0.1", "machine 1")
    assert (first.rank, second.rank, second.here, second.port) == (0, 1, "127.0.0.1", 7000)
    assert second.on_loopback()


def test_slurm_variables_name_the_machines():
    found = topology("--scheduler", "slurm", SLURM_JOB_NODELIST="node[08-10],login", SLURM_NODEID="2")
    assert found.nodes == ("node08", "node09", "node10", "login") and found.here == "node10"
    assert expand_nodelist("a[1,3-4]b,c") == ["a1b", "a3b", "a4b", "c"]


@pytest.mark.parametrize(
    "variables", [{"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "1"}, {"PMI_SIZE": "3", "PMI_RANK": "1"}]
)
def test_mpi_variables_count_the_machines(variables):
    found = topology("--scheduler", "mpi", "--master", "127.0.0.1", **variables)
    assert (len(found.nodes), found.rank, found.port) == (3, 1, None)


def test_torch_variables_name_the_first_machine():
    found = topology("--scheduler", "torch", WORLD_SIZE="2", RANK="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="7001")
    assert (found.nodes[0], found.rank, found.port) == ("127.0.0.1", 1, 7001)


@pytest.mark.parametrize(
    "arguments, environment, message",
    [
        (["--nnodes", "2", "--node_rank", "2", "--master", "127.0.0.1"], {}, "this machine's number is 2"),
        (["--nnodes", "2", "--node_rank", "1"], {}, "give --master"),
        (["--nnodes", "2", "--cluster_node_ips", "127.0.0.1"], {}, "give only one of them"),
        (["--scheduler", "slurm"], {}, "SLURM_JOB_NODELIST"),
        (["--scheduler", "slurm"], {"SLURM_JOB_NODELIST": "a,b", "SLURM_NODEID": "2"}, "the list has 2 hosts"),
        (["--scheduler", "mpi"], {}, "mpirun"),
        (["--scheduler", "torch"], {"WORLD_SIZE": "0", "RANK": "0"}, "at least 1"),
        (["--master", "127.0.0.1"], {}, "--nnodes"),
        (["--use_paddlecloud"], {}, "PADDLE_TRAINERS"),
    ],
)
def test_invalid_machines_are_refused(arguments, environment, message):
    with pytest.raises(JobError, match=message):
        topology(*arguments, **environment)


def test_fluids_cloud_variables_name_the_pservers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = parse_options(["--use_paddlecloud", "--token_file", "token", script(tmp_path, "")])
    (tmp_path / "token").write_text("secret\n")
    plan = make_plan(
        options,
        {
            "PADDLE_TRAINERS": "10.0.0.1,10.0.0.2",
            "PADDLE_PSERVERS": "10.0.0.2",
            "POD_IP": "10.0.0.2",
            "PADDLE_PORT": "6200",
            "PADDLE_NUM_TRAINERS": "2",
        },
    )
    assert plan.own.pservers == ("10.0.0.2:6200",) and plan.own.endpoints == ("10.0.0.2:6200",)
    assert plan.own.trainers == ("10.0.0.2:6200",)


def test_a_job_of_two_counted_machines_trains(tmp_path):
    port = free_ports(1)[0]
    text = "print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
    name = script(tmp_path, text)
    machines = [
        subprocess.Popen(
            [
                *LAUNCH,
                "--nnodes",
                "2",
                "--node_rank",
                str(rank),
                "--master",
                f"127.0.0.1:{port}",
                "--started_port",
                str(free_ports(1)[0]),
                "--log_dir",
                f"log{rank}",
                name,
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    outputs = [machine.communicate(timeout=WAIT_S)[0] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], outputs
    assert (tmp_path / "log1" / "workerlog.1").read_text() == "rank 1 of 2\n"


# Environment.
def test_variables_of_one_role_override_those_of_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["trainer.1:A=2", "A=0", "trainer:A=1", "pserver:B=b=c"]
    asked = [part for one in given for part in ("--env", one)]
    options = parse_options(["--server_num", "1", "--worker_num", "2", *asked, script(tmp_path, "")])
    plan = make_plan(options, {})
    server, first, second = (role.environment for role in make_job(plan, (plan.own,)).roles)
    assert (server["A"], first["A"], second["A"]) == ("0", "1", "2")
    assert server["B"] == "b=c" and "B" not in first
    assert (second["RANK"], second["WORLD_SIZE"], second["LOCAL_RANK"]) == ("1", "2", "1")
    assert server["PADDLE_PSERVERS"] == second["PADDLE_PSERVERS"] == "127.0.0.1"


def test_an_invalid_env_option_is_refused(tmp_path):
    result = launch(tmp_path, "--env", "worker:A=1", script(tmp_path, ""))
    assert result.returncode == 2 and "'worker:A=1' is not [pserver:" in result.stderr


# What runs, and how often.
def test_a_module_is_run_as_python_runs_it(tmp_path):
    script(tmp_path, "print(__name__, sys.argv[1:])", "mod.py")
    result = launch(tmp_path, "-m", "mod", "--lr", "1")
    assert result.returncode == 0, result.stderr
    assert "__main__ ['--lr', '1']" in result.stdout


RESTARTS = """
attempt = os.environ['PENSTOCK_RESTART_COUNT']
print('attempt', attempt)
sys.exit(0 if attempt == '2' and %s else 3)
"""


def test_a_failed_job_is_restarted(tmp_path):
    name = script(tmp_path, RESTARTS % "True")
    result = launch(tmp_path, "--max_restart", "3", name)
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if line.startswith("attempt")] == [
        "attempt 0",
        "attempt 1",
        "attempt 2",
    ]
    assert result.stderr.count("starting the job again") == 2
    assert (tmp_path / "mylog" / "workerlog.0").read_text().count("launch: attempt") == 2


def test_a_job_that_fails_after_each_restart_fails(tmp_path):
    result = launch(tmp_path, "--max_restart", "1", script(tmp_path, RESTARTS % "False"))
    assert result.returncode == 1 and result.stderr.count("starting the job again") == 1


# What is shown.
def test_console_all_prefixes_the_output_of_every_role(tmp_path):
    name = script(tmp_path, "print('one'); sys.stdout.write('no newline')")
    result = launch(tmp_path, "--worker_num", "2", "--console", "all", name)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    for rank in (0, 1):
        assert f"[trainer {rank}] one" in lines and f"[trainer {rank}] no newline" in lines


def test_a_dry_run_starts_nothing(tmp_path):
    name = script(tmp_path, "open('ran', 'w')")
    result = launch(
        tmp_path,
        "--server_num",
        "1",
        "--worker_num",
        "1",
        "--dry_run",
        "--env",
        "A=b c",
        name,
        PENSTOCK_JOB_TOKEN="do not show this",
    )
    assert result.returncode == 0
    assert "A='b c'" in result.stdout and "TRAINING_ROLE=PSERVER" in result.stdout
    assert "do not show" not in result.stdout
    assert not (tmp_path / "ran").exists() and not (tmp_path / "mylog").exists()


@pytest.mark.parametrize("servers, workers", [(1, 2), (2, 1), (64, 3)])
def test_roles_of_a_kind_share_the_cores(tmp_path, monkeypatch, servers, workers):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    result = launch(
        tmp_path,
        "--server_num",
        str(servers),
        "--worker_num",
        str(workers),
        "--dry_run",
        "--env",
        "trainer.0:OMP_NUM_THREADS=7",
        script(tmp_path, ""),
    )
    cores = len(os.sched_getaffinity(0))
    given = [
        re.search(r"OMP_NUM_THREADS=(\d+)", line).group(1)
        for line in result.stdout.splitlines()
        if "OMP_NUM_THREADS" in line
    ]
    of = [max(1, cores // servers)] * servers + [7] + [max(1, cores // workers)] * (workers - 1)
    assert given == [str(each) for each in of]


def test_an_explicit_number_of_threads_is_kept(tmp_path):
    result = launch(tmp_path, "--worker_num", "2", "--dry_run", script(tmp_path, ""), OMP_NUM_THREADS="5")
    assert result.returncode == 0 and "OMP_NUM_THREADS" not in result.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_options(tmp_path, shell):
    result = launch(tmp_path, "--completion", shell)
    assert result.returncode == 0 and "--max_restart" in result.stdout
    if shutil.which(shell):
        (tmp_path / "completion").write_text(result.stdout)
        assert subprocess.run([shell, "-n", "completion"], cwd=tmp_path).returncode == 0


def test_bash_completes_an_option(tmp_path):
    (tmp_path / "completion").write_text(launch(tmp_path, "--completion", "bash").stdout)
    ask = (
        "source ./completion; COMP_WORDS=(penstock-launch --hang); COMP_CWORD=1; _penstock_launch; "
        'echo "${COMPREPLY[@]}"'
    )
    shown = subprocess.run(["bash", "-c", ask], cwd=tmp_path, text=True, capture_output=True)
    assert shown.stdout.strip() == "--hang_timeout"
