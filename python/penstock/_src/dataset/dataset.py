"""Datasets: files of MultiSlot text, read by threads through a pipe command, for Executor.train_from_dataset.

    dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
    dataset.set_use_var([words, label])
    dataset.set_pipe_command('python gen.py')      # reads a file's lines, writes MultiSlot lines; the default is cat
    dataset.set_batch_size(32)
    dataset.set_thread(4)
    dataset.set_filelist(fleet.split_files(files))
    dataset.load_into_memory()
    dataset.global_shuffle(fleet)
    exe.train_from_dataset(fleet.main_program, dataset)

A line of MultiSlot text contains, for each variable of set_use_var in order, a count and that many numbers.
incubate.data_generator writes such lines.
"""

import threading

import numpy

from penstock import _penstock
from penstock._src.base import log
from penstock._src.base.errors import program_error, state_error
from penstock._src.dataset.data_feed_desc import _FIELDS
from penstock._src.dataset.text_format import print_message
from penstock._src.ir import framework
from penstock._src.ir.types import VarType

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]

_WARNED_MOST = 3  # ids of dropped instances that warnings name
_KINDS = {VarType.FP32: "float", VarType.INT64: "uint64"}


class DatasetFactory:
    """Creates datasets by the names of their classes.

    Example:
        dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
    """

    def create_dataset(self, datafeed_class="QueueDataset"):
        """Creates a dataset.

        Args:
            datafeed_class (str): 'QueueDataset', which reads files during training, or 'InMemoryDataset', which can be
                shuffled.

        Returns:
            DatasetBase: the dataset.

        Raises:
            ValueError: the class does not exist.
            NotImplementedError: the class exists in Fluid but is not built.
        """
        if datafeed_class == "BoxPSDataset":
            raise NotImplementedError("BoxPSDataset needs BoxPS, which is not public; use InMemoryDataset")
        classes = {each.__name__: each for each in (QueueDataset, InMemoryDataset, FileInstantDataset)}
        if datafeed_class not in classes:
            raise ValueError(f"datafeed class {datafeed_class} does not exist; there are {', '.join(sorted(classes))}")
        return classes[datafeed_class]()


