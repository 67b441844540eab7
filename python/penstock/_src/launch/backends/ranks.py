"""The command by which a process that mpirun, srun or an array of tasks has started becomes a role: text for sh, so the
machines need nothing else."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from penstock._src.launch.backends.tasks import DMLC_ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock._src.launch.backends.tasks import Line


def exports(variables: Mapping[str, str]) -> str:
    """Returns an sh command that exports the variables; "" without any."""
    pairs = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items()))
    return f"export {pairs}" if pairs else ""


def _role(line: Line, kind: str, first: int) -> str:
    """Returns the commands of a process of this kind, whose rank is $r; the first of the kind has rank `first`."""
    offset = first - (line.workers if kind == "pserver" else 0)
    number = f" DMLC_TASK_ID=$((r - {offset}))" if offset >= 0 else f" DMLC_TASK_ID=$((r + {-offset}))"
    parts = [f"export DMLC_ROLE={DMLC_ROLES[kind]}{'' if kind == 'scheduler' else number}"]
    general = line.given_for(kind)
    if general:
        parts.append(exports(general))
    for i in range(_count(line, kind)):
        special = {name: value for name, value in line.given_for(kind, i).items() if general.get(name) != value}
        if special:
            parts.append(f'if [ "$r" -eq {first + i} ]; then {exports(special)}; fi')
    return "; ".join(parts)


def _count(line: Line, kind: str) -> int:
    return {"scheduler": 1, "pserver": line.servers, "trainer": line.workers}[kind]


def role_command(line: Line, variables: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the command of each process: it sets the variables of its rank's role, and runs the job's command.

    variables  of which the first that is set is the rank
    kinds      in the order of ranks; all processes of the first one come first
    """
    rank = ""
    for name in reversed(variables):
        rank = f"${{{name}{f'-{rank}' if rank else '-'}}}"
    unset = f"neither {' nor '.join(variables)} is set" if len(variables) > 1 else f"{variables[0]} is not set"
    refusal = f'{{ echo "penstock: {unset}" >&2; exit 2; }}'
    choice: list[str] = []
    first = 0
    for kind in kinds:
        last = kind == kinds[-1]
        count = _count(line, kind)
        test = "" if last else f'[ "$r" -lt {first + count} ]; then '
        choice.append(("else " if last and choice else "elif " if choice else "if ") + test + _role(line, kind, first))
        first += count
    body = "; ".join(choice) + "; fi" if len(kinds) > 1 else _role(line, kinds[0], 0)
    return ("sh", "-c", f'r={rank}; [ -n "$r" ] || {refusal}; {body}; exec "$@"', "role", *line.command)
