"""Operations of all ranks on NumPy arrays, and handles of asynchronous ones."""

import itertools
import threading
import zlib

import numpy

from penstock import _penstock
from penstock._call_site import call_site
from penstock._errors import program_error
from penstock.fluid._process_end import watch_this_thread
from penstock.hvd._job import the_job
from penstock.hvd.compression import Compression

# The types that ranks exchange, by numpy's name; bools cannot be reduced.
_TYPES = {'float16': 'f16', 'float32': 'f32', 'float64': 'f64', 'int8': 'i8', 'uint8': 'u8', 'int32': 'i32',
          'int64': 'i64', 'bool': 'bool'}
_EXTENTS_MAX = 64    # of an array in numpy


class _Reduction:

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return 'hvd.%s' % self.name


Average, Sum, Adasum = _Reduction('Average'), _Reduction('Sum'), _Reduction('Adasum')
Min, Max, Product = _Reduction('Min'), _Reduction('Max'), _Reduction('Product')
_NAMES = {Average: 'mean', Sum: 'sum', Min: 'min', Max: 'max', Product: 'product'}


class _Label:
    """The name and the user's line of an operation, which other ranks receive. Names must be equal on all ranks."""

    def __init__(self, function, name):
        if name is not None and not isinstance(name, str):
            raise TypeError('hvd.%s: name must be a str, not %s' % (function, type(name).__name__))
        self.text = ', '.join(part for part in (name or 'hvd.%s' % function, call_site()) if part)
        self.tag = zlib.crc32(name.encode('utf-8', 'surrogateescape')) if name else 0


class _Operation:
    """An operation that was started, and its result."""

    def __init__(self, pending, array, finish=None):
        self._pending, self._array, self._finish = pending, array, finish

    def done(self):
        return self._pending is None or self._pending.done()

    def wait(self):
        if self._pending is not None:
            self._pending.wait()
        return self._array if self._finish is None else self._finish(self._array)


_lock = threading.Lock()
_numbers = itertools.count(1)
_operations = {}    # by handle


def _keep(operation):
    with _lock:
        handle = next(_numbers)
        _operations[handle] = operation
    return handle


def _unknown(function, handle):
    return program_error('E-hvd-handle', 'hvd.%s: no operation has the handle %r; each is synchronized once' %
                         (function, handle))


def poll(handle):
    """Tells whether an operation has ended, so that `synchronize` returns at once.

    Args:
        handle (int): the result of a function with _async.

    Returns:
        bool: whether it has ended.

    Raises:
        penstock.ProgramError: there is no such operation, or it was synchronized already (E-hvd-handle).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        handle = hvd.allreduce_async(np.ones(2, 'float32'))
        hvd.poll(handle)
        hvd.synchronize(handle)
    """
    operation = _operations.get(handle)
    if operation is None:
        raise _unknown('poll', handle)
    return operation.done()


def synchronize(handle):
    """Waits for an operation that a function with _async started.

    Args:
        handle (int): the result of that function.

    Returns:
        numpy.ndarray: the result of the function without _async.

    Raises:
        penstock.ProgramError: there is no such operation, or it was synchronized already (E-hvd-handle).
        penstock.PeerError: another rank is gone.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        total = hvd.synchronize(hvd.allreduce_async(np.ones(2, 'float32'), op=hvd.Sum))
    """
    with _lock:
        operation = _operations.pop(handle, None)
    if operation is None:
        raise _unknown('synchronize', handle)
    return operation.wait()


def _begin(function):
    watch_this_thread()
    return the_job(function)


def _type_of(function, array, reduced=False):
    name = array.dtype.name
    if name in _TYPES and not (reduced and name == 'bool'):
        return _TYPES[name]
    raise program_error('E-hvd-array', 'hvd.%s: ranks do not %s elements of %s; use %s' %
                        (function, 'reduce' if reduced else 'exchange', name,
                         ', '.join(each for each in _TYPES if not (reduced and each == 'bool'))))


def _copied(array):
    array = numpy.asarray(array)
    return numpy.array(array, dtype=array.dtype.newbyteorder('='), order='C')