class DatasetBase:
    """The settings of all datasets. DatasetFactory creates datasets."""

    _FEED = ""  # Fluid's name of the reader

    def __init__(self):
        self._desc = {"name": self._FEED, "batch_size": 32, "pipe_command": "cat"}
        self._variables = []
        self.thread_num = 1
        self.filelist, self._has_files = [], False
        self.fea_eval, self._candidates = False, 1

    def set_pipe_command(self, pipe_command):
        """Sets the shell command that converts a file to MultiSlot lines; the file is its standard input.

        Args:
            pipe_command (str): the command; the default is 'cat', which reads the file itself.
        """
        self._desc["pipe_command"] = pipe_command

    def set_batch_size(self, batch_size):
        """Sets the number of instances of a batch. The last batch of each thread may have fewer.

        Args:
            batch_size (int): the number; the default is 32.

        Raises:
            ValueError: `batch_size` is below 1.
        """
        self._desc["batch_size"] = _positive("batch_size", batch_size)

    def set_thread(self, thread_num):
        """Sets the number of threads that read, and that train if the program allows it.

        Args:
            thread_num (int): the number; the default is 1. A QueueDataset uses at most one thread per file.

        Raises:
            ValueError: `thread_num` is below 1.
        """
        self.thread_num = _positive("thread_num", thread_num)

    def set_filelist(self, filelist):
        """Sets the files that this trainer reads.

        Args:
            filelist (list[str]): paths. Thread t of n reads every n-th file from the t-th on.

        Raises:
            TypeError: `filelist` is not a list of paths.
        """
        if isinstance(filelist, str) or not all(isinstance(name, str) for name in filelist):
            raise TypeError(f"filelist must be a list of paths, not {filelist!r}")
        self.filelist, self._has_files = list(filelist), True

    def set_use_var(self, var_list):
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

    def set_hdfs_config(self, fs_name, fs_ugi):
        """Not built: files are read from folders of this machine; a pipe command may read others.

        Args:
            fs_name (str): must be ''.
            fs_ugi (str): not used.

        Raises:
            NotImplementedError: `fs_name` is not ''.
        """
        if fs_name:
            raise NotImplementedError(
                "Dataset.set_hdfs_config is not built; mount the file system, or let the pipe command read from it"
            )

    def set_download_cmd(self, download_cmd):
        """Not built, like set_hdfs_config.

        Args:
            download_cmd (str): not used.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Dataset.set_download_cmd is not built; let the pipe command read the file")

    def set_rank_offset(self, rank_offset):
        """Not built: it belongs to Fluid's page views.

        Args:
            rank_offset (str): not used.

        Raises:
            NotImplementedError: always.
        """
        raise _page_views("set_rank_offset")

    def set_pv_batch_size(self, pv_batch_size):
        """Not built: it belongs to Fluid's page views.

        Args:
            pv_batch_size (int): not used.

        Raises:
            NotImplementedError: always.
        """
        raise _page_views("set_pv_batch_size")

    def set_fea_eval(self, record_candidate_size, fea_eval=True):
        """Turns slots_shuffle on.

        Args:
            record_candidate_size (int): how many instances slots_shuffle draws numbers from, at least 1.
            fea_eval (bool): whether slots_shuffle has an effect.
        """
        if fea_eval:
            self._candidates = _positive("record_candidate_size", record_candidate_size)
        self.fea_eval = bool(fea_eval)

    def slots_shuffle(self, slots):
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

    def _shuffle_slots(self, slots):
        raise NotImplementedError(f"{type(self).__name__} does not support slots_shuffle; use an InMemoryDataset")

    def desc(self):
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

    def local_shuffle(self):
        """Raises an error: only an InMemoryDataset can be shuffled.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not support local shuffle, please use InMemoryDataset for local_shuffle"
        )

    def global_shuffle(self, fleet=None):
        """Raises an error: only an InMemoryDataset can be shuffled.

        Args:
            fleet (Fleet | None): not used.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not support global shuffle, please use InMemoryDataset for global_shuffle"
        )

    def _native(self, drops_zeros=False, has_ids=False, has_contents=False):
        slots = [
            (var.name, var.dtype == VarType.FP32, True, list(var.shape)[1:] if var.lod_level == 0 else None)
            for var in self._variables
        ]
        return _penstock.Dataset(slots, drops_zeros, has_ids, has_contents)

    def _names(self):
        return [var.name for var in self._variables]

    def _require_files(self):
        if not self._has_files:
            raise state_error("E-dataset-files", "dataset: there are no files; call set_filelist(paths) first")

    def _start(self, threads):
        """Starts reading with one queue per thread; returns (the reading, a function to call at its end)."""
        raise NotImplementedError


def _positive(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, numpy.integer)):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return int(value)


def _page_views(function):
    return NotImplementedError(f"Dataset.{function} is not built: it is of Fluid's page views, which BoxPS alone reads")


class QueueDataset(DatasetBase):
    """Reads files during training; each pass reads them again.

    Example:
        x, y = fluid.data('x', [None, 2]), fluid.data('y', [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        with open('part-0', 'w') as file:
            file.write('2 0.5 1.5 1 2\\n2 1 1 1 2\\n')
        dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
        dataset.set_use_var([x, y])
        dataset.set_filelist(['part-0'])
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    """

    _FEED = "MultiSlotDataFeed"

    def _start(self, threads):
        self._require_files()
        threads = max(min(threads, len(self.filelist)), 1)
        reading = self._native().read_files(
            self.filelist, self._desc["pipe_command"], threads, self._desc["batch_size"]
        )
        return reading, reading.stop


class FileInstantDataset(QueueDataset):
    """The same as QueueDataset."""

    _FEED = "MultiSlotFileInstantDataFeed"


class InMemoryDataset(DatasetBase):
    """Reads files into memory, where instances can be shuffled and exchanged with other trainers.

    As in Fluid, reading drops zeros in sequences; a sequence that contains only zeros becomes a single zero.

    Example:
        x = fluid.data('x', [None, 2])
        with open('part-0', 'w') as file:
            file.write('2 0.5 1.5\\n2 1 1\\n')
        dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
        dataset.set_use_var([x])
        dataset.set_filelist(['part-0'])
        dataset.load_into_memory()
        dataset.local_shuffle()
        assert dataset.get_memory_data_size() == 2
    """

    _FEED = "MultiSlotInMemoryDataFeed"

    def __init__(self):
        super().__init__()
        self.queue_num = None
        self.parse_ins_id = self.parse_content = False
        self.merge_by_lineid, self._merge_size = False, 2
        self.fleet_send_batch_size = None
        self.fleet_send_sleep_seconds = None
        self._records = None
        self._preload = None
        self._shuffles = 0

    def set_feed_type(self, data_feed_type):
        """Sets the name of the reader that Fluid would use; has no effect.

        Args:
            data_feed_type (str): the name.
        """
        self._desc["name"] = data_feed_type

    def set_queue_num(self, queue_num):
        """Sets the number of queues of Fluid's readers; has no effect, because each thread has its own queue.

        Args:
            queue_num (int): at least 1.
        """
        self.queue_num = _positive("queue_num", queue_num)

    def set_parse_ins_id(self, parse_ins_id):
        """Sets whether lines begin with "1 <id>", where the id contains no spaces. global_shuffle then sends instances
        of one id to one trainer.

        Args:
            parse_ins_id (bool): whether lines begin with an id; the default is False. Set it before load_into_memory().
        """
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content):
        """Sets whether "1 <content>" follows the id of a line: a text without spaces, which is skipped. Fluid dumps it.

        Args:
            parse_content (bool): whether lines contain it; the default is False. Set it before load_into_memory().
        """
        self.parse_content = bool(parse_content)

    def set_parse_logkey(self, parse_logkey):
        """Not built: it belongs to Fluid's page views.

        Args:
            parse_logkey (bool): must be False.

        Raises:
            NotImplementedError: `parse_logkey` is true.
        """
        if parse_logkey:
            raise _page_views("set_parse_logkey")

    def set_merge_by_sid(self, merge_by_sid):
        """Has no effect: it belongs to Fluid's page views, which are not built.

        Args:
            merge_by_sid (bool): ignored; accepted for compatibility with Fluid.
        """

    def set_enable_pv_merge(self, enable_pv_merge):
        """Not built: it belongs to Fluid's page views.

        Args:
            enable_pv_merge (bool): must be False.

        Raises:
            NotImplementedError: `enable_pv_merge` is true.
        """
        if enable_pv_merge:
            raise _page_views("set_enable_pv_merge")

    def preprocess_instance(self):
        """Not built: it belongs to Fluid's page views.

        Raises:
            NotImplementedError: always.
        """
        raise _page_views("preprocess_instance")

    def postprocess_instance(self):
        """Not built: it belongs to Fluid's page views.

        Raises:
            NotImplementedError: always.
        """
        raise _page_views("postprocess_instance")

    def set_current_phase(self, current_phase):
        """Not built: it belongs to Fluid's page views.

        Args:
            current_phase (int): not used.

        Raises:
            NotImplementedError: always.
        """
        raise _page_views("set_current_phase")

    def get_pv_data_size(self):
        """Not built: it belongs to Fluid's page views.

        Raises:
            NotImplementedError: always.
        """
        raise _page_views("get_pv_data_size")

    def set_merge_by_lineid(self, merge_size=2):
        """Makes global_shuffle merge the instances of each id into one, and sets parse_ins_id.

        A slot of the merged instance has the numbers of the instance that has some. The instances of an id are dropped,
        with a warning, if there are not `merge_size` of them, or if two of them have numbers in one slot.

        Args:
            merge_size (int): instances of an id; 0: any number.

        Raises:
            ValueError: `merge_size` is no count.
        """
        if isinstance(merge_size, bool) or not isinstance(merge_size, (int, numpy.integer)) or merge_size < 0:
            raise ValueError(f"merge_size must be an integer of at least 0, not {merge_size!r}")
        self.merge_by_lineid, self._merge_size = True, int(merge_size)
        self.parse_ins_id = True

    def set_generate_unique_feasigns(self, generate_uni_feasigns, shard_num):
        """Not built: it belongs to pslib's tables.

        Args:
            generate_uni_feasigns (bool): must be False.
            shard_num (int): not used.

        Raises:
            NotImplementedError: `generate_uni_feasigns` is true.
        """
        if generate_uni_feasigns:
            raise NotImplementedError("InMemoryDataset.set_generate_unique_feasigns is not built")

    def generate_local_tables_unlock(self, table_id, fea_dim, read_thread_num, consume_thread_num, shard_num):
        """Not built: it belongs to pslib's tables.

        Args:
            table_id (int): not used.
            fea_dim (int): not used.
            read_thread_num (int): not used.
            consume_thread_num (int): not used.
            shard_num (int): not used.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("InMemoryDataset.generate_local_tables_unlock is not built")

    def set_fleet_send_batch_size(self, fleet_send_batch_size=1024):
        """Sets how many instances Fluid sends at a time in global_shuffle; has no effect, because each trainer receives
        its instances in one message.

        Args:
            fleet_send_batch_size (int): instances.
        """
        self.fleet_send_batch_size = fleet_send_batch_size

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds=0):
        """Sets how long Fluid waits between two messages of global_shuffle; has no effect.

        Args:
            fleet_send_sleep_seconds (int): seconds.
        """
        self.fleet_send_sleep_seconds = fleet_send_sleep_seconds

    def load_into_memory(self):
        """Reads all files with set_thread() threads and replaces the previously loaded instances. The order is that of
        the files, whatever the number of threads.

        Raises:
            penstock.ProgramError: E-dataset-count, E-dataset-short, E-dataset-number, E-dataset-width,
                E-dataset-line: a line is wrong; the message names file, line and slot. E-dataset-slots: set_use_var
                was not called, or names a variable whose rows have no fixed size.
            penstock.StateError: E-dataset-file, E-dataset-command: a file cannot be read, or a pipe command has failed.
        """
        self._records = self._load(self.thread_num)

    def preload_into_memory(self, thread_num=None):
        """Starts to load in the background. The current instances are kept until wait_preload_done() returns.

        Args:
            thread_num (int): number of reading threads; None: the number of set_thread().

        Raises:
            penstock.StateError: E-dataset-preload: the dataset is already preloading.
        """
        if self._preload is not None:
            raise state_error("E-dataset-preload", "dataset: already preloading; call wait_preload_done() first")
        threads = self.thread_num if thread_num is None else _positive("thread_num", thread_num)
        self._preload = _Preload(lambda: self._load(threads))

    def wait_preload_done(self):
        """Waits until the load that preload_into_memory() started has ended.

        Raises:
            penstock.StateError: E-dataset-preload: the dataset is not preloading.
            penstock.ProgramError: the errors of load_into_memory().
        """
        if self._preload is None:
            raise state_error("E-dataset-preload", "dataset: nothing is preloading; call preload_into_memory() first")
        preload, self._preload = self._preload, None
        self._records = preload.result()

    def _load(self, threads):
        self._require_files()
        records = self._native(drops_zeros=True, has_ids=self.parse_ins_id, has_contents=self.parse_content)
        records.load(self.filelist, self._desc["pipe_command"], threads)
        return records

    def _loaded(self):
        if self._records is None:
            raise state_error("E-dataset-empty", "dataset: nothing is loaded; call load_into_memory() first")
        return self._records

    def _next_seed(self):
        """Returns a seed that is equal on all trainers and different for each shuffle."""
        self._shuffles += 1
        return (framework.default_main_program().random_seed << 20) + self._shuffles

    def local_shuffle(self):
        """Shuffles the instances of this trainer. The order depends on the default main program's random_seed, on the
        number of earlier shuffles, and on the previous order."""
        self._loaded().shuffle(self._next_seed())

    def global_shuffle(self, fleet=None, thread_num=12):
        """Redistributes the instances among all trainers, and shuffles the instances of each.

        The trainer that receives an instance depends on the numbers of the instance, or its id (set_parse_ins_id), on
        the random_seed and on the number of the shuffle, but not on the trainer that has read it. Equal instances go to
        the same trainer.

        Args:
            fleet (Fleet): the fleet whose trainers take part; all trainers must call the method. None: only this
                trainer.
            thread_num (int): has no effect.

        Raises:
            penstock.StateError: E-dataset-empty: nothing is loaded; E-fleet-workers: the trainers do not know each
                other's addresses.
            penstock.PeerError: a trainer is gone.
        """
        records, seed = self._loaded(), self._next_seed()
        if fleet is not None and fleet.worker_num() > 1:
            received = fleet._role_maker._exchange(records.pack(fleet.worker_num(), seed))
            records.clear()
            for part in received:
                records.unpack(part)
        records.shuffle(seed)
        if self.merge_by_lineid:
            self._merge(records)

    def _merge(self, records):
        """Merges the instances of each id, and warns about those that it drops."""
        dropped = records.merge_by_id(self._merge_size)
        for name, count, slot in dropped[:_WARNED_MOST]:
            log.warning(
                f"dataset: {count} instances of the id {name} are dropped: "
                f"{(f'two of them have numbers in the slot {slot}' if slot else f'merge_size is {self._merge_size}')}"
            )
        if len(dropped) > _WARNED_MOST:
            log.warning(f"dataset: the instances of {len(dropped) - _WARNED_MOST} further ids are dropped")

    def _shuffle_slots(self, slots):
        self._loaded().shuffle_slots(slots, self._candidates, self._next_seed())

    def release_memory(self):
        """Frees the loaded instances."""
        if self._records is not None:
            self._records.clear()
            self._records = None

    def get_memory_data_size(self, fleet=None):
        """Counts the loaded instances.

        Args:
            fleet (Fleet): the fleet whose trainers' instances are counted; all trainers must call the method. None:
                only this trainer.

        Returns:
            int: their number; 0 if nothing is loaded.
        """
        size = 0 if self._records is None else self._records.size()
        if fleet is None:
            return size
        whole = numpy.zeros(1, "int64")
        fleet._role_maker.all_reduce_worker(numpy.array([size]), whole)
        return int(whole[0])

    def get_shuffle_data_size(self, fleet=None):
        """Counts the instances after a shuffle, like get_memory_data_size().

        Args:
            fleet (Fleet | None): as in get_memory_data_size().

        Returns:
            int: their number.
        """
        return self.get_memory_data_size(fleet)

    def _start(self, threads):
        records = self._loaded()
        reading = records.read_records(threads, self._desc["batch_size"])

        def stop():
            reading.stop()
            records.end_reading_records()

        return reading, stop


class _Preload:
    """A load in its own thread."""

    def __init__(self, load):
        self._loaded = self._error = None
        self._thread = threading.Thread(target=self._run, args=(load,), name="penstock-preload", daemon=True)
        self._thread.start()

    def _run(self, load):
        try:
            self._loaded = load()
        except BaseException as error:
            self._error = error

    def result(self):
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._loaded
