"""The files by which a launcher and the trainers of its job agree on the step after which other pservers take over, in
the folder `scale` beside the checkpoints:

    request     launcher: the number of pservers is to change
    limit-0     trainer 0: `step`: it begins no step from this one on before all trainers have answered; or `error`
    there-0     trainer 0: it has ended the `step` steps that all have agreed on, the highest limit
    closed-0    trainer 0: it has completed, and answers nothing
    go          launcher: `pservers`: their addresses; or `error`: nothing changes, and why
    moved-0     trainer 0: it needs the earlier pservers no more

Each has the run of the job and the number of the request; those of others are ignored. Steps are counted from the first
one of the present pservers. So no trainer begins a step that another cannot end: one that stops before step k has ended
those below it, and each other trainer ends these too, and sees the request before it begins step k + 1.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class MoveFiles:
    """Those of one job. `environment`: that of any of its roles."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.trainers = int(environment["PADDLE_TRAINERS_NUM"])
        self._folder = os.path.join(environment["PENSTOCK_CHECKPOINT_DIR"], "scale")
        self._run = f"{environment['PENSTOCK_JOB_ID']}.{environment['PENSTOCK_RESTART_COUNT']}"
        self._request = os.path.join(self._folder, "request")

    def is_asked(self) -> bool:
        """Returns whether there is a request, perhaps one that is done; costs one system call."""
        return os.path.exists(self._request)

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def write(self, name: str, number: int, **facts: Any) -> None:
        """Replaces a file as a whole. Raises OSError."""
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, name)
        with open(path + ".new", "w") as file:
            json.dump({"run": self._run, "number": number, **facts}, file)
        os.rename(path + ".new", path)

    def read(self, name: str) -> dict[str, Any] | None:
        """Returns what a file of this run says; None if there is none."""
        try:
            with open(os.path.join(self._folder, name)) as file:
                facts = json.load(file)
        except (OSError, ValueError):
            return None
        return facts if isinstance(facts, dict) and facts.get("run") == self._run else None

    def read_for(self, name: str, number: int) -> dict[str, Any] | None:
        """The same, if the file belongs to the request with this number."""
        facts = self.read(name)
        return facts if facts is not None and facts.get("number") == number else None

    def of_trainers(self, name: str, number: int) -> list[dict[str, Any]]:
        """Returns what the trainers have answered, without those that have not."""
        found = (self.read_for(f"{name}-{trainer}", number) for trainer in range(self.trainers))
        return [facts for facts in found if facts is not None]
