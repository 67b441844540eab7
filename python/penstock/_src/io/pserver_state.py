"""Files of a model in a job with pservers. A folder holds one file for each whole variable, parameters and optimizer
state alike, like the files of a single machine; each pserver loads its own rows."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from typing import TYPE_CHECKING

import numpy

from penstock import _penstock
from penstock._penstock import Scope
from penstock._src.base import environment
from penstock._src.base.call_site import stack_level
from penstock._src.io import var_records
from penstock._src.io.pserver_held import step_of
from penstock._src.io.pserver_values import STATE_FOLDER
from penstock._src.io.table_files import read_named
from penstock._src.ir.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.typing import Array
    from penstock._src.transpile.vars_distributed import VarDistributed


def state_on_pservers(program: Program) -> list[str]:
    """Returns the names of the optimizer state and learning-rate steps that pservers keep for a trainer's program."""
    source, _ = program.__dict__.get("_transpile_source", (None, None))
    if source is None or not getattr(program, "_is_distributed", False):
        return []
    main = Program._of(source)
    changed, here = (
        {name for block in one.blocks for op in block.ops for name in op.output_arg_names} for one in (main, program)
    )
    only_there = {
        var.name
        for var in main.list_vars()
        if var_records.is_persistable(var) and not var_records.is_parameter(var) and var.name in changed - here
    }
    return sorted(only_there.union(_steps_of_all(program)))


def constants_on_pservers(program: Program) -> dict[str, str]:
    """Returns {constant: the smallest parameter whose update reads it} of the constants, such as a learning rate, that
    a trainer's program does not have."""
    source, _ = program.__dict__.get("_transpile_source", (None, None))
    if source is None or not getattr(program, "_is_distributed", False):
        return {}
    main, known = Program._of(source), {var.name for var in program.list_vars()}
    changed = {name for block in main.blocks for op in block.ops for name in op.output_arg_names}
    params = sorted(filter(var_records.is_parameter, main.list_vars()), key=lambda var: numpy.prod(var.shape))
    constants: dict[str, set[str]] = {}
    for op in main.global_block().ops:
        for name in set(op.input_arg_names) - known - changed:
            if var_records.is_persistable(main.global_block().var(name)):
                constants.setdefault(name, set()).update(op.output_arg_names)
    return {
        name: next(var.name for var in params if var.name in written)
        for name, written in constants.items()
        if any(var.name in written for var in params)
    }


def _steps_of_all(program: Program) -> dict[str, float]:
    """Returns {counter of a schedule: what a step adds to it}. Trainers that do not wait for each other report each of
    their steps; the pservers count those of all."""
    source, _ = program.__dict__.get("_transpile_source", (None, None))
    ops = program.global_block().ops
    reports = any(
        op.type == "send" and op.has_attr("use_send_handler") and not op.attr("use_send_handler") for op in ops
    )
    if source is None or not reports or not any(op.type == "recv" for op in ops):  # geo-SGD receives by itself
        return {}
    main = Program._of(source)
    steps = {var.name: step_of(main, var.name) for var in main.list_vars() if var_records.is_persistable(var)}
    return {name: step for name, step in steps.items() if step}


def warn_of_what_pservers_load(program: Program, there: str, has: Callable[[str], bool]) -> None:
    """Warns of saved values that belong to variables which a trainer's program leaves to the pservers.

    Args:
        program (Program): the program into which values were loaded.
        there (str): where they are from.
        has (callable): takes a name and returns whether its value is there.
    """
    tables = [name for name in getattr(program, "_distributed_lookup_tables", ()) if has(name)]
    states = [name for name in state_on_pservers(program) if has(name)]
    parts = ["table " + name for name in tables]
    if states:
        parts.append(f"optimizer state ({', '.join(states[:3]) + (', ...' if len(states) > 3 else '')})")
    if parts:
        warnings.warn(
            f"{there} holds {' and '.join(parts)}, which a trainer cannot load: unless the pservers load it too, by "
            "fluid.io.load_persistables(exe, dirname, pserver_program) or fleet.init_server(dirname), it starts "
            "afresh",
            stacklevel=stack_level(),
        )


