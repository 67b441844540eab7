"""Runs a data-parallel program on several places of this process.

Each place runs the forward and backward pass of its part of the batch on a thread of its own, gradients become the
mean of all places', and the first place updates the parameters, which all places share. What forward passes keep (the
running moments of batch_norm, the sums of a metric) each place keeps for itself; the scope has those of the first.
"""

import numpy

from penstock import _penstock
from penstock.fluid import core, framework
from penstock.fluid.framework import OpRole


def asks_servers(program):
    """Whether the program exchanges parameters with pservers: then it runs on one place, whose thread makes a step."""
    return any(op.has_attr('op_role') and op.attr('op_role') & OpRole.RPC for op in program.global_block().ops)


def trains(program):
    """Whether an op of the program completes the gradient of a parameter."""
    return any(op.has_attr('op_role_var') and op.attr('op_role_var') and op.attr('op_role') & OpRole.Backward
               for op in program.global_block().ops)


class PlacesOfProgram:
    """A program for several places, and the scopes of each place.

    Args:
        program (Program): what one place would run.
        count (int): how many places, at least 2.
        reduction (str): 'mean' or 'sum' of gradients.
        sync_batch_norm (bool): batch_norm takes its moments over all places' examples.
        trains (bool): as trains() says.
    """

    def __init__(self, program, count, reduction, sync_batch_norm, trains):
        self.count = count
        self.trains = trains
        self._programs = [program] * count
        if trains:
            addresses = ['127.0.0.1:%d' % (place + 1) for place in range(count)]    # nobody listens there
            self._programs = [
                framework.Program._of(_penstock.data_parallel(program.desc, addresses, place, 1, reduction,
                                                              sync_batch_norm=sync_batch_norm, places=True)[0])
                for place in range(count)]
        self._written = [_written_names(one) for one in self._programs]
        block = program.global_block()
        self._whole_steps = any(op.type == 'read' and op.has_attr('drop_last') and op.attr('drop_last')
                                for op in program.global_block().ops)
        self._persistables = {var.name for var in program.list_vars() if var.persistable}
        self._kept = sorted(name for name in self._written[-1] if block.has_var(name) and block.var(name).persistable)
        self._places = _penstock.Places(count)
        self._scopes = {}

    def run(self, scope, feeds, fetches):
        """Runs a step.

        Args:
            scope (Scope): holds the parameters.
            feeds (list[list[tuple]]): for each place, names with arrays or LoDTensors. A program that does not train
                may run on fewer places.
            fetches (list[str]): names.

        Returns:
            list[list]: for each place, the values of `fetches`. A variable that only the first place computes, like a
            parameter, has its value there. Places whose reader has ended are left out, unless the program trains.

        Raises:
            penstock.EOFException: the readers have ended.
        """
        scopes = self._scopes.get(scope) or self._make_scopes(scope)
        feeds = [self._keep_persistables(scopes[place], feed) for place, feed in enumerate(feeds)]
        own = [[name for name in fetches if place == 0 or name in self._written[place] or name in dict(feed)]
               for place, feed in enumerate(feeds)]
        values = self._places.run([(self._programs[place].desc, scopes[place], feed, own[place])
                                   for place, feed in enumerate(feeds)], not self.trains)
        if self._whole_steps and None in values:
            raise _penstock.EOFException('the last batches are fewer than the places (drop_last)')
        by_name = [dict(zip(names, of_place)) for names, of_place in zip(own, values) if of_place is not None]
        shared = dict(zip(own[0], values[0])) if values[0] is not None else {}
        return [[of_place[name] if name in of_place else shared.get(name) or scope.find_var(name).get_tensor()
                 for name in fetches] for of_place in by_name]

    def _keep_persistables(self, scope, feed):
        """Sets what is fed to persistable variables in the place's scope. Returns the other feeds."""
        rest = []
        for name, value in feed:
            if name in self._persistables:
                _set_tensor(scope.var(name), value)
            else:
                rest.append((name, value))
        return rest

    def _make_scopes(self, scope):
        scopes = [scope] + [scope.new_scope() for _ in range(1, self.count)]
        for child in scopes[1:]:
            for name in self._kept:
                _copy_tensor(scope, child, name)
        self._scopes[scope] = scopes
        return scopes


def _written_names(program):
    return {name for block in program.blocks for op in block.ops for name in op.output_arg_names}


def _copy_tensor(scope, child, name):
    """The child gets a variable of its own, with the value that it has in the scope, if any."""
    held, own = scope.find_var(name), child.var(name)
    if held is not None and held.get_tensor()._is_initialized():
        _set_tensor(own, held.get_tensor())


