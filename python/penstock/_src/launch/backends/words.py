"""The options of this launcher as words of a command line, for launchers that run on other hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.launch.options import make_parser

if TYPE_CHECKING:
    from argparse import Action, Namespace
    from typing import Any


# What the launchers on the hosts do not get: it says where they are, or is passed on otherwise.
HERE = {
    "help", "completion", "launcher", "hostfile", "num_workers", "num_servers", "sync_dst_dir", "p3", "ssh_option",
    "remote_python", "submit_option", "image", "cluster_node_ips", "node_ip", "nnodes", "node_rank", "master",
    "scheduler", "dry_run", "console", "token_file", "job_id", "training_script", "training_script_args",
}  # fmt: skip


def _setting_text(setting: tuple[str | None, int | None, str, str]) -> str:
    kind, number, name, value = setting
    role = "" if kind is None else f"{kind}:" if number is None else f"{kind}.{number}:"
    return f"{role}{name}={value}"


def _words_of(action: Action, value: Any) -> list[str]:
    option = max(action.option_strings, key=len)
    if action.dest == "env":
        return [word for one in value if one[3] is not None for word in ("--env", _setting_text(one))]
    if action.nargs == 0:
        return [option]
    return [f"{option}={value}"]


def launcher_words(options: Namespace, without: tuple[str, ...] = ()) -> list[str]:
    """Returns the words of the options that differ from their defaults, except `without`, then the script and its
    arguments."""
    words: list[str] = []
    seen = set()
    for action in make_parser()._actions:
        value = getattr(options, action.dest, None)
        if (
            action.dest in HERE
            or action.dest in without
            or action.dest in seen
            or value == action.default
            or value is None
        ):
            continue
        seen.add(action.dest)
        words += _words_of(action, value)
    return [*words, "--", options.training_script, *options.training_script_args]
