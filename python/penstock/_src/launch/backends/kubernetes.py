"""--launcher k8s: a JobSet (jobset.x-k8s.io/v1alpha2) with a job for each kind of role.

The job has succeeded when all trainers have. Exit codes decide what a failed process means (EXIT_CODES): one that ended
by an error of its own fails the JobSet at once, because the error would come again; one that a signal or its node ended
is started again by itself if the job can continue with it, as the launcher does on one machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock._src.launch.backends.local import line_settings
from penstock._src.launch.backends.tasks import DMLC_ROLES, SECRETS, make_line, passed_on
from penstock._src.launch.errors import JobError
from penstock._src.launch.job import PSERVER_PORT, TRAINER_PORT

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from typing import Any

    from penstock._src.launch.backends.tasks import Line

    Yaml = dict[str, Any]


ROOT_PORT = 9091
# 128 + a signal: the process was ended from outside. Every other code but 0 is an error of its own.
SIGNALLED = [129, 130, 131, 134, 135, 137, 139, 141, 143]
TOKEN_KEY = "token"
NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")


def _name(options: Namespace) -> str:
    name = str(options.job_id or "penstock")
    if not NAME.fullmatch(name):
        raise JobError(
            f"--job_id {name}: the name of a JobSet has at most 40 lower-case letters, digits and hyphens, and begins "
            "with a letter"
        )
    return name


def _host(name: str, kind: str, index: int) -> str:
    """Returns the host name of a process: JobSet's headless service has one for each pod."""
    return f"{name}-{kind}-0-{index}.{name}"


def _literal(value: str) -> str:
    """Returns a value in which Kubernetes replaces no $(NAME)."""
    return value.replace("$(", "$$(")


def _field(name: str, path: str) -> Yaml:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _variables(name: str, settings: Mapping[str, str], own: list[Yaml]) -> list[Yaml]:
    token = {"secretKeyRef": {"name": f"{name}-token", "key": TOKEN_KEY}}
    return [
        {"name": "PENSTOCK_JOB_TOKEN", "valueFrom": token},
        _field("PENSTOCK_RESTART_COUNT", "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"),
        _field("INDEX", "metadata.annotations['batch.kubernetes.io/job-completion-index']"),
        *({"name": key, "value": _literal(value)} for key, value in sorted(settings.items()) if key not in SECRETS),
        *own,
    ]


def _job(options: Namespace, kind: str, count: int, restarts: int, command: list[str], variables: list[Yaml]) -> Yaml:
    """Returns the job of one kind; `restarts`: how often each of its processes may be started again by itself."""
    codes = {"containerName": kind, "operator": "NotIn", "values": SIGNALLED}
    rules: list[Yaml] = [{"action": "FailJob", "onExitCodes": codes}]
    if not restarts:
        rules.append({"action": "FailJob", "onExitCodes": {**codes, "operator": "In"}})
    count_of = "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"
    own = [*variables, _field("PENSTOCK_ROLE_RESTART_COUNT", count_of)]
    container = {"name": kind, "image": options.image, "command": [_literal(word) for word in command], "env": own}
    return {
        "name": kind,
        "replicas": 1,
        "template": {
            "spec": {
                "parallelism": count,
                "completions": count,
                "completionMode": "Indexed",
                "backoffLimitPerIndex": restarts,
                "podFailurePolicy": {"rules": rules},
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            }
        },
    }


def _jobset(options: Namespace, name: str, jobs: list[Yaml]) -> Yaml:
    own_error = {"name": "own-error", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": name, "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["trainer"]},
            "failurePolicy": {
                "maxRestarts": options.max_restart,
                **({} if options.max_restart else {"rules": [own_error]}),
            },
            "replicatedJobs": jobs,
        },
    }


def _line_jobs(options: Namespace, line: Line, name: str) -> list[Yaml]:
    jobs = []
    common = {**line.shared(), "DMLC_PS_ROOT_URI": _host(name, "scheduler", 0), "DMLC_PS_ROOT_PORT": str(ROOT_PORT)}
    for kind, count in (("scheduler", 1), ("pserver", line.servers), ("trainer", line.workers)):
        settings = {**common, **line.given_for(kind), "DMLC_ROLE": DMLC_ROLES[kind]}
        own: list[Yaml] = []
        command = list(line.command)
        if kind != "scheduler":
            settings["DMLC_JOB_CLUSTER"] = "k8s"
            own.append({"name": "DMLC_NODE_HOST", "value": f"{name}-{kind}-0-$(INDEX).{name}"})
            first = f"$((INDEX + {line.workers}))" if kind == "pserver" else "$INDEX"
            command = ["sh", "-c", f'export DMLC_TASK_ID={first}; exec "$@"', "role", *command]
        restarts = _restarts(options, kind)
        jobs.append(_job(options, kind, count, restarts, command, _variables(name, settings, own)))
    return jobs


