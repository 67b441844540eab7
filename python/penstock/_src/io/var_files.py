"""Variables in files, in Fluid's formats: one file per variable, or one file for all in the order of their names."""

from __future__ import annotations

import itertools
import os
import warnings
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.errors import program_error, state_error
from penstock._src.base.file_writing import SavedFolder, save_files
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.remote_params import current_values
from penstock._src.executor.remote_tables import remote_lookups, whole_table
from penstock._src.executor.scopes import global_scope
from penstock._src.io import pserver_held, pserver_values
from penstock._src.io.table_files import shards_with
from penstock._src.io.var_records import (
    NEVER_SAVED,
    file_of,
    is_parameter,
    is_persistable,
    parse,
    read_combined,
    read_saved,
    records_in,
)
from penstock._src.ir import framework
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType, dtype_name
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock._penstock import RuntimeVariable
    from penstock._src.executor.executor import Executor
    from penstock._src.io.table_files import Shard

    Predicate = Callable[[Variable], bool]


def program_or_default(main_program: CompiledProgram | Program | None) -> Program:
    given = framework.default_main_program() if main_program is None else main_program
    program = given._program if isinstance(given, CompiledProgram) else given
    if not isinstance(program, Program):
        raise TypeError(f"program must be a Program, not {type(program).__name__}")
    return program


def _chosen(
    main_program: Program | None, vars: Sequence[Variable | str] | None, predicate: Predicate | None
) -> list[Variable]:
    """Returns the variables to save or load, by name, each once."""
    program = program_or_default(main_program)
    if vars is None:
        if predicate is None:
            raise ValueError("vars and predicate are both None; give one of them")
        vars = [var for var in program.list_vars() if predicate(var)]
    chosen = [var if isinstance(var, Variable) else program.global_block().var(var) for var in vars]
    return sorted({var.name: var for var in chosen if var.type not in NEVER_SAVED}.values(), key=lambda var: var.name)


def held_value(var: Variable) -> RuntimeVariable:
    """Returns the value of a variable in the global scope. Raises an error with its name if it has no value yet."""
    held = global_scope().find_var(var.name)
    if held is None or not held.is_initialized():
        raise state_error("E-save-empty", f"variable {var.name} has no value to save; run the startup program first")
    return held


