"""Variables in files, in Fluid's formats: one file per variable, or one file for all in the order of their names."""

import contextlib
import itertools
import os
import warnings

import numpy

from penstock._penstock import process_wire, rpc_is_open
from penstock._src.base.call_site import stack_level
from penstock._src.base.file_writing import SavedFolder, save_files
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.remote_params import current_values
from penstock._src.executor.remote_tables import remote_lookups, whole_table
from penstock._src.executor.scopes import global_scope
from penstock._src.io import pserver_state, pserver_values
from penstock._src.io.table_files import TABLES_FOLDER, is_saved, new_files, shards_with
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


def program_or_default(main_program):
    program = framework.default_main_program() if main_program is None else main_program
    if isinstance(program, CompiledProgram):
        program = program._program
    if not isinstance(program, Program):
        raise TypeError(f"program must be a Program, not {type(program).__name__}")
    return program


def _chosen(main_program, vars, predicate):
    """Returns the variables to save or load, by name, each once."""
    program = program_or_default(main_program)
    if vars is None:
        if predicate is None:
            raise ValueError("vars and predicate are both None; give one of them")
        vars = [var for var in program.list_vars() if predicate(var)]
    vars = [var if isinstance(var, Variable) else program.global_block().var(var) for var in vars]
    return sorted({var.name: var for var in vars if var.type not in NEVER_SAVED}.values(), key=lambda var: var.name)


def held_value(var):
    """Returns the value of a variable in the global scope. Raises an error with its name if it has no value yet."""
    held = global_scope().find_var(var.name)
    if held is None or not held.is_initialized():
        raise RuntimeError(f"variable {var.name} has no value to save; run the startup program first")
    return held


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
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


def save_with(executor, dirname, main_program, vars, predicate, filename, also=(), there=()):
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
            raise ValueError(f"{var.name} is SelectedRows, which needs its own file: give dirname without filename")
        held_value(var)  # before anything is written

    current = current_values(executor, global_scope(), [var.name for var in chosen if var.name not in remote])

    def record(var):
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


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
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
    if pserver_values.is_pserver(program):
        _load_on_pserver(program, dirname, vars, predicate, filename)
        if vars is None and dirname is not None and filename is None:
            for one in pserver_values.programs_in(program, pserver_values.is_in_folder(dirname))[1:]:
                _load_on_pserver(one, dirname, vars, predicate, filename)
        return
    chosen = _chosen(program, vars, predicate)
    names = [var.name for var in chosen]
    for table in set(_tables_of(program)).intersection(names):
        raise ValueError(
            f"table {table} is on the pservers, and this program is a trainer's: load the table there, by "
            "fluid.io.load_persistables(exe, dirname, pserver_program) or fleet.init_server(dirname)"
        )
    if dirname is None:
        if not isinstance(filename, bytes):
            raise TypeError(
                f"without dirname, filename must be the bytes of one file for all variables, not {filename!r}"
            )
        values = records_in(filename, "the data in filename", names)
    elif filename is not None:
        values = read_combined(os.path.join(dirname, filename), names)
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


def _put_shards(var, shards):
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
            raise ValueError(f"{shard.path} has no value of {var.name}, but {shards[0].path} has")
        if not len(ids):
            continue
        require_same(var.name, var, (height,) + values.shape[1:], values.dtype.name, shard.path)
        if ids.min() < 0 or ids.max() >= height:
            raise ValueError(
                f"{shard.path} holds row {ids.max() if ids.max() >= height else ids.min()} of table {var.name}, "
                f"which has {height} rows here"
            )
        if whole is None:
            whole = numpy.zeros(var.shape, values.dtype)
        whole[ids] = values
        missing -= len(ids)
    if whole is None or missing > 0:
        raise ValueError(
            f"{shards[0].path} and the files beside it hold only the rows of table {var.name} that were trained; run "
            "the startup "
            "program first, which gives the other rows their values"
        )
    held.get_tensor().set(whole, None)
    held._note_changed(by_load=True)


