"""Batches of trainers that have different numbers of them: trainers agree before each step who has one."""

import numpy

from penstock import _penstock
from penstock._call_site import call_site
from penstock._errors import program_error
from penstock.fluid import _process_end, core, lod_tensor

LIVE = '@RANK_LIVE@'    # what the program reads: whether this trainer's examples count
CHOICES = ('', 'join', 'pad', 'error')


def check(on_uneven):
    if on_uneven not in CHOICES:
        raise ValueError('BuildStrategy.on_uneven must be one of %s, not %r' %
                         (', '.join(map(repr, CHOICES)), on_uneven))


def batches(compiled, feeds):
    """As CompiledProgram.batches says."""
    strategy = compiled._build_strategy
    check(strategy.on_uneven)
    if not strategy.on_uneven:
        raise ValueError("CompiledProgram.batches needs BuildStrategy.on_uneven: 'join', 'pad' or 'error'")
    if strategy.num_trainers == 1:
        return iter(feeds())
    addresses, label = compiled._addresses(), ', '.join(part for part in ('batches', call_site()) if part)
    return _until_all_end(compiled, feeds, addresses, label)


def _until_all_end(compiled, feeds, addresses, label):
    on_uneven, rank = compiled._build_strategy.on_uneven, compiled._build_strategy.trainer_id
    _process_end.watch_this_thread()
    _penstock.arrays_join(addresses, rank)
    own, ended, last, step = iter(feeds()), False, None, 0
    while True:
        feed = next(own, None)
        ended = ended or feed is None
        have = _of_all(not ended, len(addresses), label)
        if not any(have):
            compiled._live = True
            return
        if not all(have) and on_uneven == 'error':
            raise _uneven_data(have, step)
        if feed is None and on_uneven == 'pad':
            own = iter(feeds())
            feed = next(own, None)
            if feed is None:
                raise ValueError('CompiledProgram.batches: trainer %d has no batch at all to pad with' % rank)
        compiled._live = feed is not None
        last = feed if feed is not None else _blank(compiled._program) if last is None else last
        step += 1
        yield last


def _of_all(mine, ranks, label):
    """What each rank says."""
    said = numpy.empty(ranks, 'int64')
    _penstock.arrays_all_gather(numpy.array([mine], 'int64'), said, 'i64', [1] * ranks, label, 0).wait()
    return [bool(one) for one in said]


def _uneven_data(have, step):
    names = {flag: ', '.join(str(rank) for rank, one in enumerate(have) if one == flag) for flag in (True, False)}
    return program_error(
        'E-uneven-data', "batches: in step %d trainers %s have a batch and trainers %s have none" %
        (step, names[True], names[False]), "note: on_uneven 'join' or 'pad' lets the others go on")


def _blank(program):
    """One example of zeros."""
    feed = {}
    for var in program.list_vars():
        if not getattr(var, 'is_data', False) or var.type != core.VarDesc.VarType.LOD_TENSOR:
            continue
        zeros = numpy.zeros([max(extent, 1) for extent in var.shape], core.dtype_name(var.dtype))
        levels = [[1]] * var.lod_level
        feed[var.name] = lod_tensor.create_lod_tensor(zeros, levels, core.CPUPlace()) if levels else zeros
    return feed
