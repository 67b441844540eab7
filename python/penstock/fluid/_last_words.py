"""Reports an exception that ends a trainer to its pservers, which pass it on to the other trainers."""

import sys
import traceback

from penstock import _penstock

LINE_MAX = 500
FRAMES_MAX = 3


def _last_line(kind, value):
    lines = ''.join(traceback.format_exception_only(kind, value)).strip().splitlines()
    return (lines[-1] if lines else kind.__name__)[:LINE_MAX]


def _frames(trace):
    """Returns a line for each of the innermost frames: "train.py:17 in main: loss = step(batch)"."""
    return ['%s:%s in %s: %s' % (frame.filename, frame.lineno, frame.name, (frame.line or '')[:LINE_MAX])
            for frame in traceback.extract_tb(trace)[-FRAMES_MAX:]]


def tell():
    """Runs when the process ends: reports an uncaught exception to the pservers.

    The interpreter keeps the exception in sys.last_type and similar variables, except for sys.exit(). An error of a
    peer is not reported to pservers, because the connection to them has already ended, but to the other ranks, which
    may be waiting for this one.
    """
    kind = getattr(sys, 'last_type', None)
    if kind is None:
        return
    if issubclass(kind, _penstock.PeerError):
        _penstock.abandon_rings(str(sys.last_value).partition('\n')[0][:LINE_MAX])
        return
    _penstock.abandon_rpc(_last_line(kind, sys.last_value), _frames(sys.last_traceback),
                          issubclass(kind, KeyboardInterrupt))
