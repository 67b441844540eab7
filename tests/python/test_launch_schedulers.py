"""--launcher mpi, slurm, sge, yarn and k8s: what --dry_run prints, as goldens in launch_scripts; and mpirun itself.

python tests/python/test_launch_schedulers.py     # writes the goldens
"""

import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest
from launched import TRAIN
from penstock._src.launch.main import main

GOLDENS = pathlib.Path(__file__).with_name("launch_scripts")
LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 180
LINE = [
    "-n",
    "2",
    "-s",
    "2",
    "--job_id",
    "ctr",
    "--env",
    "A=all of it",
    "--env-worker",
    "B:it's",
    "--env-server",
    "C:3",
]
OWN = ["--env", "trainer.1:B=own"]
COMMAND = ["python", "train.py", "--name", "a b", "$HOME"]
SCRIPT = ["--job_id", "ctr", "--server_num", "2", "--worker_num", "3", "train.py", "--name", "a b"]
CHECKPOINTS = ["--checkpoint_dir", "saved", "--checkpoint_steps", "100"]
K8S = ["--launcher", "k8s", "--image", "registry/ctr:1"]
CASES = {
    "local": ["--launcher", "local", *LINE, *COMMAND],
    "ssh": ["-H", "hosts", "--sync-dst-dir", "/data/job", *LINE, *OWN, *COMMAND],
    "ssh_launchers": ["-H", "hosts", *CHECKPOINTS, "--env", "trainer:B=it's", *SCRIPT],
    "mpi": ["--launcher", "mpi", "-H", "hosts", "--submit_option=--oversubscribe", *LINE, *OWN, *COMMAND],
    "mpi_launchers": ["--launcher", "mpi", "-H", "hosts", *SCRIPT],
    "slurm": ["--launcher", "slurm", "--submit_option=--partition=gpu", "--max_restart", "2", *LINE, *COMMAND],
    "slurm_launchers": ["--launcher", "slurm", "--nnodes", "4", *CHECKPOINTS, "--max_restart", "2", *SCRIPT],
    "sge": ["--launcher", "sge", "--submit_option=-q", "--submit_option=all.q", *LINE, *COMMAND],
    "yarn": ["--launcher", "yarn", "--submit_option=-queue", "--submit_option=long", *LINE, *COMMAND],
    "k8s": [*K8S, "--max_restart", "3", *LINE, *COMMAND],
    "k8s_script": [*K8S, *CHECKPOINTS, "--on_trainer_loss", "wait", *SCRIPT],
}  # fmt: skip
OF_JOBS = ("PENSTOCK_", "DMLC_", "PS_", "MXNET_", "FLAGS_", "AWS_", "OMP_", "KMP_", "LD_LIBRARY_PATH", "PADDLE_")
ENVIRONMENT = {"DMLC_NODE_HOST": "10.0.0.9", "HADOOP_HOME": "/opt/hadoop", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}


def printed(name):
    """What --dry_run prints for a case, with stand-ins for what depends on the machine."""
    known = dict(os.environ)
    before = os.getcwd()
    try:
        for variable in [variable for variable in os.environ if variable.startswith(OF_JOBS)]:
            del os.environ[variable]
        os.environ.update(ENVIRONMENT, PENSTOCK_JOB_TOKEN="t0k3n")
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            os.chdir(folder)
            here = os.getcwd()
            pathlib.Path("hosts").write_text("node1\nme@node2:2222\n")
            pathlib.Path("train.py").write_text("")
            assert main(["--dry_run", *CASES[name]]) == 0
            os.chdir(before)
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(known)
    text = out.getvalue().replace(here, "{folder}").replace(sys.executable, "{python}")
    text = re.sub(r"OMP_NUM_THREADS=\d+ ", "", text)
    return re.sub(r"(DMLC_PS_ROOT_PORT=|scheduler 10.0.0.9:)9\d\d\d", r"\g<1>9091", text)


@pytest.mark.parametrize("name", CASES)
def test_dry_run_prints_what_would_run(name):
    text = printed(name)
    assert text == (GOLDENS / f"{name}.txt").read_text()
    assert "t0k3n" not in text and "s3cr3t" not in text


# The JobSet.
def validate(value, schema, path="$"):
    """Raises AssertionError where a value is not what a schema states, in the subset of OpenAPI that CRDs use."""
    kind = schema.get("type")
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    if kind is not None:
        good = isinstance(value, types[kind]) and not (kind == "integer" and isinstance(value, bool))
        assert good, f"{path} is {value!r}, not of type {kind}"
    assert "enum" not in schema or value in schema["enum"], f"{path} is {value!r}, none of {schema['enum']}"
    for name in schema.get("required", []):
        assert name in value, f"{path} has no {name}"
    if kind == "object":
        for name, one in value.items():
            assert name in schema["properties"], f"{path} has an unknown field {name}"
            validate(one, schema["properties"][name], f"{path}.{name}")
    if kind == "array":
        assert len(value) <= schema.get("maxItems", len(value)), f"{path} has {len(value)} items"
        for i, one in enumerate(value):
            validate(one, schema["items"], f"{path}[{i}]")
    if "maxLength" in schema:
        assert len(value) <= schema["maxLength"], f"{path} is too long"
    if kind == "integer":
        assert schema.get("minimum", value) <= value <= schema.get("maximum", value), f"{path} is {value}"