def _load_on_pserver(program, dirname, vars, predicate, filename):
    """load_vars for a pserver's program, whose slices come from whole variables."""
    if vars is None and predicate is None:
        raise ValueError("vars and predicate are both None; give one of them")
    kinds = ("parameter",) if predicate is is_parameter else pserver_values.ALL_KINDS
    whole = vars is None and predicate in (is_parameter, is_persistable)
    if whole:
        names, chosen, may_lack = None, predicate, ("constant", "table state")
    else:
        block = program.global_block()
        given = {var if isinstance(var, str) else var.name for var in vars or filter(predicate, block.vars.values())}
        names = {held.whole for held in pserver_values.held_by(program) if given & {held.name, held.whole}}
        tables = given.intersection(program._sharded_tables)
        chosen, may_lack = lambda var: var.name in names or var.name in tables, ()
    if dirname is not None and filename is None:
        if whole:
            pserver_values.load_folder(program, dirname, kinds)
        else:
            pserver_values.set_from(program, pserver_values.from_folder(dirname), kinds, names, may_lack)
            pserver_values.load_tables(program, dirname, pserver_values.MODEL_KINDS, tables)
        return
    if dirname is None and not isinstance(filename, bytes):
        raise TypeError(f"without dirname, filename must be the bytes of one file for all variables, not {filename!r}")
    path = "the data in filename" if dirname is None else os.path.join(dirname, filename)
    data = filename if dirname is None else read_saved(path)
    value_of = pserver_values.from_one_file(data, path, program, chosen)
    pserver_values.set_from(program, value_of, kinds, names, may_lack)
    tables = {name: value_of(name) for name in program._sharded_tables}
    pserver_values.set_tables(program, {name: value[0] for name, value in tables.items() if value is not None})


def require_same(name, declared, shape, dtype, there):
    """Raises unless the value has the declared element type and the declared shape, which may have unknown extents."""
    fits = len(declared.shape) == len(shape) and all(
        extent in (-1, found) for extent, found in zip(declared.shape, shape)
    )
    if not fits or dtype_name(declared.dtype) != dtype:
        raise ValueError(
            f"variable {name} is declared {dtype_name(declared.dtype)}{list(declared.shape)}, but {there} holds "
            f"{dtype}{list(shape)}"
        )


def _put(var, value):
    if var.type != VarType.SELECTED_ROWS:
        tensor = value.get_tensor()
        require_same(var.name, var, tensor.shape(), dtype_name(tensor._dtype()), "the file")
    held = global_scope().var(var.name)
    # A script may reload a model that it has just saved. Such a load changes nothing, so a later step cannot undo it.
    held._note_changed(by_load=held._assign(value))


def save_params(executor, dirname, main_program=None, filename=None):
    """Writes the parameters of a program; see save_vars.

    Args:
        executor (Executor): fetches tables of pservers.
        dirname (str | None): the folder; None: return the bytes.
        main_program (Program | None): the program; None: the default main program.
        filename (str | None): one file for all; None: a file per variable.

    Returns:
        bytes | None: the bytes, without `dirname`.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_params(exe, 'model')
    """
    return save_vars(executor, dirname, main_program, None, is_parameter, filename)