def _set_tensor(variable, value):
    variable.get_tensor().set(numpy.array(value), core.CPUPlace())
    if isinstance(value, core.LoDTensor) and value.lod():
        variable.get_tensor().set_lod(value.lod())


def split(block, feeds, count, trains):
    """The feeds of each place: equal parts of each batch; the last place has what remains, too.

    Args:
        block (Block): declares the variables.
        feeds (list[tuple]): names with arrays or LoDTensors. A tensor with sequences is split between sequences. A
            persistable variable that is fed one row has it on every place.
        count (int): how many places.
        trains (bool): every place needs an example; else fewer places may run.

    Returns:
        list[list[tuple]]: for each place that runs.

    Raises:
        penstock.ProgramError: a batch has fewer examples than there are places, and the program trains.
    """
    values = [(name, numpy.asarray(value), value.lod() if isinstance(value, core.LoDTensor) else [])
              for name, value in feeds]
    sizes = {name: _examples_in(array, lod) for name, array, lod in values}
    for_all = {name for name in sizes if sizes[name] == 1 and block.var(name).persistable}
    used = min([count] + [sizes[name] for name in sizes if name not in for_all])
    if used < 1 or (used < count and trains):
        name, examples = min(((name, sizes[name]) for name in sizes if name not in for_all), key=lambda pair: pair[1])
        raise _penstock.ProgramError(
            'feed: %s has %d examples for %d places; each place needs one at least. Feed larger batches, or use fewer '
            'places (CPU_NUM, or places of with_data_parallel)' % (name, examples, count))
    parts = [[] for _ in range(used)]
    for name, array, lod in values:
        each = sizes[name] // used
        for place, part in enumerate(parts):
            if name in for_all:
                part.append((name, array))
                continue
            end = sizes[name] if place == used - 1 else (place + 1) * each
            part.append((name, _examples_of(array, lod, place * each, end)))
    return parts


def _examples_in(array, lod):
    return len(lod[0]) - 1 if lod else (array.shape[0] if array.ndim else 1)


def _examples_of(array, lod, begin, end):
    """Examples from begin to end: rows, or sequences of the outermost level."""
    if not lod:
        return array[begin:end]
    levels = []
    for level in lod:
        offsets = level[begin:end + 1]
        levels.append([offset - offsets[0] for offset in offsets])
        begin, end = offsets[0], offsets[-1]
    part = core.LoDTensor()
    part.set(array[begin:end], core.CPUPlace())
    part.set_lod(levels)
    return part


def merge(values):
    """One value of all places' values, one after the other: rows, and sequences.

    Args:
        values (list[LoDTensor | LoDTensorArray]): of each place.

    Returns:
        LoDTensor: all of them. Scalars become a vector. Of arrays a list, with the merged tensors of each position.

    Raises:
        ValueError: values are of different kinds or lengths, or differ in other sizes than the first.
    """
    if all(isinstance(value, core.LoDTensorArray) for value in values) and len({len(value) for value in values}) == 1:
        return [merge(list(of_position)) for of_position in zip(*values)]
    if not all(isinstance(value, core.LoDTensor) for value in values):
        raise ValueError('fetch_list: places have values that cannot be joined (tensors can, and arrays of one '
                         'length); use return_merged=False')
    arrays = [numpy.atleast_1d(numpy.asarray(value)) for value in values]
    if len({array.shape[1:] for array in arrays}) > 1:
        raise ValueError('fetch_list: places have values of the shapes %s, which differ in more than their first size; '
                         'use return_merged=False' % ', '.join(str(array.shape) for array in arrays))
    merged = core.LoDTensor()
    merged.set(numpy.concatenate(arrays), core.CPUPlace())
    lengths = [value.recursive_sequence_lengths() for value in values]
    if any(lengths):
        merged.set_recursive_sequence_lengths([sum(of_level, []) for of_level in zip(*lengths)])
    return merged


def join(feeds):
    """One dict of the dicts of several places, for a program that one place runs: batches one after the other."""
    joined = {}
    for name in feeds[0]:
        tensors = []
        for feed in feeds:
            if set(feed) != set(feeds[0]):
                raise ValueError('feed: the dicts of the places have different names: %s and %s' %
                                 (sorted(feeds[0]), sorted(feed)))
            value = feed[name]
            if not isinstance(value, core.LoDTensor):
                array, value = value, core.LoDTensor()
                value.set(numpy.asarray(array), core.CPUPlace())
            tensors.append(value)
        joined[name] = merge(tensors)
    return joined
