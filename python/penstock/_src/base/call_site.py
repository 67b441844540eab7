"""Finds the user's line that leads to a call: the nearest frame outside this package."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_is_ours: dict[CodeType, bool] = {}  # code object -> whether it belongs to the package
_text: dict[tuple[CodeType, int], str] = {}  # (code object, line) -> 'train.py:12 in model'


def is_ours(code: CodeType) -> bool:
    """Returns whether a function's code belongs to Penstock."""
    ours = _is_ours.get(code)
    if ours is None:
        ours = _is_ours[code] = os.path.abspath(code.co_filename).startswith(_PACKAGE)
    return ours


def call_site() -> str:
    """Returns 'file:line in function' of the nearest frame outside Penstock; '' if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_ours(code):
            key = (code, frame.f_lineno)
            text = _text.get(key)
            if text is None:
                text = _text[key] = f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
            return text
        frame = frame.f_back
    return ""


def stack_level() -> int:
    """Returns the `stacklevel` with which the caller's warnings.warn names the nearest line outside Penstock."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and is_ours(frame.f_code):
        frame, level = frame.f_back, level + 1
    return level
