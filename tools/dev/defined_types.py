"""Finds the types that C++ sources define in named namespaces, for tidy.py.

Two source files that each define a type of the same name in the same namespace violate the one-definition rule: the
linker silently keeps one of two member functions and drops the other.
"""

import re

OPAQUE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
OPENING = re.compile(
    r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{"
    # A specialisation (Name<...>) or a member class defined outside (Outer::Name) defines no new name.
    r"|\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?P<type>\w+)(?:\s+final)?\s*(?::(?!:)[^;{}()=]*)?\{"
    r"|(?P<other>\{)|(?P<close>\})"
)


def defined_types(text):
    """(line, qualified name) of each type that `text` defines at the scope of a named namespace."""
    text = OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    scopes = []  # a namespace's name, or None for any other brace
    for found in OPENING.finditer(text):
        if found["close"]:
            if scopes:
                scopes.pop()
        elif found["namespace"] is not None:
            scopes.append(found["namespace"] or None)
        else:
            if found["type"] and None not in scopes:
                yield text.count("\n", 0, found.start()) + 1, "::".join([*scopes, found["type"]])
            scopes.append(None)
