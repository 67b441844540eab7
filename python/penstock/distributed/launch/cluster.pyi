# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.distributed.launch.channel import Channel as Channel
from penstock.distributed.launch.channel import ChannelError as ChannelError
from penstock.distributed.launch.channel import connect as connect
from penstock.distributed.launch.channel import is_proof as is_proof
from penstock.distributed.launch.channel import new_nonce as new_nonce
from penstock.distributed.launch.channel import proof as proof
from penstock.distributed.launch.channel import wait_for as wait_for
from penstock.distributed.launch.logs import say as say
from penstock.distributed.launch.messages import Facts as Facts
from penstock.distributed.launch.messages import read_event as read_event
from penstock.distributed.launch.messages import read_facts as read_facts
from penstock.distributed.launch.messages import read_member as read_member

BEAT_S: float
class Cluster:
    def __init__(self, nodes: Any, rank: Any, channels: Any) -> None: ...
    def all_over(self) -> Any: ...
    def leave(self) -> Any: ...
    def pump(self) -> Any: ...
    def start_beating(self) -> Any: ...
    def tell(self, event: Any) -> Any: ...
HELLO_S: float
class JoinError(Exception):
    def __getattr__(self, name: str) -> Any: ...
LEAVE_S: float
PENDING_MAX: int
POLL_S: float
REFUSALS_TOLD_MAX: int
REPORT_EVERY_S: float
class Stopped(Exception):
    def __getattr__(self, name: str) -> Any: ...
def join(plan: Any, port: Any, wait_s: Any, stopped: Any) -> Any: ...
