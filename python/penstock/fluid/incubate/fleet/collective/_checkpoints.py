"""Checkpoints of ranks: numbered folders, written atomically."""

import json
import os

from penstock.fluid import io
from penstock.fluid.incubate.fleet.utils.fs import LocalFS

_PREFIX = '__paddle_fleet_checkpoint__'
_PARAMS = '_paddle_fleet_param__'
_STATUS = 'fleet_train_status'


class TrainStatus:
    """The progress of training.

    Args:
        epoch_no (int): the last completed epoch; -1: none.

    Example:
        from penstock.fluid.incubate.fleet.collective import TrainStatus
        assert TrainStatus(3).next() == 4
    """

    def __init__(self, epoch_no=-1):
        self._epoch_no = epoch_no

    def next(self):
        """Returns the epoch to train next."""
        return self._epoch_no + 1

    def __eq__(self, other):
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    __hash__ = None


class Checkpoints:
    """The checkpoint methods of the collective fleet."""

    def save_check_point(self, executor, path, train_status, main_program=None, fs=None, local_cache_path='.cache',
                         remain_all_checkpoint=True):
        """Writes parameters, optimizer state and the status as the next checkpoint in a folder.

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
        real = os.path.join(path, '%s.%d' % (_PREFIX, _last_number(path, fs) + 1))
        partial = real + '.tmp'
        program = self._transpiled_program if main_program is None else main_program
        self.save_persistables(executor, partial, program, _PARAMS)
        with open(os.path.join(partial, _STATUS), 'w') as file:
            json.dump({'epoch_no': train_status._epoch_no}, file)
        fs.mv(partial, real)
        if not remain_all_checkpoint:
            self.clean_redundant_check_points(path, fs)

    def load_check_point(self, executor, path, trainer_id, main_program=None, fs=None, local_cache_path='.cache',
                         ignore_empty=True):
        """Loads the newest checkpoint of a folder.

        Args:
            executor (Executor): runs the loading.
            path (str): the folder of all checkpoints.
            trainer_id (int): has no effect on a local file system.
            main_program (Program | None): the program; None: the fleet's program.
            fs (LocalFS | None): the file system; None: LocalFS(). Other file systems are not built.
            local_cache_path (str): has no effect on a local file system.
            ignore_empty (bool): False: a folder without a checkpoint is an error.

        Returns:
            TrainStatus: the saved status; None if there is no checkpoint.

        Raises:
            ValueError: there is no checkpoint and ignore_empty is False.
        """
        number = _last_number(path, _local(fs))
        if number < 0:
            if not ignore_empty:
                raise ValueError('%s contains no checkpoint' % path)
            return None
        folder = os.path.join(path, '%s.%d' % (_PREFIX, number))
        program = self._transpiled_program if main_program is None else main_program
        io.load_persistables(executor, folder, program, _PARAMS)
        with open(os.path.join(folder, _STATUS)) as file:
            return TrainStatus(json.load(file)['epoch_no'])

    def clean_redundant_check_points(self, root_path, fs=None, checkpoint_num=1):
        """Deletes all but the newest checkpoints.

        Args:
            root_path (str): the folder of all checkpoints.
            fs (LocalFS): the file system; None: LocalFS(). Other file systems are not built.
            checkpoint_num (int): the number of checkpoints to keep, at least 1.
        """
        fs = _local(fs)
        last = _last_number(root_path, fs)
        for number, name in _numbered(root_path, fs):
            if number <= last - max(checkpoint_num, 1):
                fs.rmr(os.path.join(root_path, name))


def _local(fs):
    fs = LocalFS() if fs is None else fs
    if fs.need_upload_download():
        raise NotImplementedError('checkpoints on %s are not built; mount the file system and use LocalFS()' %
                                  type(fs).__name__)
    return fs


def _numbered(path, fs):
    """Returns [(number, name)] of the checkpoints in a folder."""
    parts = [(name.partition('.'), name) for name in fs.list_dirs(path)]
    return [(int(number), name) for (prefix, _, number), name in parts if prefix == _PREFIX and number.isdigit()]


def _last_number(path, fs):
    return max((number for number, _ in _numbered(path, fs)), default=-1)
