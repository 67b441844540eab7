"""fluid.save and fluid.load: a program with its values, as PREFIX.pdparams, PREFIX.pdopt and PREFIX.pdmodel."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy

from penstock._penstock import Scope
from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import program_error
from penstock._src.base.file_writing import DIGESTS_SUFFIX, SavedFolder, is_list, is_partial, save_files
from penstock._src.executor.executor import Executor
from penstock._src.executor.remote_params import current_values
from penstock._src.executor.remote_tables import remote_lookups, whole_table
from penstock._src.executor.scopes import global_scope
from penstock._src.io import pickles, pserver_held, pserver_values
from penstock._src.io.model_files import state_of_pservers
from penstock._src.io.pserver_state import state_on_pservers, warn_of_what_pservers_load
from penstock._src.io.table_files import TABLES_FOLDER, is_saved
from penstock._src.io.var_files import held_value, load_vars, program_or_default, require_same
from penstock._src.io.var_records import (
    file_of,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    parse,
    read_combined,
)
from penstock._src.ir.types import CPUPlace
from penstock._src.ir.variable import Parameter, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from penstock._src.executor.remote_tables import Shards, Slices
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Array


_SUFFIXES = (".pdparams", ".pdopt", ".pdmodel")


def get_program_parameter(program: Program) -> list[Parameter]:
    """Returns the parameters of a program.

    Args:
        program (Program): the program.

    Returns:
        list[Parameter]: its parameters.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        assert [p.name for p in fluid.io.get_program_parameter(fluid.default_main_program())] == ['w']
    """
    return [var for var in program.list_vars() if isinstance(var, Parameter)]


def get_program_persistable_vars(program: Program) -> list[Variable]:
    """Returns the persistable variables of a program, without feeds, fetches and readers.

    Args:
        program (Program): the program.

    Returns:
        list[Variable]: its persistable variables.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        assert len(fluid.io.get_program_persistable_vars(fluid.default_main_program())) == 1
    """
    return list(filter(is_persistable, program.list_vars()))


def get_parameter_value(para: Variable, executor: Executor) -> Array:
    """Returns the value of a parameter in the global scope.

    Args:
        para (Parameter): the parameter.
        executor (Executor): ignored; accepted for compatibility with Fluid.

    Returns:
        numpy.ndarray: a copy.

    Raises:
        ValueError: `para` is not a parameter.
        RuntimeError: the parameter has no value.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32')
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        assert fluid.io.get_parameter_value(w, exe).shape == (2, 3)
    """
    if not is_parameter(para):
        raise ValueError(f"{para!r} is no parameter")
    return _array_of(para, remote_lookups(para.block.program, global_scope()))


def get_parameter_value_by_name(name: str, executor: Executor, program: Program | None = None) -> Array:
    """Returns the value of a parameter in the global scope.

    Args:
        name (str): its name.
        executor (Executor): ignored; accepted for compatibility with Fluid.
        program (Program | None): the program; None: the default main program.

    Returns:
        numpy.ndarray: a copy.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        assert fluid.io.get_parameter_value_by_name('w', exe).shape == (2, 3)
    """
    return get_parameter_value(program_or_default(program).global_block().var(name), executor)


def _prefix(path: str) -> str:
    stem, suffix = os.path.splitext(path)
    return stem if suffix in _SUFFIXES else path


def _array_of(var: Variable, remote: Mapping[str, Slices | Shards]) -> Array:
    """Returns a copy of the value of a variable; tables in `remote` come from the pservers."""
    lookup = remote.get(var.name)
    held = held_value(var) if lookup is None else whole_table(Executor(CPUPlace()), var, lookup)
    return numpy.array(held.get_tensor())


def _arrays(program: Program, predicate: Callable[[Variable], bool]) -> dict[str, Array]:
    remote = remote_lookups(program, global_scope())
    chosen = [var for var in program.list_vars() if predicate(var)]
    current = current_values(
        Executor(CPUPlace()), global_scope(), [var.name for var in chosen if var.name not in remote]
    )
    return {
        var.name: numpy.array(current[var.name].get_tensor()) if var.name in current else _array_of(var, remote)
        for var in chosen
    }


def save(program: Program, model_path: str) -> None:
    """Writes parameters, optimizer state and program to three files, and their digests to a fourth. They are one save:
    if the process is killed meanwhile, the new files or the previous ones are loaded. A trainer asks pservers for the
    tables that they hold, and trainer 0 for their optimizer state and learning-rate steps (save_persistables).

    Args:
        program (Program): the program.
        model_path (str): path of the files without their suffixes .pdparams, .pdopt, .pdmodel and .digests.

    Raises:
        ValueError: `model_path` ends with a slash.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        fluid.save(fluid.default_main_program(), 'model/step_1')
    """
    if not os.path.basename(model_path):
        raise ValueError(f"model_path is {model_path!r}; it must be dirname/filename")
    program_or_default(program)
    folder, name = os.path.split(model_path)
    save_files(folder or os.curdir, _files_of(program, folder or os.curdir, name), name + DIGESTS_SUFFIX)


def _files_of(program: Program, folder: str, name: str) -> Iterator[tuple[str, list[bytes]]]:
    """Yields (file, parts) of fluid.save."""
    yield name + ".pdparams", [pickles.dumps(_arrays(program, is_parameter))]
    with state_of_pservers(Executor(CPUPlace()), folder, program) as (names, files):
        arrays = _arrays(program, lambda var: is_belong_to_optimizer(var) and var.name not in names)
        for there, parts in files:
            arrays[there] = numpy.array(parse(there, b"".join(parts), 0)[0].get_tensor())
        if left := sorted(set(names) - set(arrays)):
            warnings.warn(
                f"fluid.save does not save the optimizer state of tables with is_distributed ({', '.join(left)}), "
                "which fluid.io.save_persistables saves",
                stacklevel=stack_level(),
            )
    yield name + ".pdopt", [pickles.dumps(arrays)]
    yield name + ".pdmodel", [program.desc.serialize_to_string()]


def load(
    program: Program, model_path: str, executor: Executor | None = None, var_list: Sequence[Variable] | None = None
) -> None:
    """Reads the files of `fluid.save`, save_vars, save_params or save_persistables.

    A pserver's program takes its slices from whole variables.

    Args:
        program (Program): the program.
        model_path (str): path of the files without their suffixes, or a folder, or one file for all variables.
        executor (Executor | None): ignored; accepted for compatibility with Fluid.
        var_list (list[Variable] | None): the variables, if `model_path` is one file for all variables.

    Raises:
        ValueError: the files are missing or do not match the program.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        fluid.save(fluid.default_main_program(), 'model/step_1')
        fluid.load(fluid.default_main_program(), 'model/step_1')
    """
    program_or_default(program)
    prefix = _prefix(model_path)
    if not os.path.exists(prefix + ".pdparams"):
        _load_vars_of(program, model_path, executor, var_list)
        return
    if pserver_held.is_pserver(program):
        arrays = load_program_state(model_path)
        for one in pserver_held.programs_in(program, arrays.__contains__):
            pserver_values.set_from(one, pserver_values.from_arrays(arrays, prefix + ".pdopt"))
            pserver_values.set_tables(one, arrays)
        return
    tables = getattr(program, "_distributed_lookup_tables", ())
    there = _set_all(program, lambda var: is_parameter(var) and var.name not in tables, prefix + ".pdparams")
    if any(map(is_belong_to_optimizer, program.list_vars())):
        there |= _set_all(program, is_belong_to_optimizer, prefix + ".pdopt")
    elif state_on_pservers(program) and os.path.isfile(prefix + ".pdopt"):
        there |= set(_read_arrays(prefix + ".pdopt"))
    warn_of_what_pservers_load(program, prefix, there.__contains__)


def _load_vars_of(program: Program, path: str, executor: Executor | None, var_list: Sequence[Variable] | None) -> None:
    if os.path.isdir(path) and pserver_held.is_pserver(program):
        for one in pserver_held.programs_in(program, pserver_values.is_in_folder(path)):
            pserver_values.load_folder(one, path)
    elif os.path.isdir(path):
        tables = getattr(program, "_distributed_lookup_tables", ())
        there = [
            var
            for var in program.list_vars()
            if is_persistable(var) and var.name not in tables and is_saved(path, var.name)
        ]
        load_vars(executor, path, program, there)
        warn_of_what_pservers_load(program, path, lambda name: is_saved(path, name))
    elif not os.path.isfile(path):
        raise program_error("E-load-folder", f"there is neither {_prefix(path)}.pdparams nor a file or folder {path}")
    elif var_list is None:
        raise ValueError("var_list is required for one file that save_vars wrote: it names the variables in the file")
    else:
        folder, name = os.path.split(path)
        load_vars(executor, folder, program, var_list, filename=name)


def _read_arrays(path: str) -> dict[str, Array]:
    folder, name = os.path.split(path)
    saved = SavedFolder(folder or os.curdir, os.path.splitext(name)[0] + DIGESTS_SUFFIX)
    arrays = pickles.loads(saved.read(name), path)
    if not isinstance(arrays, dict):
        raise program_error("E-load-pickle", f"{path} holds a {type(arrays).__name__}, not a dict of arrays")
    return arrays


def _set_all(program: Program, predicate: Callable[[Variable], bool], path: str) -> set[str]:
    """Sets variables to the arrays of a file. Returns the names of all arrays in it."""
    arrays = _read_arrays(path)
    chosen = [var for var in program.list_vars() if predicate(var)]
    for var in chosen:
        if var.name not in arrays:
            raise program_error("E-load-missing", f"{var.name} is not in {path}")
    for var in chosen:
        _set(var, arrays[var.name], path)
    return set(arrays)


def _set(var: Variable, array: Array, there: str) -> None:
    if not isinstance(array, numpy.ndarray):
        raise program_error("E-load-pickle", f"{var.name} of {there} is a {type(array).__name__}, not an array")
    require_same(var.name, var, array.shape, array.dtype.name, there)
    held = global_scope().var(var.name)
    if held._has_no_rows():  # a table whose rows are on pservers
        whole = Scope().var(var.name)
        whole.get_tensor().set(array, None)
        held._assign(whole)
    else:
        held.get_tensor().set(array, None)
    held._note_changed(by_load=True)


def load_program_state(model_path: str, var_list: Sequence[Variable | str] | None = None) -> dict[str, Array]:
    """Reads saved values without a program.

    Args:
        model_path (str): as in `load`.
        var_list (list[Variable | str] | None): the variables, if `model_path` is one file for all variables.

    Returns:
        dict[str, numpy.ndarray]: values by name.

    Raises:
        ValueError: the files or `var_list` are missing, or the folder holds rows of tables with is_distributed.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        fluid.save(fluid.default_main_program(), 'model/step_1')
        assert fluid.load_program_state('model/step_1')['w'].shape == (2, 3)
    """
    prefix = _prefix(model_path)
    if os.path.exists(prefix + ".pdparams"):
        state = _read_arrays(prefix + ".pdparams")
        if os.path.exists(prefix + ".pdopt"):
            state.update(_read_arrays(prefix + ".pdopt"))
        return state
    names = None if var_list is None else sorted(var.name if isinstance(var, Variable) else var for var in var_list)
    if os.path.isfile(model_path):
        if names is None:
            raise ValueError(f"{model_path} is one file: give var_list, the variables in it")
        values = read_combined(model_path, names)
    elif os.path.isdir(model_path):
        names = _files_below(model_path) if names is None else names
        tables = os.path.join(model_path, TABLES_FOLDER)
        if any(name.startswith(TABLES_FOLDER + os.sep) for name in names):
            raise program_error(
                "E-load-table",
                f"{tables} holds rows of tables: give var_list without the tables; fluid.io.load_persistables reads "
                "all",
            )
        saved = SavedFolder(model_path)
        values = [parse(file_of(model_path, name), saved.read(name), 0)[0] for name in names]
    else:
        raise program_error("E-load-folder", f"there is neither {prefix}.pdparams nor a file or folder {model_path}")
    return {name: numpy.array(value.get_tensor()) for name, value in zip(names, values)}


def _files_below(folder: str) -> list[str]:
    """Returns the names of the variables in the files of a folder; names may contain slashes. Skips a saved model."""
    found = [os.path.relpath(os.path.join(here, name), folder) for here, _, names in os.walk(folder) for name in names]
    return sorted(name for name in found if name != "__model__" and not is_list(name) and not is_partial(name))


def _known_to(program: Program, arrays: Mapping[str, Array]) -> Collection[str]:
    """Sets the variables of a program to whole arrays; returns the names of those that it has."""
    if pserver_held.is_pserver(program):
        there: set[str] = set()
        for one in (program, *program._served_with):
            pserver_values.set_from(
                one, pserver_values.from_arrays(arrays, "state_dict"), may_lack=pserver_held.ALL_KINDS
            )
            there.update(held.whole for held in pserver_held.held_by(one))
            there.update(pserver_values.set_tables(one, arrays))
        return there
    known = {var.name: var for var in get_program_persistable_vars(program)}
    for name, array in arrays.items():
        if name in known:
            _set(known[name], array, "state_dict")
    return known


def set_program_state(program: Program, state_dict: Mapping[str, Array]) -> None:
    """Sets persistable variables of a program to arrays, and warns about names that the program does not have.

    A pserver's program takes its slices from whole arrays.

    Args:
        program (Program): the program.
        state_dict (dict[str, numpy.ndarray]): values by name.

    Raises:
        ValueError: a value does not have the shape and type of the variable.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        fluid.set_program_state(fluid.default_main_program(), {'w': np.zeros((2, 3), 'float32')})
    """
    known = _known_to(program_or_default(program), state_dict)
    unused = [name for name in state_dict if name not in known]
    if unused:
        warnings.warn(
            f"state_dict holds variables that the program does not have: {' '.join(unused)}", stacklevel=stack_level()
        )