def _own(function, array):
    """Returns the array; raises if other ranks cannot write its memory."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError('hvd.%s changes its argument, a numpy array, not %s' % (function, type(array).__name__))
    if array.flags.c_contiguous and array.flags.writeable and array.flags.aligned and array.dtype.isnative:
        return array
    raise program_error('E-hvd-array', 'hvd.%s: an array that is changed in place must be C-contiguous, aligned, '
                        'writeable and of native bytes; use hvd.%s' % (function, function.rstrip('_')))


def _op_of(function, average, op):
    if average is not None and op is not None:
        raise program_error('E-hvd-op', 'hvd.%s: average=%r and op=%r were both given; give op' %
                            (function, average, op))
    if average is not None:
        return Average if average else Sum
    op = Average if op is None else op
    if not isinstance(op, _Reduction):
        raise program_error('E-hvd-op', 'hvd.%s: op is %r; it must be hvd.Average, Sum, Adasum, Min, Max or Product' %
                            (function, op))
    return op


def _reduce(function, array, average, name, op):
    """Starts the reduction of `array` in place."""
    op = _op_of(function, average, op)
    kind = _type_of(function, array, reduced=True)
    if op is Average and array.dtype.kind != 'f':
        raise program_error('E-hvd-op', 'hvd.%s: the mean of %s may not be one of them; use op=hvd.Sum' %
                            (function, array.dtype.name))
    label = _Label(function, name)
    if op is Adasum:
        _penstock.arrays_adasum(array, kind, label.text, label.tag)
        return _Operation(None, array)
    return _Operation(_penstock.arrays_all_reduce(array, kind, _NAMES[op], label.text, label.tag), array)


def allreduce_async(tensor, average=None, name=None, op=None):
    """Starts an allreduce.

    Args:
        tensor (numpy.ndarray): as for `allreduce`.
        average (bool | None): the older spelling of `op`: True is Average, False is Sum.
        name (str | None): appears in errors; must be equal on all ranks.
        op (object): as for `allreduce`; with Adasum the function returns after the operation has ended.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        handle = hvd.allreduce_async(np.ones(2, 'float32'))
        mean = hvd.synchronize(handle)
    """
    _begin('allreduce_async')
    return _keep(_reduce('allreduce_async', _copied(tensor), average, name, op))


def allreduce_async_(tensor, average=None, name=None, op=None):
    """Starts an allreduce in place. Do not use the array before `synchronize`.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        average (bool | None): the older spelling of `op`.
        name (str | None): appears in errors; must be equal on all ranks.
        op (object): as for `allreduce`.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = np.ones(2, 'float32')
        hvd.synchronize(hvd.allreduce_async_(array))
    """
    _begin('allreduce_async_')
    return _keep(_reduce('allreduce_async_', _own('allreduce_async_', tensor), average, name, op))


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None):
    """Reduces an array over all ranks, element by element.

    Cost per rank, for S bytes and P ranks: 2 S (P - 1) / P bytes read and written on one host, or sent over TCP; S log2
    P for Adasum.

    Args:
        tensor (numpy.ndarray): of the same shape and type on all ranks: float16, float32, float64, int8, int32, int64
            or uint8.
        average (bool | None): the older spelling of `op`: True is Average, False is Sum.
        name (str | None): appears in errors; must be equal on all ranks.
        compression (Compression): Compression.fp16 exchanges floats in half precision.
        op (object): Average (floats only; the default), Sum, Min, Max, Product, or Adasum, which needs 2, 4, 8, ...
            ranks.

    Returns:
        numpy.ndarray: a new array.

    Raises:
        penstock.ProgramError: the array or the reduction is not supported, or another rank runs another operation
            (E-collective-mismatch).
        penstock.PeerError: another rank is gone.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        mean = hvd.allreduce(np.full(2, hvd.rank(), 'float32'))
    """
    _begin('allreduce')
    exchanged, context = compression.compress(numpy.asarray(tensor))
    return compression.decompress(_reduce('allreduce', _copied(exchanged), average, name, op).wait(), context)


def allreduce_(tensor, average=None, name=None, op=None):
    """Reduces an array over all ranks in its own memory.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        average (bool | None): the older spelling of `op`.
        name (str | None): appears in errors; must be equal on all ranks.
        op (object): as for `allreduce`.

    Returns:
        numpy.ndarray: `tensor`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.allreduce_(np.ones(2, 'float32'), op=hvd.Sum)
    """
    _begin('allreduce_')
    return _reduce('allreduce_', _own('allreduce_', tensor), average, name, op).wait()


def _gather(function, tensor, name):
    array = _copied(tensor)
    kind = _type_of(function, array)
    if array.ndim == 0:
        raise program_error('E-hvd-array', 'hvd.%s concatenates along the first axis, but this array has no axes' %
                            function)
    label = _Label(function, name)
    shapes = _shapes(function, array, label)
    counts = [int(numpy.prod(shape, dtype='int64')) for shape in shapes]
    out = numpy.empty((sum(shape[0] for shape in shapes),) + array.shape[1:], array.dtype)
    return _Operation(_penstock.arrays_all_gather(array, out, kind, counts, label.text, label.tag), out)


def _shapes(function, array, label):
    """Returns the shapes of all ranks' arrays. Waits for all ranks."""
    ranks = len(the_job(function).addresses)
    mine = numpy.full(2 + _EXTENTS_MAX, 0, 'int64')
    mine[:2 + array.ndim] = (list(_TYPES).index(array.dtype.name), array.ndim) + array.shape
    all_ranks = numpy.empty((ranks, len(mine)), 'int64')
    _penstock.arrays_all_gather(mine, all_ranks, 'i64', [len(mine)] * ranks, label.text, label.tag).wait()
    shapes = []
    for rank, (kind, extents, *rest) in enumerate(all_ranks.tolist()):
        shapes.append(tuple(rest[:extents]))
        if (kind, shapes[rank][1:]) != (all_ranks[0][0], shapes[0][1:]):
            names = list(_TYPES)
            raise program_error(
                'E-hvd-allgather', 'hvd.%s: rank 0 gathers %s%s, rank %d %s%s; only the first extents may differ (%s)' %
                (function, names[all_ranks[0][0]], list(shapes[0]), rank, names[kind], list(shapes[rank]), label.text))
    return shapes


