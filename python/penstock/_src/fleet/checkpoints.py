"""Checkpoints of ranks: numbered folders, written atomically."""

from __future__ import annotations

import json
import operator
import os
import warnings
from typing import TYPE_CHECKING

from penstock._penstock import DataError, ProgramError
from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import data_error, not_built, program_error
from penstock._src.base.file_writing import SavedFolder, alone_in, begin_list, digests_of, save_files, sync_folder
from penstock._src.fleet.fs import LocalFS
from penstock._src.io import model_files

if TYPE_CHECKING:
    import abc

    from penstock._src.executor.executor import Executor
    from penstock._src.fleet.base import Fleet
    from penstock._src.ir.program import Program

    class _Base(Fleet):
        _transpiled_program: Program | None

        @abc.abstractmethod
        def save_persistables(
            self, executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
        ) -> None: ...
else:
    _Base = object


_PREFIX = "__paddle_fleet_checkpoint__"
_PARAMS = "_paddle_fleet_param__"
_STATUS = "fleet_train_status"


class TrainStatus:
    """The progress of training.

    Args:
        epoch_no (int): the last completed epoch; -1: none.

    Example:
        from penstock.fluid.incubate.fleet.collective import TrainStatus
        assert TrainStatus(3).next() == 4
    """

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """Returns the epoch to train next.

        Returns:
            int: its number, from 0.
        """
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    __hash__ = None  # type: ignore[assignment]  # equal to others, and changeable


class Checkpoints(_Base):
    """The checkpoint methods of the collective fleet."""

    def save_check_point(
        self,
        executor: Executor,
        path: str,
        train_status: TrainStatus,
        main_program: Program | None = None,
        fs: LocalFS | None = None,
        local_cache_path: str = ".cache",
        remain_all_checkpoint: bool = True,
    ) -> None:
        """Writes parameters, optimizer state and the status as the next checkpoint in a folder.

        The checkpoint is on the disk when the call returns: a crash of the process or of the machine leaves the
        checkpoints before it, or all of it. Previous checkpoints are deleted afterwards. One rank is enough: call it if
        fleet.is_first_worker(). Ranks that save to one folder take turns; a rank gives a warning and writes nothing if
        another rank has saved the same values and status.

        Args:
            executor (Executor): any executor.
            path (str): the folder of all checkpoints.
            train_status (TrainStatus): saved with the parameters.
            main_program (Program): the program; None: the fleet's program.
            fs (LocalFS): the file system; None: LocalFS(). Other file systems are not built.
            local_cache_path (str): has no effect on a local file system.
            remain_all_checkpoint (bool): False: delete all previous checkpoints.
        """
        fs = _local(fs)
        if not fs.stat(path):
            fs.mkdir(path)
        program = self._transpiled_program if main_program is None else main_program
        with alone_in(path):  # ranks that save to one folder
            last = _last_number(path, fs)
            real = os.path.join(path, f"{_PREFIX}.{last + 1}")
            partial = real + ".tmp"
            fs.delete(partial)  # of a save that was interrupted
            begin_list(partial)
            self.save_persistables(executor, partial, program, _PARAMS)
            status = {"epoch_no": train_status._epoch_no, "rank": self.worker_index()}
            save_files(partial, [(_STATUS, [json.dumps(status).encode()])])
            if last >= 0 and _same_of_other_rank(os.path.join(path, f"{_PREFIX}.{last}"), partial, status):
                fs.delete(partial)
                warnings.warn(
                    f"fleet.save_check_point: another rank has saved the same checkpoint in {path}; one rank is "
                    "enough: call it if fleet.is_first_worker()",
                    stacklevel=stack_level(),
                )
                return
            fs.mv(partial, real)
            sync_folder(path)
            if not remain_all_checkpoint:
                self.clean_redundant_check_points(path, fs)

    def load_check_point(
        self,
        executor: Executor,
        path: str,
        trainer_id: int,
        main_program: Program | None = None,
        fs: LocalFS | None = None,
        local_cache_path: str = ".cache",
        ignore_empty: bool = True,
    ) -> TrainStatus | None:
        """Loads the newest checkpoint of a folder. If it is damaged, gives a warning and loads the one before it.

        Args:
            executor (Executor): runs the loading.
            path (str): the folder of all checkpoints.
            trainer_id (int): has no effect on a local file system.
            main_program (Program | None): the program; None: the fleet's program.
            fs (LocalFS | None): the file system; None: LocalFS(). Other file systems are not built.
            local_cache_path (str): has no effect on a local file system.
            ignore_empty (bool): False: a folder without a checkpoint is an error.

        Returns:
            TrainStatus | None: the saved status; None if there is no checkpoint.

        Raises:
            ValueError: there is no checkpoint and ignore_empty is False; or the checkpoint is of another program.
            penstock.DataError, OSError: all checkpoints are damaged.
        """
        fs = _local(fs)
        program = self._transpiled_program if main_program is None else main_program
        tried: set[tuple[int, str]] = set()
        failure: OSError | ValueError | None = None
        while True:
            rest = [pair for pair in _numbered(path, fs) if pair not in tried]  # again: ranks may save meanwhile
            if not rest:
                break
            number, name = max(rest)
            tried.add((number, name))
            folder = os.path.join(path, name)
            try:
                status = _status_of(folder)
                model_files.load_persistables(executor, folder, program, _PARAMS)
                return TrainStatus(status["epoch_no"])
            except (OSError, ValueError) as error:
                if not os.path.isdir(folder):
                    continue  # deleted by a rank that has saved a newer one
                if not _may_be_damaged(error, folder):
                    raise
                failure = failure or error
                warnings.warn(
                    f"fleet.load_check_point: checkpoint {folder} is damaged, so an earlier one is loaded: {error}",
                    stacklevel=stack_level(),
                )
        if failure is not None:
            raise failure
        if not ignore_empty:
            raise program_error("E-checkpoint-none", f"{path} contains no checkpoint")
        return None

    def _get_last_checkpoint_no(self, root_path: str, fs: LocalFS | None = None) -> int:
        """Returns the number of the newest checkpoint of a folder; -1 if it has none."""
        return _last_number(root_path, _local(fs))

    def clean_redundant_check_points(self, root_path: str, fs: LocalFS | None = None, checkpoint_num: int = 1) -> None:
        """Deletes all but the newest checkpoints.

        Args:
            root_path (str): the folder of all checkpoints.
            fs (LocalFS): the file system; None: LocalFS(). Other file systems are not built.
            checkpoint_num (int): the number of checkpoints to keep, at least 1.
        """
        fs = _local(fs)
        for _, name in sorted(_numbered(root_path, fs))[: -max(checkpoint_num, 1)]:
            fs.rmr(os.path.join(root_path, name))


