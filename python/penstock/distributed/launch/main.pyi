# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.cluster import JoinError as JoinError
from penstock.distributed.launch.cluster import Stopped as Stopped
from penstock.distributed.launch.cluster import join as join
from penstock.distributed.launch.errors import JobError as JobError
from penstock.distributed.launch.guard import run_guarded as run_guarded
from penstock.distributed.launch.job import make_job as make_job
from penstock.distributed.launch.job import make_plan as make_plan
from penstock.distributed.launch.logs import say as say
from penstock.distributed.launch.messages import Facts as Facts
from penstock.distributed.launch.options import parse_options as parse_options
from penstock.distributed.launch.supervisor import Stop as Stop
from penstock.distributed.launch.supervisor import run_job as run_job
from penstock.distributed.launch.traces import clear as clear

EXIT_BAD_INPUT: int
EXIT_ROLE_FAILED: int
def command() -> Any: ...
def main(argv: Any) -> Any: ...
