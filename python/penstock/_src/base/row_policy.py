"""The policy of a table's rows: which ids get a row on pservers, and which rows are evicted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from penstock import _penstock
from penstock._src.base.errors import program_error


def row_policy(
    layer: str,
    sharded: bool,
    entry: str | None,
    evict: str | Sequence[str] | None,
    budget_mb: int | None,
    cold_dir: str | os.PathLike[str] | None = None,
) -> str | None:
    """Returns the attribute of a lookup that states the policy; None without a rule."""
    rules = [f"entry {rule}" for rule in _listed(layer, "entry", entry)]
    if len(rules) > 1:
        raise TypeError(f"{layer}: entry must be one string, such as 'count 3', not {entry!r}")
    rules += [f"evict {rule}" for rule in _listed(layer, "evict", evict)]
    if budget_mb is not None:
        if isinstance(budget_mb, bool) or not isinstance(budget_mb, int):
            raise TypeError(f"{layer}: budget_mb must be an integer, not {budget_mb!r}")
        rules.append(f"budget_mb {budget_mb}")
    if cold_dir is not None:
        if not isinstance(cold_dir, (str, os.PathLike)) or not isinstance(os.fspath(cold_dir), str):
            raise TypeError(f"{layer}: cold_dir must be the path of a folder, not {cold_dir!r}")
        rules.append(f"cold_dir {json.dumps(os.fspath(cold_dir), ensure_ascii=False)}")
    if not rules:
        return None
    text = _penstock.row_policy(", ".join(rules))
    if not sharded:
        raise program_error(
            "E-row-policy-table",
            f"{layer}: entry, evict, budget_mb and cold_dir ({text}) are for tables that pservers shard by id and "
            "whose rows exist only once they are used; use is_sparse=True and is_distributed=True",
        )
    return text


def _listed(layer: str, name: str, rules: str | Sequence[str] | None) -> list[str]:
    if rules is None:
        return []
    listed = [rules] if isinstance(rules, str) or not isinstance(rules, Sequence) else list(rules)
    if not all(isinstance(rule, str) and rule.strip() and "," not in rule for rule in listed):
        raise TypeError(f"{layer}: {name} must be a rule, such as 'count 3', or a list of rules, not {rules!r}")
    return listed