def jobset(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(printed(name))


@pytest.mark.parametrize("name", ["k8s", "k8s_script"])
def test_the_jobset_is_what_the_schema_of_jobset_and_job_states(name):
    schema = json.loads((GOLDENS / "jobset_schema.json").read_text())
    validate(jobset(name), schema)


def test_the_schema_finds_errors():
    schema = json.loads((GOLDENS / "jobset_schema.json").read_text())
    for break_it, error in (
        (lambda job: job["spec"].update(successPolicies={}), "unknown field successPolicies"),
        (lambda job: job["spec"]["successPolicy"].update(operator="Some"), "none of"),
        (lambda job: job["spec"]["replicatedJobs"][0].pop("template"), "has no template"),
        (lambda job: job["spec"]["failurePolicy"].update(maxRestarts="3"), "not of type integer"),
    ):
        value = jobset("k8s")
        break_it(value)
        with pytest.raises(AssertionError, match=error):
            validate(value, schema)


def test_the_jobset_has_succeeded_when_the_trainers_have():
    spec = jobset("k8s_script")["spec"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["trainer"]}
    jobs = {job["name"]: job["template"]["spec"] for job in spec["replicatedJobs"]}
    assert {name: (job["completions"], job["backoffLimitPerIndex"]) for name, job in jobs.items()} == {
        "pserver": (2, 3),
        "trainer": (3, 3),
    }
    (rule,) = jobs["pserver"]["podFailurePolicy"]["rules"]  # codes of signals are left to the limit of restarts
    assert rule["action"] == "FailJob" and rule["onExitCodes"]["operator"] == "NotIn"
    assert {137, 143} < set(rule["onExitCodes"]["values"]) and not {1, 2} & set(rule["onExitCodes"]["values"])


@pytest.mark.parametrize(
    "arguments, error",
    [
        (["--env", "trainer.1:A=2", "train.py"], "--env trainer.1: the pods of a job have one environment"),
        (["--job_id", "CTR_1", "train.py"], "--job_id CTR_1: the name of a JobSet has"),
        ([*CHECKPOINTS, "--server_num", "1", "--max_restart", "1", "train.py"], "--max_restart or --checkpoint_steps"),
        (["-n", "1", "-s", "0", "true"], "--launcher k8s needs servers with -n"),
    ],
)
def test_what_a_jobset_cannot_have_is_refused(arguments, error, capsys):
    assert main([*K8S, "--dry_run", *arguments]) == 2
    assert error in capsys.readouterr().err


def test_words_with_a_dollar_sign_reach_the_process_as_they_are():
    yaml = pytest.importorskip("yaml")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*K8S, "--dry_run", "--env", "A=$(B)", "--worker_num", "1", "train.py", "$(date) $X"]) == 0
    (job,) = yaml.safe_load(out.getvalue())["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1] == "$$(date) $X"  # Kubernetes replaces $(NAME), and makes $$ a $
    assert {"name": "A", "value": "$$(B)"} in container["env"]


# Scripts for the shell.
@pytest.mark.parametrize("name", ["slurm", "slurm_launchers"])
def test_the_script_for_slurm_is_valid_for_bash(name, tmp_path):
    (tmp_path / "script").write_text(printed(name))
    subprocess.run(["bash", "-n", tmp_path / "script"], check=True, timeout=WAIT_S)


SHOW = """
import json, os, sys
name = "-".join(filter(None, [os.environ["DMLC_ROLE"], os.environ.get("DMLC_TASK_ID")]))
with open(name + ".json", "w") as out:
    json.dump({"argv": sys.argv[1:], "environment": dict(os.environ)}, out)
sys.exit(int(os.environ.get("FAILS", "0")))
"""
# Runs both components of a heterogeneous step, as srun does; saves the signals that come.
SRUN = """#!/bin/bash
shift 2
first=() second=() part=first
for word in "$@"; do
  if [ "$word" = : ]; then part=second
  elif [[ "$word" != --het-group* ]]; then declare -n list=$part; list+=("$word"); fi
done
code=0
for rank in 0 1 2; do SLURM_PROCID=$rank "${first[@]}" || code=$?; done
for rank in 3 4; do SLURM_PROCID=$rank "${second[@]}" || code=$?; done
exit $code
"""


def stand_ins(folder, **programs):
    """Returns a PATH on which these programs come first."""
    (folder / "bin").mkdir()
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def shown(folder):
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def run(folder, *arguments, **environment):
    (folder / "job.py").write_text(SHOW)
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PENSTOCK_JOB"))}
    return subprocess.run(
        [*LAUNCH, *arguments],
        cwd=folder,
        env={**known, "DMLC_NODE_HOST": "127.0.0.1", **environment},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )


def test_a_job_of_slurm_has_every_role_once(tmp_path):
    """The script runs with stand-ins for srun and scontrol."""
    path = stand_ins(tmp_path, srun=SRUN, scontrol="#!/bin/sh\necho localhost\n", sbatch='#!/bin/sh\nexec bash "$1"\n')
    done = run(
        tmp_path, "--launcher", "slurm", "-n", "2", "-s", "2", "--env", "trainer.1:B=own", "--env-worker", "B:it's",
        sys.executable, "job.py", "a b", "$HOME", PATH=path, SLURM_JOB_ID="7",
        SLURM_JOB_NODELIST_HET_GROUP_0="localhost",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    roles = shown(tmp_path)
    assert set(roles) == {"scheduler", "server-2", "server-3", "worker-0", "worker-1"}
    assert all(role["argv"] == ["a b", "$HOME"] for role in roles.values())
    environments = {name: role["environment"] for name, role in roles.items()}
    assert (environments["worker-0"]["B"], environments["worker-1"]["B"]) == ("it's", "own")
    assert {one["DMLC_PS_ROOT_URI"] for one in environments.values()} == {"localhost"}
    tokens = {one["PENSTOCK_JOB_TOKEN"] for one in environments.values()}
    assert tokens == {(tmp_path / "mylog" / "job.token").read_text().strip()}
    assert (tmp_path / "mylog" / "job.token").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("first, second", [("USR1", "TERM"), ("TERM", "USR1")])
def test_a_job_that_slurm_is_about_to_end_is_asked_once_and_queued_again(tmp_path, first, second):
    """The stand-in for srun is the launcher: it sends both signals to the script, and ends well when it is asked to."""
    srun = f"""#!/bin/bash
        trap 'echo asked >>asked; [ -e both ] || {{ touch both; kill -{second} $PPID; }}' TERM
        echo $$ >mylog/launcher.pid
        kill -{first} $PPID
        for i in {{1..100000}}; do [ -e both ] && break; done
        for i in {{1..20000}}; do :; done
        exit 0
    """
    path = stand_ins(
        tmp_path, srun=srun, scontrol='#!/bin/sh\necho "$@" >>scontrol\n', sbatch='#!/bin/sh\nexec bash "$1"\n'
    )
    (tmp_path / "saved").mkdir()
    done = run(
        tmp_path, "--launcher", "slurm", *CHECKPOINTS, "--server_num", "1", "job.py", PATH=path, SLURM_JOB_ID="7"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert (tmp_path / "scontrol").read_text() == "requeue 7\n"


def test_a_program_that_takes_jobs_and_is_missing_is_named(tmp_path):
    for launcher, program in (("slurm", "sbatch"), ("sge", "qsub"), ("mpi", "mpirun")):
        done = run(tmp_path, "--launcher", launcher, "-n", "1", "-s", "1", "true", PATH=str(tmp_path))
        assert done.returncode == 2 and f"needs {program}" in done.stderr and "[E-launch-scheduler]" in done.stderr


# MPI.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_ranks_of_mpirun_become_roles(tmp_path):
    line = ["--launcher", "mpi", "--submit_option=--oversubscribe", "-n", "2", "-s", "1"]
    done = run(tmp_path, *line, "--env-worker", "B:x y", sys.executable, "job.py", "a b", "$X", **MPI)
    assert done.returncode == 0, done.stdout + done.stderr
    roles = shown(tmp_path)
    assert set(roles) == {"scheduler", "server-2", "worker-0", "worker-1"}
    assert all(role["argv"] == ["a b", "$X"] for role in roles.values())
    assert roles["worker-1"]["environment"]["B"] == "x y" and "B" not in roles["server-2"]["environment"]
    done = run(tmp_path, *line, "--env", "trainer.1:FAILS=6", sys.executable, "job.py", **MPI)
    assert done.returncode == 6


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_mpirun_starts_launchers(tmp_path):
    (tmp_path / "train.py").write_text("import os, sys\n" + textwrap.dedent(TRAIN))
    done = run(tmp_path, "--launcher", "mpi", "--server_num", "1", "--worker_num", "2", "train.py", "4", **MPI)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job: 1 pservers, 2 trainers: train.py 4" in done.stdout


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for case in CASES:
        (GOLDENS / f"{case}.txt").write_text(printed(case))