@contextlib.contextmanager
def saved_state(
    executor: Executor, dirname: str, program: Program, names: Sequence[str], constants: Mapping[str, str]
) -> Iterator[tuple[Sequence[str], Iterable[tuple[str, list[bytes]]]]]:
    """Makes the pservers write their optimizer state and constants, which are on the disk within the with statement.

    Pservers write only inside their working folder. If `dirname` is elsewhere, they write to a new folder there; a
    trainer that shares the disk and the working folder finds the files in it.

    Args:
        executor (Executor): sends the requests to the pservers.
        dirname (str): the folder of the save.
        program (Program): the program of trainer 0.
        names (list[str]): state_on_pservers(program). Without any, one parameter of each constant is enough.
        constants (dict): constants_on_pservers(program).

    Yields:
        tuple: (names of the whole variables, their files as save_files() takes them), in one of which are the joined
            slices of a parameter's state.

    Raises:
        penstock.StateError: a file exists that no pserver has written (E-server-save-exists).
    """
    slices: dict[str, list[VarDistributed]] = {}
    for one in program._parameters_on_pservers.distributed_vars:
        if names or one.origin.name in constants.values():
            slices.setdefault(one.origin.name, []).append(one)
    folder = _written_by_pservers(executor, dirname, program, slices)
    if not os.path.isdir(folder):
        if names:
            warnings.warn(
                "save_persistables: the pservers have saved their optimizer state to their own disks, in "
                f"{os.path.relpath(folder)} "
                "of their working folders; before they load it, collect their files in "
                f"{os.path.join(dirname, STATE_FOLDER)}",
                stacklevel=stack_level(),
            )
        yield (), ()
        return
    try:
        names = [*names, *constants]
        yield names, _files_of(folder, slices, set(names), _steps_of_all(program))
    finally:
        _remove(folder, slices)


def _written_by_pservers(
    executor: Executor, dirname: str, program: Program, slices: dict[str, list[VarDistributed]]
) -> str:
    """Returns the folder in which the pservers have written their slices."""
    folder = os.path.join(dirname, STATE_FOLDER)
    try:
        _make_write(executor, program, slices, folder)
        return folder
    except _penstock.ProgramError as error:
        if error.id != "E-server-save-path":
            raise
    _remove(folder, slices)  # a pserver with another working folder may have written
    # Equal in all saves of the job: pservers remember the names of the files that they have written.
    servers = sorted({one.endpoint for parts in slices.values() for one in parts if one.endpoint is not None})
    apart = f"{STATE_FOLDER}-{hashlib.blake2b(','.join(servers).encode(), digest_size=8).hexdigest()}"
    _make_write(executor, program, slices, apart)
    return os.path.join(environment.text("PENSTOCK_CHECKPOINT_DIR") or os.curdir, apart)


def _files_of(
    folder: str, slices: dict[str, list[VarDistributed]], names: set[str], steps: dict[str, float]
) -> Iterator[tuple[str, list[bytes]]]:
    """Yields (name, parts of its file) of each variable in `names`, once."""
    left = set(names)
    for parts in slices.values():
        for name, value in _joined(folder, sorted(parts, key=lambda one: one.block_id or 0), names).items():
            if name not in left:
                continue
            left.remove(name)
            if name in steps:  # a counter of pservers has the number of the next step
                value = value - value.dtype.type(steps[name])
            yield name, [_bytes_of(value)]


def _make_write(executor: Executor, program: Program, slices: dict[str, list[VarDistributed]], folder: str) -> None:
    notice = Program()
    notice.desc.take_job(program.desc)
    for one in (each for parts in slices.values() for each in parts):
        notice.global_block().append_op(
            "checkpoint_notify", attrs={"epmap": [one.endpoint], "dir": folder, "lookup_table": one.slice.name}
        )
    executor.run(notice)


def _joined(folder: str, parts: list[VarDistributed], whole_names: set[str]) -> dict[str, Array]:
    """Returns {name: array} of a parameter and its state, from the files of its slices."""
    files = [read_named(_slice_file(folder, one)) for one in parts]
    # Second slices on one pserver have state with names of their own, in the same order.
    names = next((list(file) for file in files if whole_names.issuperset(list(file)[1:])), list(files[0]))
    values: dict[str, list[tuple[bool | None, Array]]] = {}
    for one, file in zip(parts, files):
        for at, (own, value) in enumerate(file.items()):
            sliced = one.is_slice and value.shape == one.slice.shape
            name = one.origin.name if own == one.slice.name else names[at] if len(file) == len(names) else own
            values.setdefault(name, []).append((sliced, value))
    return {
        name: numpy.concatenate([value for _, value in found]) if found[0][0] else found[0][1]
        for name, found in values.items()
    }


def _slice_file(folder: str, one: VarDistributed) -> str:
    return os.path.join(folder, one.slice.name + "_0")


def _bytes_of(array: Array) -> bytes:
    held = Scope().var("value")
    held.get_tensor().set(numpy.ascontiguousarray(array), None)
    return held._to_file_bytes()


def _remove(folder: str, slices: dict[str, list[VarDistributed]]) -> None:
    for one in (each for parts in slices.values() for each in parts):
        if os.path.isfile(_slice_file(folder, one)):
            os.remove(_slice_file(folder, one))
    for here, _, _ in os.walk(folder, topdown=False):
        if not os.listdir(here):
            os.rmdir(here)