def save_vars(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None = None,
    vars: Sequence[Variable | str] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Writes variables of the global scope to files, in Fluid's format.

    In a distributed job, trainer 0 also writes the tables whose rows trainers look up, which it fetches from the
    pservers. Any trainer does so for a program that was not transpiled, such as a test program.

    Several files are one save: if the process is killed meanwhile, the folder has all new files or all previous ones.
    The file __digests__ beside them lists their digests, which load_vars compares.

    Args:
        executor (Executor): fetches such tables.
        dirname (str | None): the folder; None: return the bytes of one file for all.
        main_program (Program | None): the program; None: the default main program.
        vars (list[Variable | str] | None): the variables.
        predicate (callable | None): takes a variable and returns whether to write it; used if `vars` is None.
        filename (str | None): one file for all, in the order of their names; None: one file per variable, with its
            name.

    Returns:
        bytes | None: the bytes, without `dirname`.

    Raises:
        RuntimeError: a variable has no value.
        ValueError: `filename` without `dirname`, or selected rows in one file with other variables.
        penstock.ProgramError: a name leads out of the folder (E-file-outside).

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_vars(exe, 'model', vars=[w])
        fluid.io.load_vars(exe, 'model', vars=[w])
    """
    return save_with(executor, dirname, main_program, vars, predicate, filename)


def save_with(
    executor: Executor,
    dirname: str | None,
    main_program: Program | None,
    vars: Sequence[Variable | str] | None,
    predicate: Predicate | None,
    filename: str | None,
    also: Iterable[tuple[str, Iterable[bytes]]] = (),
    there: Sequence[str] = (),
) -> bytes | None:
    """save_vars(), and the files `also` of the same folder, (name, parts), and those of the names `there`, which are in
    place: all of them are one save."""
    if dirname is None and filename is not None:
        raise ValueError(f"file {filename} has no folder: give dirname, or omit filename too to get bytes")
    program = program_or_default(main_program)
    remote = remote_lookups(program, global_scope())
    chosen = _chosen(program, vars, predicate)
    if not getattr(program, "_is_chief", True):
        chosen = [var for var in chosen if var.name not in remote]
    for var in chosen:
        if (dirname is None or filename is not None) and var.type == VarType.SELECTED_ROWS:
            raise program_error(
                "E-save-rows", f"{var.name} is SelectedRows, which needs its own file: give dirname without filename"
            )
        held_value(var)  # before anything is written

    current = current_values(executor, global_scope(), [var.name for var in chosen if var.name not in remote])

    def record(var: Variable) -> bytes:
        lookup = remote.get(var.name)
        if lookup is not None:
            return whole_table(executor, var, lookup)._to_file_bytes()
        return current.get(var.name, held_value(var))._to_file_bytes()

    if not chosen:
        warnings.warn(
            "no variable in your model, please ensure there are any variables in your model to save", stacklevel=2
        )
    if dirname is None:
        return b"".join(map(record, chosen))
    if filename is not None:
        save_files(dirname, itertools.chain(also, [(filename, map(record, chosen))]), there=there)
        return None
    for var in chosen:
        file_of(dirname, var.name)  # before anything is written
    save_files(dirname, itertools.chain(also, ((var.name, [record(var)]) for var in chosen)), there=there)
    return None


def load_vars(
    executor: Executor | None,
    dirname: str | None,
    main_program: Program | None = None,
    vars: Sequence[Variable | str] | None = None,
    predicate: Predicate | None = None,
    filename: bytes | str | None = None,
) -> None:
    """Reads variables from files into the global scope.

    A pserver's program takes its slices from the files of whole variables, such as those of one machine. It leaves out
    gradients, which are persistable there.

    Args:
        executor (Executor): ignored; accepted for compatibility with Fluid.
        dirname (str | None): the folder; None: `filename` contains the bytes themselves.
        main_program (Program | None): the program; None: the default main program.
        vars (list[Variable | str] | None): the variables.
        predicate (callable | None): takes a variable and returns whether to read it; used if `vars` is None.
        filename (str | bytes | None): one file for all, as in save_vars.

    Raises:
        TypeError: `dirname` is None and `filename` is not bytes.
        ValueError: a file contains another shape or type than the variable declares, or another number of variables; or
            a trainer's program is to load a table with is_distributed, which pservers load.
        FileNotFoundError: a file is missing. For a table with is_distributed, the folder __lookup_table__ of
            save_persistables will do, if the startup program has run.
        penstock.DataError: a file is damaged, or is not from the same save as the others (E-save-mixed).

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.load_vars(exe, None, vars=[w], filename=fluid.io.save_vars(exe, None, vars=[w]))
    """
    program = program_or_default(main_program)
    if pserver_held.is_pserver(program):
        _load_on_pserver(program, dirname, vars, predicate, filename)
        if vars is None and dirname is not None and filename is None:
            for one in pserver_held.programs_in(program, pserver_values.is_in_folder(dirname))[1:]:
                _load_on_pserver(one, dirname, vars, predicate, filename)
        return
    chosen = _chosen(program, vars, predicate)
    names = [var.name for var in chosen]
    for table in set(tables_of(program)).intersection(names):
        raise program_error(
            "E-load-table",
            f"table {table} is on the pservers, and this program is a trainer's: load the table there, by "
            "fluid.io.load_persistables(exe, dirname, pserver_program) or fleet.init_server(dirname)",
        )
    if dirname is None:
        if not isinstance(filename, bytes):
            raise TypeError(
                f"without dirname, filename must be the bytes of one file for all variables, not {filename!r}"
            )
        values = records_in(filename, "the data in filename", names)
    elif filename is not None:
        values = read_combined(path_in(dirname, filename), names)
    else:
        paths = [file_of(dirname, name) for name in names]  # before anything is read
        saved = SavedFolder(dirname)
        for var, path in zip(chosen, paths):
            may_be_sharded = var.type == VarType.LOD_TENSOR and not os.path.exists(path)
            if shards := shards_with(dirname, var.name) if may_be_sharded else []:
                _put_shards(var, shards)
            else:
                _put(var, parse(path, saved.read(var.name), 0, var.type)[0])
        return
    for var, value in zip(chosen, values):
        _put(var, value)


def _put_shards(var: Variable, shards: list[Shard]) -> None:
    """Joins the rows of a table sharded by id, or of a state of it. Rows that were never trained are in no file and
    keep the value that the startup program gave them."""
    held, height = global_scope().var(var.name), var.shape[0]
    if var.name in shards[0].scalars:
        value = shards[0].scalars[var.name]
        require_same(var.name, var, value.shape, value.dtype.name, shards[0].path)
        held.get_tensor().set(value, None)
        return
    whole, missing = None, height
    if held.is_initialized() and not held._has_no_rows() and tuple(held.get_tensor().shape()) == tuple(var.shape):
        whole, missing = numpy.array(held.get_tensor()), 0
    for shard in shards:
        ids, values = shard.ids, shard.columns.get(var.name)
        if values is None:
            raise program_error("E-load-missing", f"{shard.path} has no value of {var.name}, but {shards[0].path} has")
        if not len(ids):
            continue
        require_same(var.name, var, (height,) + values.shape[1:], values.dtype.name, shard.path)
        if ids.min() < 0 or ids.max() >= height:
            raise program_error(
                "E-load-type",
                f"{shard.path} holds row {ids.max() if ids.max() >= height else ids.min()} of table {var.name}, "
                f"which has {height} rows here",
            )
        if whole is None:
            whole = numpy.zeros(var.shape, values.dtype)
        whole[ids] = values
        missing -= len(ids)
    if whole is None or missing > 0:
        raise program_error(
            "E-load-startup",
            f"{shards[0].path} and the files beside it hold only the rows of table {var.name} that were trained; run "
            "the startup "
            "program first, which gives the other rows their values",
        )
    held.get_tensor().set(whole, None)
    held._note_changed(by_load=True)


def _load_on_pserver(
    program: Program,
    dirname: str | None,
    vars: Sequence[Variable | str] | None,
    predicate: Predicate | None,
    filename: bytes | str | None,
) -> None:
    """load_vars for a pserver's program, whose slices come from whole variables."""
    if vars is None and predicate is None:
        raise ValueError("vars and predicate are both None; give one of them")
    kinds = ("parameter",) if predicate is is_parameter else pserver_held.ALL_KINDS
    names: set[str] | None = None
    tables: set[str] | None = None
    may_lack: tuple[str, ...] = ("constant", "table state")
    chosen = is_parameter if predicate is is_parameter else is_persistable
    if vars is not None or predicate not in (is_parameter, is_persistable):
        block = program.global_block()
        given = {var if isinstance(var, str) else var.name for var in vars or filter(predicate, block.vars.values())}
        names = {held.whole for held in pserver_held.held_by(program) if given & {held.name, held.whole}}
        tables = given.intersection(program._sharded_tables)
        wanted, may_lack = names | tables, ()

        def chosen(var: Variable) -> bool:
            return var.name in wanted

    if dirname is not None and filename is None:
        if names is None:
            pserver_values.load_folder(program, dirname, kinds)
        else:
            pserver_values.set_from(program, pserver_values.from_folder(dirname), kinds, names, may_lack)
            pserver_values.load_tables(program, dirname, pserver_held.MODEL_KINDS, tables)
        return
    if dirname is not None and filename is not None:
        path = path_in(dirname, filename)
        data = read_saved(path)
    elif isinstance(filename, bytes):
        path, data = "the data in filename", filename
    else:
        raise TypeError(f"without dirname, filename must be the bytes of one file for all variables, not {filename!r}")
    value_of = pserver_values.from_one_file(data, path, program, chosen)
    pserver_values.set_from(program, value_of, kinds, names, may_lack)
    found = {name: value_of(name) for name in program._sharded_tables}
    pserver_values.set_tables(program, {name: value[0] for name, value in found.items() if value is not None})


def path_in(dirname: str, filename: bytes | str) -> str:
    """Returns the path of a file of a folder. Without a folder, `filename` is the bytes of a file."""
    if isinstance(filename, bytes):
        raise TypeError("with dirname, filename must be the name of a file, not bytes")
    return os.path.join(dirname, filename)


def require_same(name: str, declared: Variable, shape: Sequence[int], dtype: str, there: str) -> None:
    """Raises unless the value has the declared element type and the declared shape, which may have unknown extents."""
    fits = len(declared.shape) == len(shape) and all(
        extent in (-1, found) for extent, found in zip(declared.shape, shape)
    )
    if not fits or dtype_name(declared.dtype) != dtype:
        raise program_error(
            "E-load-type",
            f"variable {name} is declared {dtype_name(declared.dtype)}{list(declared.shape)}, but {there} holds "
            f"{dtype}{list(shape)}",
        )


def _put(var: Variable, value: RuntimeVariable) -> None:
    if var.type != VarType.SELECTED_ROWS:
        tensor = value.get_tensor()
        require_same(var.name, var, tensor.shape(), dtype_name(tensor._dtype()), "the file")
    held = global_scope().var(var.name)
    # A script may reload a model that it has just saved. Such a load changes nothing, so a later step cannot undo it.
    held._note_changed(by_load=held._assign(value))


def tables_of(program: Program) -> list[str]:
    """Returns the tables of a trainer's main program that are sharded by id and only on the pservers."""
    tables: list[str] = getattr(program, "_distributed_lookup_tables", [])
    return tables
