# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.blame import find_cause as find_cause
from penstock.distributed.launch.cause import explain_failure as explain_failure
from penstock.distributed.launch.cause import explain_hang as explain_hang
from penstock.distributed.launch.console import Echo as Echo
from penstock.distributed.launch.errors import JobError as JobError
from penstock.distributed.launch.guard import signal_group as signal_group
from penstock.distributed.launch.logs import last_lines as last_lines
from penstock.distributed.launch.logs import say as say
from penstock.distributed.launch.outcome import Failure as Failure
from penstock.distributed.launch.receipts import read_receipts as read_receipts
from penstock.distributed.launch.receipts import table as table
from penstock.distributed.launch.role_process import describe_end as describe_end
from penstock.distributed.launch.role_process import flight_path as flight_path
from penstock.distributed.launch.role_process import is_stopped as is_stopped
from penstock.distributed.launch.role_process import name_of as name_of
from penstock.distributed.launch.role_process import start as start
from penstock.distributed.launch.traces import merge as merge

ENDED: str
EXIT_NOT_STARTED: int
EXIT_ROLE_FAILED: int
FINISH_S: float
FORWARDED: Any
GRACE_ALONE_S: float
GRACE_S: float
JOB: str
LAST_LINES: int
OWN: str
POLL_S: float
REACTED: str
STOPPED: str
STOPPED_FOR_S: float
STOPPED_LOOK_S: float
class Stop:
    def __init__(self) -> None: ...
    def exit_code(self) -> Any: ...
    def install(self) -> Any: ...
TERM_WAIT_S: float
def run_job(job: Any, stop: Any, cluster: Any, registry: Any, options: Any) -> Any: ...