def load_params(executor, dirname, main_program=None, filename=None):
    """Reads the parameters of a program; see load_vars.

    Args:
        executor (Executor): ignored; accepted for compatibility with Fluid.
        dirname (str | None): the folder; None: `filename` contains the bytes themselves.
        main_program (Program | None): the program; None: the default main program.
        filename (str | bytes | None): one file for all; None: a file per variable.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_params(exe, 'model')
        fluid.io.load_params(exe, 'model')
    """
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Writes parameters, optimizer state and learning rates.

    A trainer of a distributed job writes its own variables. In jobs in which trainers do not wait for each other, it
    asks the pservers for the current values of parameters first; in geo-SGD it also sends what it has not sent yet.
    Trainer 0 also writes the tables whose rows trainers look up, and the optimizer state and learning-rate steps that
    only the pservers have. Pservers write tables with is_distributed when trainer 0 requests it: pserver i writes
    __lookup_table__/<name>_<i> in `dirname` on its own disk, and the optimizer state of these rows to <name>_<i>.state
    beside it. Pservers write only inside PENSTOCK_CHECKPOINT_DIR (the launcher's --checkpoint_dir; default: the folder
    in which they were started), to which a relative `dirname` refers, and replace only files that a pserver has
    written. Their state reaches any other folder if trainer 0 shares the disk and this folder with them; otherwise
    there is a warning that says where it is.

    Args:
        executor (Executor): sends the requests to the pservers.
        dirname (str | None): the folder; None: return the bytes.
        main_program (Program | None): the program; None: the default main program.
        filename (str | None): one file for all, without the optimizer state that only the pservers have; None: a file
            per variable.

    Returns:
        bytes | None: the bytes, without `dirname`.

    Raises:
        penstock.ProgramError: a pserver may not write there (E-server-save-path).
        penstock.StateError: a file exists that no pserver has written (E-server-save-exists).
        ValueError: tables are written by pservers, and `dirname` is None.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.Adam(0.01).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_persistables(exe, 'checkpoint')
    """
    program = program_or_default(main_program)
    with state_of_pservers(executor, dirname, program, filename) as (names, files):
        return save_persistables_but(executor, dirname, program, lambda var: var.name in names, filename, files)


def state_of_pservers(executor, dirname, program, filename=None):
    """Returns a context manager: the names of variables that only pservers have, and files that save_with() takes."""
    distributed = getattr(program, "_is_distributed", False) and program._is_chief and process_wire() != "fluid"
    if distributed and dirname is not None:
        names, constants = (
            find(program) for find in (pserver_state.state_on_pservers, pserver_state.constants_on_pservers)
        )
        if filename is not None:
            if names:
                warnings.warn(
                    f"{filename} has no optimizer state, which the pservers have ({names[0]}, ...): save without "
                    "filename",
                    stacklevel=stack_level(),
                )
        elif (names or constants) and rpc_is_open():
            return pserver_state.saved_state(executor, dirname, program, names, constants)
        elif names:
            warnings.warn(
                "the optimizer state that pservers have is not saved, because this trainer is not connected "
                "to them: it has completed, or has not run its startup program",
                stacklevel=stack_level(),
            )
    return contextlib.nullcontext(((), ()))


def save_persistables_but(executor, dirname, main_program, leave_out, filename=None, also=()):
    """save_persistables() without the variables for which leave_out(var) is true, and with the files `also`, as
    save_with() takes them."""
    program = program_or_default(main_program)
    tables = [name for name in _tables_of(program) if not leave_out(program.global_block().var(name))]
    if tables and dirname is None:
        raise ValueError(f"pservers write table {tables[0]} to their disks: give dirname")
    here, written = _but(_tables_of(program)), []
    if tables and program._is_chief:
        notice = Program()
        notice.desc.take_job(program.desc)
        for table in tables:
            notice.global_block().append_op(
                "checkpoint_notify",
                attrs={"epmap": program._endpoints, "dir": os.path.join(dirname, TABLES_FOLDER), "lookup_table": table},
            )
        with new_files(dirname, tables, len(program._endpoints)) as written:
            executor.run(notice)
    return save_with(
        executor, dirname, program, None, lambda var: here(var) and not leave_out(var), filename, also, written
    )


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Reads the files of save_persistables.

    A pserver's program takes its slices of parameters and optimizer state, and its rows of tables with is_distributed;
    run its startup program before. A trainer of a distributed job reads its own variables. If every trainer loads after
    its startup program and before its first step, the pservers start from these values, but not from saved optimizer
    state, which pservers load. It is an error if a trainer loads other values, none, or later.

    Args:
        executor (Executor): ignored; accepted for compatibility with Fluid.
        dirname (str | None): the folder; None: `filename` contains the bytes themselves.
        main_program (Program | None): the program; None: the default main program.
        filename (str | bytes | None): one file for all; None: a file per variable.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.Adam(0.01).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_persistables(exe, 'checkpoint', filename='all')
        fluid.io.load_persistables(exe, 'checkpoint', filename='all')
    """
    program = program_or_default(main_program)
    if pserver_values.is_pserver(program):
        load_vars(executor, dirname, program, None, is_persistable, filename)
        return
    load_vars(executor, dirname, program, None, _but(_tables_of(program)), filename)
    if dirname is not None and filename is None:
        pserver_state.warn_of_what_pservers_load(program, dirname, lambda name: is_saved(dirname, name))


def _tables_of(program):
    """Returns the tables of a trainer's main program that are sharded by id and only on the pservers."""
    return getattr(program, "_distributed_lookup_tables", [])


def _but(names):
    return lambda var: is_persistable(var) and var.name not in names
