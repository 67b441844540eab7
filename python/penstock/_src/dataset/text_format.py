"""Protobuf's text format, read and written without protobuf, for messages whose fields and types a table lists.

fields = {'name': str, 'slots': [{'is_used': bool}]}      # [type]: a repeated field
parse('name: "a" slots { is_used: true }', fields)        # {'name': 'a', 'slots': [{'is_used': True}]}
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Message = dict[str, Any]  # values by field: numbers, texts, messages and lists of them
    Fields = Mapping[str, Any]  # types by field


_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<word>[A-Za-z_]\w*|[-+]?\d[\w.+-]*)|(?P<sign>[{}<>:;,\[\]])"""
    r"""|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
)
_SAID = {str: "a text", bool: "true or false", int: "an integer"}
_DEPTH_MAX = 20


class _Tokens:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source, self._at = text, source, 0
        self.next()

    def next(self) -> None:
        """Advances to the next token; `kind` and `token` are its kind and text, 'end' and '' at the end."""
        while True:
            self._begin = self._at
            if self._at == len(self._text):
                self.kind, self.token = "end", ""
                return
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                raise self.error(f"{self._text[self._at : self._at + 10]!r} cannot be part of a message")
            self._at = match.end()
            if match.lastgroup is not None:
                self.kind, self.token = match.lastgroup, match.group()
                return

    def error(self, text: str) -> ValueError:
        line = self._text.count("\n", 0, self._begin) + 1
        return ValueError(f"{self._source}, line {line}: {text}")

    def skip(self, signs: str) -> bool:
        found = self.kind == "sign" and self.token in signs
        if found:
            self.next()
        return found


def parse(text: str, fields: Fields, source: str = "the text") -> Message:
    """Parses a message to a dict. Raises ValueError with the line number."""
    tokens = _Tokens(text, source)
    message = _message(tokens, fields, "", 0)
    return message


def _message(tokens: _Tokens, fields: Fields, end: str, depth: int) -> Message:
    if depth > _DEPTH_MAX:
        raise tokens.error(f"messages are nested more than {_DEPTH_MAX} deep")
    message: Message = {}
    while tokens.token != end or tokens.kind == "text":
        if tokens.kind != "word":
            raise tokens.error(f"a field is expected, not {tokens.token or 'the end'}")
        name = tokens.token
        if name not in fields:
            raise tokens.error(f"there is no field {name}; there are {', '.join(sorted(fields))}")
        tokens.next()
        kind = fields[name]
        several = isinstance(kind, list)
        value = _value(tokens, name, kind[0] if several else kind, depth)
        if several:
            message.setdefault(name, []).append(value)
        elif name in message:
            raise tokens.error(f"field {name} is given twice")
        else:
            message[name] = value
        tokens.skip(",;")
    return message


def _value(tokens: _Tokens, name: str, kind: Any, depth: int) -> int | str | dict[str, Any]:
    colon = tokens.skip(":")
    if isinstance(kind, dict):
        end = {"{": "}", "<": ">"}.get(tokens.token)
        if end is None:
            raise tokens.error(f"field {name} is a message: {{ is expected, not {tokens.token or 'the end'}")
        tokens.next()
        message = _message(tokens, kind, end, depth + 1)
        tokens.next()
        return message
    if not colon:
        raise tokens.error(f"field {name} needs a colon and a value")
    value = _scalar(tokens, name, kind)
    tokens.next()
    return value


def _scalar(tokens: _Tokens, name: str, kind: type) -> bool | int | str:
    if kind is str and tokens.kind == "text":
        return str(ast.literal_eval(tokens.token))
    if kind is bool and tokens.token in ("true", "false", "t", "f", "1", "0"):
        return tokens.token in ("true", "t", "1")
    if kind is int and tokens.kind == "word" and re.fullmatch(r"[-+]?\d+", tokens.token):
        return int(tokens.token)
    raise tokens.error(f"field {name} must be {_SAID[kind]}, not {tokens.token or 'the end'}")


def print_message(message: Message, fields: Fields, indent: str = "") -> str:
    """Returns a dict as text, with the fields in the order of the table."""
    lines = []
    for name, kind in fields.items():
        if name not in message:
            continue
        values = message[name] if isinstance(kind, list) else [message[name]]
        kind = kind[0] if isinstance(kind, list) else kind
        for value in values:
            if isinstance(kind, dict):
                lines += [f"{indent}{name} {{\n", print_message(value, kind, indent + "  "), f"{indent}}}\n"]
            else:
                lines.append(f"{indent}{name}: {_scalar_text(value)}\n")
    return "".join(lines)


def _scalar_text(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    return str(value)
