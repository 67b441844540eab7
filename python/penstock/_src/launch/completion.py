"""Shell completion of the launcher's options, generated from its argument parser.

eval "$(python -m penstock.distributed.launch --completion bash)"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser


NAME = "penstock-launch"

_BASH = """_penstock_launch() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  case "$before" in
@CHOICES@  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "@OPTIONS@" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _penstock_launch @NAME@
"""
_ZSH = "#compdef @NAME@\nautoload -U +X bashcompinit && bashcompinit\n"


def completion_text(parser: ArgumentParser, shell: str) -> str:
    """Returns a script that completes the options of `parser`, for 'bash' or 'zsh'."""
    options, choices = [], []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        options += [name for name in action.option_strings if name.startswith("--")]
        if action.choices and action.option_strings:
            choices.append(
                '    {}) COMPREPLY=($(compgen -W "{}" -- "$word")); return ;;\n'.format(
                    "|".join(action.option_strings), " ".join(map(str, action.choices))
                )
            )
    text = _BASH.replace("@CHOICES@", "".join(choices)).replace("@OPTIONS@", " ".join(sorted(options)))
    return ((_ZSH if shell == "zsh" else "") + text).replace("@NAME@", NAME)
