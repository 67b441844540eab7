"""Texts that several docstrings share, such as the description of an argument that many functions take.

    _ARGUMENTS = {"loss": "loss (Variable): shape [1].", "no_grad_set": "no_grad_set (set | None): ..."}

    @with_texts(_ARGUMENTS, pass_name="backward")
    def backward(loss, no_grad_set=None):
        '''Adds the {pass_name} pass.

        Args:
            {loss}
            {no_grad_set}
        '''

A key that stands alone in a line is replaced by its text, whose lines get the indentation of that line; within a line,
a key is replaced if the decorator has a text for it. The docstring that `help`, the documentation and the generator of
stubs see is the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Callable, TypeVar

T = TypeVar("T")

_LINE = re.compile(r"^([ \t]*)\{(\w+)\}$", re.MULTILINE)


def with_texts(*tables: Mapping[str, str], **texts: str) -> Callable[[T], T]:
    """Returns a decorator of functions and classes that inserts texts into their docstring.

    Args:
        tables: {key: text}. A text may contain keys of the tables and of `texts`, too.
        texts: further texts, or others in place of those of the tables.

    Raises:
        KeyError: (the decorator) a key that stands alone in a line has no text.
    """
    known = {key: text for table in (*tables, texts) for key, text in table.items()}

    def insert(thing: T) -> T:
        if thing.__doc__:  # none with python -OO
            thing.__doc__ = _filled(thing.__doc__, known)
        return thing

    return insert


def _filled(docstring: str, texts: Mapping[str, str]) -> str:
    def text_of_line(line: re.Match[str]) -> str:
        indentation, key = line.groups()
        lines = texts[key].splitlines()
        return _filled("\n".join(indentation + one if one else "" for one in lines), texts)

    docstring = _LINE.sub(text_of_line, docstring)
    return re.sub(r"\{(\w+)\}", lambda found: texts.get(found[1], found[0]), docstring)
