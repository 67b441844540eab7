"""The tables of settings, from the table that C++ has (transpiler/plan/settings.def)."""

from penstock._src.transpile import settings


def _flag(row):
    return "--" + row.flag.replace("_", "-")


def _names(row):
    """What users call a setting: its field, or the key of case.json, then the other names that differ."""
    name = row.field or row.key
    others = [f"argument `{row.argument}`"] if row.argument not in ("", name) else []
    if row.rank_argument not in ("", name, row.argument):
        others.append(f"argument `{row.rank_argument}` of transpile_ranks")
    others += [f"case.json `{row.key}`"] if row.key not in ("", name) else []
    others += [f"`{_flag(row)}`"] if row.flag else []
    return f"`{name}`" + (f" ({', '.join(others)})" if others else "")


def _value(value):
    return "none" if value in (None, "") else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _values(row):
    """The values that a setting may have, and its default."""
    if row.words:
        kind = ", ".join(f"`{word}`" for word in row.words if word)
    elif row.type == "int":
        kind = "an integer" if row.least is None else f"an integer from {row.least}"
    else:
        kind = {"bool": "true or false", "float": "a number", "str": "a text"}[row.type]
    return f"{kind} ({_value(row.initial)})"


def _elsewhere(row):
    known = [f"{system}: `{name}`" for system, name in (("MXNet", row.mxnet), ("Horovod", row.horovod)) if name]
    return f" ({'; '.join(known)})" if known else ""


def _table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _sentence(text):
    return text[:1].upper() + text[1:]


def group_table(group):
    """The settings of a group that are fields of DistributeTranspilerConfig, or arguments."""
    return _table(
        ["setting", "values (default)", "allowed with", "effect"],
        [
            [_names(row), _values(row), row.suits or "every mode", _sentence(settings.said_of(row)) + _elsewhere(row)]
            for row in settings.ROWS
            if row.group == group and (row.field or row.argument)
        ],
    )


def brief_table():
    """A line for each setting of a policy or of the placement."""
    return _table(
        ["setting", "allowed with", "effect"],
        [
            [f"`{row.field}`", row.suits or "every mode", f"{row.doc} (default {_value(row.initial)})"]
            for group in ("policies", "placement")
            for row in settings.ROWS
            if row.group == group and row.field
        ],
    )


def key_table():
    """The keys of case.json that are settings."""
    return _table(
        ["key of `config`", "values (default)", "effect"],
        [[f"`{row.key}`", _values(row), _sentence(settings.said_of(row))] for row in settings.ROWS if row.key],
    )


def write_settings(folder):
    """Writes the tables that pages include."""
    for group in settings.GROUPS:
        (folder / f"settings_{group}.txt").write_text("\n" + group_table(group))
    (folder / "settings_brief.txt").write_text("\n" + brief_table())
