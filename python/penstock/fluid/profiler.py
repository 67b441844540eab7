"""Times ops, and reports the times as a table by type and as a timeline.

    with fluid.profiler.profiler('CPU', sorted_key='total', profile_path='timeline.json'):
        for batch in batches:
            exe.run(feed=batch, fetch_list=[loss])

All runs of this process are timed, in all its threads. `wait_for_batch` is the time that a run waits for the next batch
of a reader (DataLoader with iterable=False, py_reader): a large one means that the reader is the slow part. The
timeline is a file for chrome://tracing or Perfetto. A trace of the whole job (PENSTOCK_TRACE; `--trace` of the
launcher) has the same times, and what is sent and awaited besides.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.debug.profiler import cuda_profiler, profiler, reset_profiler, start_profiler, stop_profiler

__all__ = ['cuda_profiler', 'profiler', 'reset_profiler', 'start_profiler', 'stop_profiler']

facade.make(__name__)
