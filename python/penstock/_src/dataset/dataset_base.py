"""DatasetBase: the settings of all datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._src.base.absent import refuses
from penstock._src.base.errors import not_built, program_error, state_error
from penstock._src.dataset.data_feed_desc import _FIELDS
from penstock._src.dataset.text_format import print_message
from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._penstock import Dataset, DatasetReading
    from penstock._src.fleet.base import Fleet
    from penstock._src.ir.variable import Variable


PAGE_VIEWS = "Dataset.{method} is not built: it is of Fluid's page views, which BoxPS alone reads"
_KINDS = {VarType.FP32: "float", VarType.INT64: "uint64"}


class DatasetBase:
    """The settings of all datasets. DatasetFactory creates datasets."""

    _FEED = ""  # Fluid's name of the reader

    def __init__(self) -> None:
        self._desc: dict[str, Any] = {"name": self._FEED, "batch_size": 32, "pipe_command": "cat"}
        self._variables: list[Variable] = []
        self.thread_num = 1
        self.filelist: list[str] = []
        self._has_files = False
        self.fea_eval, self._candidates = False, 1

    def set_pipe_command(self, pipe_command: str) -> None:
        """Sets the shell command that converts a file to MultiSlot lines; the file is its standard input.

        Args:
            pipe_command (str): the command; the default is 'cat', which reads the file itself.
        """
        self._desc["pipe_command"] = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """Sets the number of instances of a batch. The last batch of each thread may have fewer.

        Args:
            batch_size (int): the number; the default is 32.

        Raises:
            ValueError: `batch_size` is below 1.
        """
        self._desc["batch_size"] = positive("batch_size", batch_size)

    def set_thread(self, thread_num: int) -> None:
        """Sets the number of threads that read, and that train if the program allows it.

        Args:
            thread_num (int): the number; the default is 1. A QueueDataset uses at most one thread per file.

        Raises:
            ValueError: `thread_num` is below 1.
        """
        self.thread_num = positive("thread_num", thread_num)

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """Sets the files that this trainer reads.

        Args:
            filelist (list[str]): paths. Thread t of n reads every n-th file from the t-th on.

        Raises:
            TypeError: `filelist` is not a list of paths.
        """
        if isinstance(filelist, str) or not all(isinstance(name, str) for name in filelist):
            raise TypeError(f"filelist must be a list of paths, not {filelist!r}")
        self.filelist, self._has_files = list(filelist), True

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """Sets the variables whose numbers a line contains, in the order of the line. Replaces those of an earlier
        call.

        Args:
            var_list (list[Variable]): float32 or int64. With lod_level 0 a line contains as many numbers as one row of
                the variable; with lod_level 1 a sequence of one or more.

        Raises:
            ValueError: a variable has an unsupported element type.
        """
        for var in var_list:
            if var.dtype not in _KINDS:
                raise ValueError(
                    f"Currently, fluid.dataset only supports dtype=float32 and dtype=int64; {var.name} is "
                    f"{var.dtype.name}"
                )
        self._variables = list(var_list)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Not built: files are read from folders of this machine; a pipe command may read others.

        Args:
            fs_name (str): must be ''.
            fs_ugi (str): not used.

        Raises:
            NotImplementedError: `fs_name` is not ''.
        """
        if fs_name:
            raise not_built(
                "Dataset.set_hdfs_config is not built; mount the file system, or let the pipe command read from it"
            )

    @refuses("Dataset.{method} is not built; let the pipe command read the file")
    def set_download_cmd(self, download_cmd: str) -> None:
        """Not built, like set_hdfs_config."""

    @refuses(PAGE_VIEWS)
    def set_rank_offset(self, rank_offset: str) -> None:
        """Not built: it belongs to Fluid's page views."""

    @refuses(PAGE_VIEWS)
    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Not built: it belongs to Fluid's page views."""

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Turns slots_shuffle on.

        Args:
            record_candidate_size (int): how many instances slots_shuffle draws numbers from, at least 1.
            fea_eval (bool): whether slots_shuffle has an effect.
        """
        if fea_eval:
            self._candidates = positive("record_candidate_size", record_candidate_size)
        self.fea_eval = bool(fea_eval)

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Gives each instance, in some slots, the numbers of another instance, to measure how much a model depends on
        these slots. Each call starts from the instances before the first call.

        Has no effect before set_fea_eval(). Only an InMemoryDataset, after load_into_memory(), has instances to
        shuffle.

        Args:
            slots (list[str]): names of variables without a dense shape (lod_level 1).

        Raises:
            penstock.ProgramError: there is no such sequence among the variables (E-dataset-slots).
            penstock.StateError: nothing is loaded (E-dataset-empty).
            NotImplementedError: the dataset is not an InMemoryDataset.
        """
        if not self.fea_eval:
            return
        sequences = [var.name for var in self._variables if var.lod_level > 0]
        for name in slots:
            if name not in sequences:
                raise program_error(
                    "E-dataset-slots",
                    f"dataset: slots_shuffle: {name} is not a slot with a sequence; those are "
                    f"{', '.join(sequences) or 'none'}",
                )
        self._shuffle_slots(set(slots))

    def _shuffle_slots(self, slots: set[str]) -> None:
        raise not_built(f"{type(self).__name__} does not support slots_shuffle; use an InMemoryDataset")

    def desc(self) -> str:
        """Describes the dataset's settings in protobuf's text format (Fluid's DataFeedDesc).

        Returns:
            str: the text.
        """
        slots = []
        for var in self._variables:
            slot = {"name": var.name, "type": _KINDS[var.dtype], "is_used": True}
            if var.lod_level == 0:
                slot.update(is_dense=True, shape=list(var.shape))
            slots.append(slot)
        return print_message(dict(self._desc, **{"multi_slot_desc": {"slots": slots}} if slots else {}), _FIELDS)

    @refuses("{kind} does not support local shuffle, please use InMemoryDataset for {method}")
    def local_shuffle(self) -> None:
        """Raises an error: only an InMemoryDataset can be shuffled."""

    @refuses("{kind} does not support global shuffle, please use InMemoryDataset for {method}")
    def global_shuffle(self, fleet: Fleet | None = None) -> None:
        """Raises an error: only an InMemoryDataset can be shuffled."""

    def _native(self, drops_zeros: bool = False, has_ids: bool = False, has_contents: bool = False) -> Dataset:
        slots = [
            (var.name, var.dtype == VarType.FP32, True, list(var.shape)[1:] if var.lod_level == 0 else None)
            for var in self._variables
        ]
        return _penstock.Dataset(slots, drops_zeros, has_ids, has_contents)

    def _names(self) -> list[str]:
        return [var.name for var in self._variables]

    def _require_files(self) -> None:
        if not self._has_files:
            raise state_error("E-dataset-files", "dataset: there are no files; call set_filelist(paths) first")

    def _start(self, threads: int) -> tuple[DatasetReading, Callable[[], None]]:
        """Starts reading with one queue per thread; returns (the reading, a function to call at its end)."""
        raise NotImplementedError


def positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, numpy.integer)):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return int(value)