def _restarts(options: Namespace, kind: str) -> int:
    """Returns how often the processes of a kind may be started again by themselves."""
    limit = 3 if options.max_role_restart is None else int(options.max_role_restart)
    if kind == "pserver":
        return limit if options.checkpoint_steps else 0
    if kind == "scheduler":
        return limit
    return limit if options.on_trainer_loss in ("wait", "shrink") else 0


def _script_jobs(options: Namespace, settings: dict[str, str], name: str) -> list[Yaml]:
    """Returns the jobs of a script that reads its role from TRAINING_ROLE: a process in each pod, no launcher."""
    servers, trainers = options.server_num or 0, options.worker_num or 1
    lists = {
        "pserver": ",".join(f"{_host(name, 'pserver', i)}:{PSERVER_PORT}" for i in range(servers)),
        "trainer": ",".join(f"{_host(name, 'trainer', i)}:{TRAINER_PORT}" for i in range(trainers)),
    }
    common = {
        **settings,
        "PADDLE_TRAINERS_NUM": str(trainers),
        "PADDLE_PSERVERS_IP_PORT_LIST": lists["pserver"],
        "PADDLE_TRAINER_ENDPOINTS": lists["trainer"],
        "WORLD_SIZE": str(trainers),
        "MASTER_ADDR": _host(name, "trainer", 0),
        "MASTER_PORT": str(TRAINER_PORT),
    }
    script = ["-m", options.training_script] if options.module else [options.training_script]
    command = [options.remote_python or "python3", "-u", *script, *options.training_script_args]
    jobs = []
    for kind, count, port in (("pserver", servers, PSERVER_PORT), ("trainer", trainers, TRAINER_PORT)):
        if not count:
            continue
        role = {"pserver": "PSERVER", "trainer": "TRAINER"}[kind]
        given = {n: value for k, i, n, value in options.env if k in (None, kind) and i is None and value is not None}
        names = {"pserver": ["PADDLE_PSERVER_ID"], "trainer": ["PADDLE_TRAINER_ID", "RANK"]}[kind]
        own = [{"name": one, "value": "$(INDEX)"} for one in names]
        host = f"{name}-{kind}-0-$(INDEX).{name}"
        own += [{"name": "PADDLE_CURRENT_ENDPOINT", "value": f"{host}:{port}"}, {"name": "POD_IP", "value": host}]
        own.append({"name": "PADDLE_PORT", "value": str(port)})
        roles = {"TRAINING_ROLE": role, "PADDLE_TRAINING_ROLE": role}
        variables = _variables(name, {**common, **roles, **given}, own)
        jobs.append(_job(options, kind, count, _restarts(options, kind), command, variables))
    return jobs


def jobset(options: Namespace, environment: Mapping[str, str]) -> Yaml:
    """Returns the JobSet as data; raises JobError. The key `token` of the secret NAME-token holds the job's token."""
    special = [f"{kind}.{number}" for kind, number, _, value in options.env if number is not None]
    if special:
        raise JobError(f"--env {special[0]}: the pods of a job have one environment; give the variable to all of them")
    if options.max_restart and options.checkpoint_steps:
        raise JobError(
            "--launcher k8s takes --max_restart or --checkpoint_steps: a JobSet that is started again does not look "
            "for its newest checkpoint; start the job again with --resume",
            "E-checkpoint-mode",
        )
    name = _name(options)
    passed = passed_on(environment, [one for _, _, one, value in options.env if value is None])
    named = {one: passed[one] for _, _, one, value in options.env if value is None}
    settings = {**line_settings(options, environment), "PENSTOCK_JOB_ID": name, **named}
    if options.num_workers is None:
        return _jobset(options, name, _script_jobs(options, settings, name))
    line = make_line(options, environment, settings, root=("", 0))
    if not line.servers:
        raise JobError("--launcher k8s needs servers with -n; give ranks by --worker_num, without -n")
    return _jobset(options, name, _line_jobs(options, line, name))
