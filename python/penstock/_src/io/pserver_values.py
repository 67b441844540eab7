"""The variables of a pserver's program, set from whole variables: parameters, optimizer state and learning-rate steps.

A pserver holds slices of variables, in any number; a saved model holds whole variables, like one machine's. Gradients
are persistable in a pserver's program, but they are no part of a model.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import program_error, state_error
from penstock._src.base.file_writing import SavedFolder
from penstock._src.executor.scopes import global_scope
from penstock._src.io import var_records
from penstock._src.io.pserver_held import ALL_KINDS, OPTIONAL_KINDS, counters_of, held_by, serve_of, step_of
from penstock._src.io.table_files import Shard, is_saved, read_named, shard_files
from penstock._src.ir.types import VarType, dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Optional

    from penstock._penstock import RuntimeVariable
    from penstock._src.io.pserver_held import Held
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable

    ValueOf = Callable[[str], Optional[tuple[Array, str]]]  # name of a whole variable -> its value, where it is from


# Folder inside the folder of a save, in which pservers write their slices.
STATE_FOLDER = "__pserver_state__"


def is_in_folder(dirname: str) -> Callable[[str], bool]:
    """Returns a `has_value` for programs_in: the files of a folder."""
    return lambda name: is_saved(dirname, name)


def set_from(
    program: Program,
    value_of: ValueOf,
    kinds: Sequence[str] = ALL_KINDS,
    names: set[str] | None = None,
    may_lack: Sequence[str] = OPTIONAL_KINDS,
) -> list[str]:
    """Sets variables of a pserver's program from whole values.

    Args:
        program (Program): the pserver's program, whose startup program has run.
        value_of (callable): takes the name of a whole variable and returns (array, where it is from), or None.
        kinds (tuple): the kinds of variables to set.
        names (set | None): the whole variables to set; None: all.
        may_lack (tuple): kinds of variables that keep their values if there is no value for them.

    Returns:
        list[str]: the whole variables for which there is no value.

    Raises:
        ValueError: a value that may not lack does, or one does not fit.
    """
    lacking: list[str] = []
    whole: tuple[str | None, tuple[Array, str] | None] = (None, None)
    for held in held_by(program):
        variable = global_scope().find_var(held.name)
        if held.kind not in kinds or (names is not None and held.whole not in names):
            continue
        if variable is None or not variable.is_initialized():
            if held.kind == "constant":
                continue
            raise state_error(
                "E-load-startup", f"variable {held.name} has no value yet; run the startup program of the pserver first"
            )
        if held.whole != whole[0]:  # slices of one parameter are adjacent
            whole = held.whole, value_of(held.whole)
        if whole[1] is None:
            lacking.append(held.whole)
            if held.kind not in may_lack:
                raise program_error(
                    "E-load-missing",
                    f"there is no value of {held.whole}, of which pserver {program._ps_endpoint} holds {held.name}",
                )
            continue
        if held.kind == "counter":
            _set_counter(program, held, variable, *whole[1])
        else:
            _set(held, variable, *whole[1], program._ps_endpoint)
    return lacking


def _set_counter(program: Program, held: Held, variable: RuntimeVariable, value: Array, there: str) -> None:
    """One machine's counter has the number of its last step. The trainers' counters add up to that of the next one."""
    if value.size != 1:
        raise program_error("E-load-type", f"{there} holds {held.whole} of shape {list(value.shape)}, not a counter")
    first = next(one for one, whole in counters_of(program, serve_of(program)).items() if whole == held.whole)
    total = numpy.array(value).reshape(1) + type(value.flat[0])(step_of(program._source_main, held.whole))
    tensor = variable.get_tensor()
    tensor.set((total if held.name == first else numpy.zeros(1)).astype(dtype_name(tensor._dtype())), None)


def _set(held: Held, variable: RuntimeVariable, value: Array, there: str, endpoint: str) -> None:
    tensor = variable.get_tensor()
    expected = tuple(tensor.shape() if held.whole_shape is None else held.whole_shape)
    dtype = dtype_name(tensor._dtype())
    if tuple(value.shape) != expected or value.dtype.name != dtype:
        raise program_error(
            "E-load-type",
            f"{there} holds {held.whole} : {value.dtype.name}{list(value.shape)}, but pserver {endpoint} has "
            f"{dtype}{list(expected)} of it",
        )
    if held.whole_shape is not None:
        begin = held.offset or 0
        value = value.reshape(-1)[begin : begin + int(numpy.prod(held.shape))].reshape(held.shape)
    tensor.set(numpy.ascontiguousarray(value), None)


def from_folder(dirname: str) -> ValueOf:
    """Returns a `value_of` for set_from: the files of a folder, one for each whole variable."""
    if not os.path.isdir(dirname):
        raise program_error("E-load-folder", f"there is no folder {dirname}")
    saved = SavedFolder(dirname)

    def value_of(name: str) -> tuple[Array, str] | None:
        path = var_records.file_of(dirname, name)
        try:
            data = saved.read(name)
        except FileNotFoundError:
            return None
        return numpy.array(var_records.parse(path, data, 0)[0].get_tensor()), path

    return value_of


def from_one_file(data: bytes, there: str, program: Program, chosen: Callable[[Variable], bool]) -> ValueOf:
    """Returns a `value_of` for set_from: the bytes of one file with all variables of the program before it was
    transpiled for which chosen(variable) holds."""
    names = sorted(var.name for var in program._source_main.list_vars() if chosen(var))
    values = dict(zip(names, var_records.records_in(data, there, names)))
    return lambda name: (numpy.array(values[name].get_tensor()), there) if name in values else None


def from_arrays(arrays: Mapping[str, Array], there: str) -> ValueOf:
    """Returns a `value_of` for set_from: arrays by name."""
    return lambda name: (arrays[name], there) if name in arrays else None


def load_folder(program: Program, dirname: str, kinds: Sequence[str] = ALL_KINDS, strictly: bool = True) -> None:
    """Loads a pserver's variables, tables included, from a folder that save_persistables has written.

    Args:
        program (Program): the pserver's program, whose startup program has run.
        dirname (str): the folder.
        kinds (tuple): the kinds of variables to load.
        strictly (bool): True: optimizer state that is not in the folder is an error; False: a warning.
    """
    value_of, own = from_folder(dirname), _collected_slices(program, dirname)
    optional = () if strictly and not own else ("state", "counter")
    lacking = set_from(program, value_of, kinds, may_lack=OPTIONAL_KINDS + optional)
    for held in held_by(program):
        variable = global_scope().find_var(held.name)
        if held.name in own and held.kind in kinds and variable is not None:
            value, path = own[held.name]
            _set(held._replace(whole_shape=None), variable, value, path, program._ps_endpoint)
    afresh = {
        held.whole
        for held in held_by(program)
        if held.kind not in ("parameter", "constant", "table state") and held.whole in lacking and held.name not in own
    }
    afresh.update(load_tables(program, dirname, kinds))
    if afresh and "state" in kinds:
        warnings.warn(
            f"{dirname} has no value of {', '.join(sorted(afresh))}: this optimizer state starts afresh",
            stacklevel=stack_level(),
        )


def _collected_slices(program: Program, dirname: str) -> dict[str, tuple[Array, str]]:
    """Returns {name: (array, path)} of the files that this pserver has written itself, if they were collected in the
    folder."""
    folder = os.path.join(dirname, STATE_FOLDER)
    if not os.path.isdir(folder):
        return {}
    values: dict[str, tuple[Array, str]] = {}
    for one in program._parameters_on_pservers.get_distributed_vars_by_ep(program._ps_endpoint):
        path = var_records.file_of(folder, one.slice.name + "_0")
        if not os.path.isfile(path):
            raise program_error(
                "E-load-missing",
                f"{folder} has no file of {one.slice.name}, which pserver {program._ps_endpoint} holds: collect the "
                "files of all pservers there, "
                "and load them on as many pservers as have written them",
            )
        values.update({name: (value, path) for name, value in read_named(path).items()})
    return values


def _rows_of_state(program: Program, table: str | None = None) -> list[str]:
    """Returns the optimizer state that has rows like a table sharded by id: of all such tables, or of one."""
    block, tables = program.global_block(), set(program._sharded_tables if table is None else [table])
    return sorted(
        {
            name
            for each in program.blocks[1:]
            for op in each.ops
            for name in set(op.input_arg_names).intersection(op.output_arg_names)
            if tables.intersection(op.output_arg_names)
            and name not in program._sharded_tables
            and block.has_var(name)
            and block.var(name).persistable
            and block.var(name).type == VarType.SELECTED_ROWS
        }
    )


def load_tables(program: Program, dirname: str, kinds: Sequence[str], tables: set[str] | None = None) -> list[str]:
    """Loads this pserver's rows of tables sharded by id, or of some of them, and what their updates keep, from the
    shards of save_persistables or from whole variables.

    Args:
        program (Program): the pserver's program, whose startup program has run.
        dirname (str): the folder.
        kinds (tuple): the kinds of variables to load beside the tables; 'state' includes the rows of states.
        tables (set | None): names of the tables; None: all.

    Returns:
        list[str]: the states for which the folder has no rows.
    """
    servers, saved = getattr(program, "_pservers", ()), SavedFolder(dirname)
    afresh: list[str] = []
    for table in getattr(program, "_sharded_tables", ()) if tables is None else sorted(tables):
        paths = shard_files(dirname, table)
        if paths:
            own = [paths[servers.index(program._ps_endpoint)]] if len(paths) == len(servers) else paths
            afresh += _set_shards(program, [Shard(path, table, saved) for path in own], table, kinds)
            continue
        states = _rows_of_state(program, table) if "state" in kinds else []
        wholes = {name: var_records.file_of(dirname, name) for name in [table, *states]}
        set_tables(
            program,
            {
                name: numpy.array(var_records.read_single(path).get_tensor())
                for name, path in wholes.items()
                if os.path.isfile(path)
            },
        )
        afresh += [name for name in states if not os.path.isfile(wholes[name])]
    return afresh


def load_shard(program: Program, table: str, path: str, kinds: Sequence[str]) -> None:
    """Loads the rows of a table that are in a file and belong to this pserver, and from the file beside it what its
    updates keep of these kinds. Rows that the file lacks keep their initial values."""
    _set_shards(program, [Shard(path, table)], table, kinds)


def _set_shards(program: Program, shards: list[Shard], table: str, kinds: Sequence[str]) -> list[str]:
    """Sets this pserver's rows of a table and of its states, and the scalars of these kinds. Returns the states that
    the shards do not have."""
    number, servers = program._pservers.index(program._ps_endpoint), len(program._pservers)
    states = _rows_of_state(program, table) if "state" in kinds else []
    ids = numpy.concatenate([shard.ids for shard in shards])
    have = [name for name in states if all(name in shard.columns for shard in shards)]
    for name in [table, *have]:
        filled = [shard.columns[name] for shard in shards if len(shard.ids)]
        _set_rows(name, number, servers, ids, numpy.concatenate(filled) if filled else None)
    scalars = shards[0].scalars
    for held in held_by(program):
        variable = global_scope().find_var(held.name)
        if held.name in scalars and held.kind in kinds and variable is not None:
            _set(held._replace(whole_shape=None), variable, scalars[held.name], shards[0].path, program._ps_endpoint)
    return [name for name in states if name not in have]


def set_tables(program: Program, arrays: Mapping[str, Array]) -> list[str]:
    """Sets this pserver's rows of tables sharded by id, and of their state, from whole variables by name. Returns the
    names of the tables."""
    servers = getattr(program, "_pservers", ())
    found = [table for table in getattr(program, "_sharded_tables", ()) if table in arrays]
    for table in found:
        for name in [table, *(name for name in _rows_of_state(program, table) if name in arrays)]:
            _set_rows(
                name, servers.index(program._ps_endpoint), len(servers), numpy.arange(len(arrays[name])), arrays[name]
            )
    return found


def _set_rows(name: str, number: int, servers: int, ids: Array, values: Array | None) -> None:
    """Sets this pserver's rows: those whose id leaves its number when divided by the number of pservers."""
    if values is None:
        return
    own = ids % servers == number
    rows = global_scope().var(name).get_selected_rows()
    height = rows.height()
    rows.set_rows([int(row) for row in ids[own]])
    rows.set_height(height)
    rows.get_tensor().set(numpy.ascontiguousarray(values[own]), None)