def _local(fs: LocalFS | None) -> LocalFS:
    fs = LocalFS() if fs is None else fs
    if fs.need_upload_download():
        raise not_built(f"checkpoints on {type(fs).__name__} are not built; mount the file system and use LocalFS()")
    return fs


def _status_of(folder: str) -> dict[str, int]:
    """Returns the status of a checkpoint. Raises DataError if it is damaged."""
    path = os.path.join(folder, _STATUS)
    try:
        status = json.loads(SavedFolder(folder).read(_STATUS))
        return {"epoch_no": operator.index(status["epoch_no"]), "rank": status.get("rank")}
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise data_error("E-checkpoint-status", f"{path} is not the status of a checkpoint: {error}") from None


def _may_be_damaged(error: OSError | ValueError, folder: str) -> bool:
    """Returns whether an error is due to the files of a checkpoint; otherwise it is due to the program."""
    if isinstance(error, (OSError, DataError)) or not digests_of(folder):
        return not isinstance(error, (PermissionError, ProgramError))
    return False  # the files have the right digests


def _same_of_other_rank(folder: str, partial: str, status: dict[str, int]) -> bool:
    """Returns whether another rank has saved the same epoch and the same values in `folder`."""
    try:
        there = _status_of(folder)
        return (
            there["epoch_no"] == status["epoch_no"]
            and there["rank"] not in (None, status["rank"])
            and digests_of(folder).get(_PARAMS) == digests_of(partial)[_PARAMS]
        )
    except (OSError, DataError):
        return False


def _numbered(path: str, fs: LocalFS) -> list[tuple[int, str]]:
    """Returns [(number, name)] of the checkpoints in a folder."""
    parts = [(name.partition("."), name) for name in fs.list_dirs(path)]
    return [(int(number), name) for (prefix, _, number), name in parts if prefix == _PREFIX and number.isdigit()]


def _last_number(path: str, fs: LocalFS) -> int:
    return max((number for number, _ in _numbered(path, fs)), default=-1)
