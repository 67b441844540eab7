"""InMemoryDataset: instances in memory, which are shuffled and exchanged with other trainers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import numpy

from penstock._src.base import log
from penstock._src.base.absent import refuses
from penstock._src.base.argument_texts import DATASET
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, state_error
from penstock._src.dataset.dataset_base import PAGE_VIEWS, DatasetBase, positive
from penstock._src.ir import framework

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._penstock import Dataset, DatasetReading
    from penstock._src.fleet.base import Fleet
    from penstock._src.fleet.roles import RoleMakerBase


_WARNED_MOST = 3  # ids of dropped instances that warnings name


@with_texts(DATASET)
class InMemoryDataset(DatasetBase):
    """Reads files into memory, where instances can be shuffled and exchanged with other trainers.

    As in Fluid, reading drops zeros in sequences; a sequence that contains only zeros becomes a single zero.

    Example:
        {file_of_two}
        dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
        dataset.set_use_var([x])
        dataset.set_filelist(['part-0'])
        dataset.load_into_memory()
        dataset.local_shuffle()
        assert dataset.get_memory_data_size() == 2
    """

    _FEED = "MultiSlotInMemoryDataFeed"

    def __init__(self) -> None:
        super().__init__()
        self.queue_num: int | None = None
        self.parse_ins_id = self.parse_content = False
        self.merge_by_lineid, self._merge_size = False, 2
        self.fleet_send_batch_size: int | None = None
        self.fleet_send_sleep_seconds: int | None = None
        self._records: Dataset | None = None
        self._preload: _Preload | None = None
        self._shuffles = 0

    def set_feed_type(self, data_feed_type: str) -> None:
        """Sets the name of the reader that Fluid would use; has no effect.

        Args:
            data_feed_type (str): the name.
        """
        self._desc["name"] = data_feed_type

    def set_queue_num(self, queue_num: int) -> None:
        """Sets the number of queues of Fluid's readers; has no effect, because each thread has its own queue.

        Args:
            queue_num (int): at least 1.
        """
        self.queue_num = positive("queue_num", queue_num)

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Sets whether lines begin with "1 <id>", where the id contains no spaces. global_shuffle then sends instances
        of one id to one trainer.

        Args:
            parse_ins_id (bool): whether lines begin with an id; the default is False. Set it before load_into_memory().
        """
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        """Sets whether "1 <content>" follows the id of a line: a text without spaces, which is skipped. Fluid dumps it.

        Args:
            parse_content (bool): whether lines contain it; the default is False. Set it before load_into_memory().
        """
        self.parse_content = bool(parse_content)

    def set_parse_logkey(self, parse_logkey: bool) -> None:
        """Not built: it belongs to Fluid's page views.

        Args:
            parse_logkey (bool): must be False.

        Raises:
            NotImplementedError: `parse_logkey` is true.
        """
        if parse_logkey:
            raise not_built(PAGE_VIEWS.format(method="set_parse_logkey"))

    def set_merge_by_sid(self, merge_by_sid: bool) -> None:
        """Has no effect: it belongs to Fluid's page views, which are not built.

        Args:
            merge_by_sid (bool): ignored; accepted for compatibility with Fluid.
        """

    def set_enable_pv_merge(self, enable_pv_merge: bool) -> None:
        """Not built: it belongs to Fluid's page views.

        Args:
            enable_pv_merge (bool): must be False.

        Raises:
            NotImplementedError: `enable_pv_merge` is true.
        """
        if enable_pv_merge:
            raise not_built(PAGE_VIEWS.format(method="set_enable_pv_merge"))

    @refuses(PAGE_VIEWS)
    def preprocess_instance(self) -> None:
        """Not built: it belongs to Fluid's page views."""

    @refuses(PAGE_VIEWS)
    def postprocess_instance(self) -> None:
        """Not built: it belongs to Fluid's page views."""

    @refuses(PAGE_VIEWS)
    def set_current_phase(self, current_phase: int) -> None:
        """Not built: it belongs to Fluid's page views."""

    @refuses(PAGE_VIEWS)
    def get_pv_data_size(self) -> None:
        """Not built: it belongs to Fluid's page views."""

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
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

    def set_generate_unique_feasigns(self, generate_uni_feasigns: bool, shard_num: int) -> None:
        """Not built: it belongs to pslib's tables.

        Args:
            generate_uni_feasigns (bool): must be False.
            shard_num (int): not used.

        Raises:
            NotImplementedError: `generate_uni_feasigns` is true.
        """
        if generate_uni_feasigns:
            raise not_built("InMemoryDataset.set_generate_unique_feasigns is not built")

    @refuses("InMemoryDataset.{method} is not built")
    def generate_local_tables_unlock(
        self, table_id: int, fea_dim: int, read_thread_num: int, consume_thread_num: int, shard_num: int
    ) -> None:
        """Not built: it belongs to pslib's tables."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Sets how many instances Fluid sends at a time in global_shuffle; has no effect, because each trainer receives
        its instances in one message.

        Args:
            fleet_send_batch_size (int): instances.
        """
        self.fleet_send_batch_size = fleet_send_batch_size

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Sets how long Fluid waits between two messages of global_shuffle; has no effect.

        Args:
            fleet_send_sleep_seconds (int): seconds.
        """
        self.fleet_send_sleep_seconds = fleet_send_sleep_seconds

    def load_into_memory(self) -> None:
        """Reads all files with set_thread() threads and replaces the previously loaded instances. The order is that of
        the files, whatever the number of threads.

        Raises:
            penstock.ProgramError: E-dataset-count, E-dataset-short, E-dataset-number, E-dataset-width,
                E-dataset-line: a line is wrong; the message names file, line and slot. E-dataset-slots: set_use_var
                was not called, or names a variable whose rows have no fixed size.
            penstock.StateError: E-dataset-file, E-dataset-command: a file cannot be read, or a pipe command has failed.
        """
        self._records = self._load(self.thread_num)

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Starts to load in the background. The current instances are kept until wait_preload_done() returns.

        Args:
            thread_num (int): number of reading threads; None: the number of set_thread().

        Raises:
            penstock.StateError: E-dataset-preload: the dataset is already preloading.
        """
        if self._preload is not None:
            raise state_error("E-dataset-preload", "dataset: already preloading; call wait_preload_done() first")
        threads = self.thread_num if thread_num is None else positive("thread_num", thread_num)
        self._preload = _Preload(lambda: self._load(threads))

    def wait_preload_done(self) -> None:
        """Waits until the load that preload_into_memory() started has ended.

        Raises:
            penstock.StateError: E-dataset-preload: the dataset is not preloading.
            penstock.ProgramError: the errors of load_into_memory().
        """
        if self._preload is None:
            raise state_error("E-dataset-preload", "dataset: nothing is preloading; call preload_into_memory() first")
        preload, self._preload = self._preload, None
        self._records = preload.result()

    def _load(self, threads: int) -> Dataset:
        self._require_files()
        records = self._native(drops_zeros=True, has_ids=self.parse_ins_id, has_contents=self.parse_content)
        records.load(self.filelist, self._desc["pipe_command"], threads)
        return records

    def _loaded(self) -> Dataset:
        if self._records is None:
            raise state_error("E-dataset-empty", "dataset: nothing is loaded; call load_into_memory() first")
        return self._records

    def _next_seed(self) -> int:
        """Returns a seed that is equal on all trainers and different for each shuffle."""
        self._shuffles += 1
        return (framework.default_main_program().random_seed << 20) + self._shuffles

    def local_shuffle(self) -> None:
        """Shuffles the instances of this trainer. The order depends on the default main program's random_seed, on the
        number of earlier shuffles, and on the previous order."""
        self._loaded().shuffle(self._next_seed())

    def global_shuffle(self, fleet: Fleet | None = None, thread_num: int = 12) -> None:
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
            received = cast("RoleMakerBase", fleet._role_maker)._exchange(records.pack(fleet.worker_num(), seed))
            records.clear()
            for part in received:
                records.unpack(part)
        records.shuffle(seed)
        if self.merge_by_lineid:
            self._merge(records)

    def _merge(self, records: Dataset) -> None:
        """Merges the instances of each id, and warns about those that it drops."""
        dropped = records.merge_by_id(self._merge_size)
        for name, count, slot in dropped[:_WARNED_MOST]:
            log.warning(
                f"dataset: {count} instances of the id {name} are dropped: "
                f"{(f'two of them have numbers in the slot {slot}' if slot else f'merge_size is {self._merge_size}')}"
            )
        if len(dropped) > _WARNED_MOST:
            log.warning(f"dataset: the instances of {len(dropped) - _WARNED_MOST} further ids are dropped")

    def _shuffle_slots(self, slots: set[str]) -> None:
        self._loaded().shuffle_slots(slots, self._candidates, self._next_seed())

    def release_memory(self) -> None:
        """Frees the loaded instances."""
        if self._records is not None:
            self._records.clear()
            self._records = None

    def get_memory_data_size(self, fleet: Fleet | None = None) -> int:
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
        cast("RoleMakerBase", fleet._role_maker).all_reduce_worker(numpy.array([size]), whole)
        return int(whole[0])

    def get_shuffle_data_size(self, fleet: Fleet | None = None) -> int:
        """Counts the instances after a shuffle, like get_memory_data_size().

        Args:
            fleet (Fleet | None): as in get_memory_data_size().

        Returns:
            int: their number.
        """
        return self.get_memory_data_size(fleet)

    def _start(self, threads: int) -> tuple[DatasetReading, Callable[[], None]]:
        records = self._loaded()
        reading = records.read_records(threads, self._desc["batch_size"])

        def stop() -> None:
            reading.stop()
            records.end_reading_records()

        return reading, stop


class _Preload:
    """A load in its own thread."""

    def __init__(self, load: Callable[[], Dataset]) -> None:
        self._loaded: Dataset | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(load,), name="penstock-preload", daemon=True)
        self._thread.start()

    def _run(self, load: Callable[[], Dataset]) -> None:
        try:
            self._loaded = load()
        except BaseException as error:
            self._error = error

    def result(self) -> Dataset | None:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._loaded
