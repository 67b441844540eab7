"""Writes plain data as YAML: mappings, lists, strings, numbers and booleans.

Strings that could be taken for something else are quoted as in JSON, which YAML reads alike.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


def _lines(value: Any, indent: str) -> list[str]:
    if isinstance(value, dict):
        lines = []
        for key, one in value.items():
            if isinstance(one, (dict, list)) and one:
                deeper = indent if isinstance(one, list) else f"{indent}  "
                lines += [f"{indent}{_scalar(key)}:", *_lines(one, deeper)]
            else:
                lines.append(f"{indent}{_scalar(key)}: {_scalar(one)}")
        return lines
    lines = []
    for one in value:
        if isinstance(one, dict) and one:
            first, *rest = _lines(one, f"{indent}  ")
            lines += [f"{indent}- {first.strip()}", *rest]
        else:
            lines.append(f"{indent}- {_scalar(one)}")
    return lines


def yaml_text(value: Any) -> str:
    """Returns the text of a mapping or a list."""
    return "\n".join(_lines(value, "")) + "\n"
