"""What a trainer that ends by an exception tells its parameter servers, and they the other trainers."""

import sys
import traceback

from penstock import _penstock

LINE_MAX = 500
FRAMES_MAX = 3


def _last_line(kind, value):
    lines = ''.join(traceback.format_exception_only(kind, value)).strip().splitlines()
    return (lines[-1] if lines else kind.__name__)[:LINE_MAX]


def _frames(trace):
    """The innermost frames, each a line: "train.py:17 in main: loss = step(batch)"."""
    return ['%s:%s in %s: %s' % (frame.filename, frame.lineno, frame.name, (frame.line or '')[:LINE_MAX])
            for frame in traceback.extract_tb(trace)[-FRAMES_MAX:]]


def tell():
    """At the process's end: tells the servers of the exception that nobody caught, if there was one.

    The interpreter keeps it in sys.last_type and its kin; of sys.exit() it does not. An error of a peer is not told
    back to servers, for that connection is over by then, but to the other ranks, who may wait for this one.
    """
    kind = getattr(sys, 'last_type', None)
    if kind is None:
        return
    if issubclass(kind, _penstock.PeerError):
        _penstock.abandon_rings(str(sys.last_value).partition('\n')[0][:LINE_MAX])
        return
    _penstock.abandon_rpc(_last_line(kind, sys.last_value), _frames(sys.last_traceback),
                          issubclass(kind, KeyboardInterrupt))
