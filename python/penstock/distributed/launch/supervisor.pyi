# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.cause import explain_failure as explain_failure
from penstock.distributed.launch.cause import explain_hang as explain_hang
from penstock.distributed.launch.console import Echo as Echo
from penstock.distributed.launch.flight import Flight as Flight
from penstock.distributed.launch.guard import die_with_parent as die_with_parent
from penstock.distributed.launch.guard import signal_group as signal_group
from penstock.distributed.launch.outcome import Failure as Failure
from penstock.distributed.launch.outcome import Notes as Notes
from penstock.distributed.launch.outcome import last_lines as last_lines
from penstock.distributed.launch.outcome import pick_cause as pick_cause
from penstock.distributed.launch.receipts import path_of as path_of
from penstock.distributed.launch.receipts import read_receipts as read_receipts
from penstock.distributed.launch.receipts import table as table

ENDED: str
EXIT_ROLE_FAILED: int
FINISH_S: float
FORWARDED: Any
JOB: str
LAST_LINES: int
OWN: str
POLL_S: float
REACTED: str
class Stop:
    def __init__(self) -> None: ...
    def exit_code(self) -> Any: ...
    def install(self) -> Any: ...
TERM_WAIT_S: float
def run_job(job: Any, stop: Any, cluster: Any, registry: Any, options: Any) -> Any: ...