def allgather_async(tensor, name=None):
    """Starts an allgather, after it has exchanged the shapes of all ranks.

    Args:
        tensor (numpy.ndarray): as for `allgather`.
        name (str | None): appears in errors; must be equal on all ranks.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        rows = hvd.synchronize(hvd.allgather_async(np.ones((1, 2))))
    """
    _begin('allgather_async')
    return _keep(_gather('allgather_async', tensor, name))


def allgather(tensor, name=None):
    """Concatenates the rows of all ranks' arrays, in the order of the ranks.

    Args:
        tensor (numpy.ndarray): shape [rows, ...]; the number of rows may differ between ranks and may be 0; type and
            further extents must be equal.
        name (str | None): appears in errors; must be equal on all ranks.

    Returns:
        numpy.ndarray: shape [rows of all ranks, ...].

    Raises:
        penstock.ProgramError: types or further extents differ (E-hvd-allgather); all ranks raise it.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        rows = hvd.allgather(np.full((1, 2), hvd.rank()))
    """
    _begin('allgather')
    return _gather('allgather', tensor, name).wait()


def _give(function, array, root_rank, name):
    """Starts the broadcast of `array` in place."""
    kind = _type_of(function, array)
    ranks = len(the_job(function).addresses)
    if isinstance(root_rank, bool) or not isinstance(root_rank, (int, numpy.integer)) or not 0 <= root_rank < ranks:
        raise program_error('E-hvd-root', 'hvd.%s: root_rank is %r; it must be from 0 to %d' %
                            (function, root_rank, ranks - 1))
    label = _Label(function, name)
    return _Operation(_penstock.arrays_broadcast(array, kind, int(root_rank), label.text, label.tag), array)


def broadcast_async(tensor, root_rank, name=None):
    """Starts a broadcast.

    Args:
        tensor (numpy.ndarray): as for `broadcast`.
        root_rank (int): the rank whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.synchronize(hvd.broadcast_async(np.ones(2), root_rank=0))
    """
    _begin('broadcast_async')
    return _keep(_give('broadcast_async', _copied(tensor), root_rank, name))


def broadcast_async_(tensor, root_rank, name=None):
    """Starts a broadcast in place. Do not use the array before `synchronize`.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        root_rank (int): the rank whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.

    Returns:
        int: a handle for `synchronize`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = np.ones(2)
        hvd.synchronize(hvd.broadcast_async_(array, root_rank=0))
    """
    _begin('broadcast_async_')
    return _keep(_give('broadcast_async_', _own('broadcast_async_', tensor), root_rank, name))


def broadcast(tensor, root_rank, name=None):
    """Returns the array of one rank on all ranks.

    Args:
        tensor (numpy.ndarray): of the same shape and type on all ranks.
        root_rank (int): the rank whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.

    Returns:
        numpy.ndarray: a new array.

    Raises:
        penstock.ProgramError: there is no such rank (E-hvd-root).

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.broadcast(np.ones(2), root_rank=0)
    """
    _begin('broadcast')
    return _give('broadcast', _copied(tensor), root_rank, name).wait()


def broadcast_(tensor, root_rank, name=None):
    """Overwrites an array with that of one rank.

    Args:
        tensor (numpy.ndarray): C-contiguous and writeable.
        root_rank (int): the rank whose array all ranks receive.
        name (str | None): appears in errors; must be equal on all ranks.

    Returns:
        numpy.ndarray: `tensor`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        array = hvd.broadcast_(np.ones(2), root_rank=0)
    """
    _begin('broadcast_')
    return _give('broadcast_', _own('broadcast_', tensor), root_rank, name).wait()


def barrier():
    """Waits until all ranks have called it.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        hvd.barrier()
    """
    _begin('barrier')
    _penstock.arrays_barrier(_Label('barrier', None).text).wait()
