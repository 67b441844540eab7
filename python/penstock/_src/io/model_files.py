"""Files of a whole model: its parameters, or all persistable variables."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import TYPE_CHECKING

from penstock._penstock import process_wire, rpc_is_open
from penstock._src.base.call_site import stack_level
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.io import pserver_held, pserver_state
from penstock._src.io.table_files import TABLES_FOLDER, is_saved, new_files
from penstock._src.io.var_files import load_vars, program_or_default, save_vars, save_with, tables_of
from penstock._src.io.var_records import is_parameter, is_persistable
from penstock._src.ir.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.variable import Variable

    _File = tuple[str, Iterable[bytes]]  # its name, and its parts


def save_params(
    executor: Executor, dirname: str | None, main_program: Program | None = None, filename: str | None = None
) -> bytes | None:
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


_FILES = {
    "from_files": """Args:
    executor (Executor): ignored; accepted for compatibility with Fluid.
    dirname (str | None): the folder; None: `filename` contains the bytes themselves.
    main_program (Program | None): the program; None: the default main program.
    filename (str | bytes | None): one file for all; None: a file per variable."""
}


@with_texts(_FILES)
def load_params(
    executor: Executor, dirname: str | None, main_program: Program | None = None, filename: bytes | str | None = None
) -> None:
    """Reads the parameters of a program; see load_vars.

    {from_files}

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_params(exe, 'model')
        fluid.io.load_params(exe, 'model')
    """
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(
    executor: Executor, dirname: str | None, main_program: Program | None = None, filename: str | None = None
) -> bytes | None:
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


def state_of_pservers(
    executor: Executor, dirname: str | None, program: Program, filename: str | None = None
) -> AbstractContextManager[tuple[Sequence[str], Iterable[_File]]]:
    """Returns a context manager: the names of variables that only pservers have, and files that save_with() takes."""
    distributed = getattr(program, "_is_distributed", False) and program._is_chief and process_wire() != "fluid"
    if distributed and dirname is not None:
        names = pserver_state.state_on_pservers(program)
        constants = pserver_state.constants_on_pservers(program)
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


def save_persistables_but(
    executor: Executor,
    dirname: str | None,
    main_program: Program,
    leave_out: Callable[[Variable], bool],
    filename: str | None = None,
    also: Iterable[_File] = (),
) -> bytes | None:
    """save_persistables() without the variables for which leave_out(var) is true, and with the files `also`, as
    save_with() takes them."""
    program = program_or_default(main_program)
    tables = [name for name in tables_of(program) if not leave_out(program.global_block().var(name))]
    if tables and dirname is None:
        raise program_error("E-save-table", f"pservers write table {tables[0]} to their disks: give dirname")
    here = _but(tables_of(program))
    written: list[str] = []
    if tables and dirname is not None and program._is_chief:
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


@with_texts(_FILES)
def load_persistables(
    executor: Executor, dirname: str | None, main_program: Program | None = None, filename: bytes | str | None = None
) -> None:
    """Reads the files of save_persistables.

    A pserver's program takes its slices of parameters and optimizer state, and its rows of tables with is_distributed;
    run its startup program before. A trainer of a distributed job reads its own variables. If every trainer loads after
    its startup program and before its first step, the pservers start from these values, but not from saved optimizer
    state, which pservers load. It is an error if a trainer loads other values, none, or later.

    {from_files}

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.Adam(0.01).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_persistables(exe, 'checkpoint', filename='all')
        fluid.io.load_persistables(exe, 'checkpoint', filename='all')
    """
    program = program_or_default(main_program)
    if pserver_held.is_pserver(program):
        load_vars(executor, dirname, program, None, is_persistable, filename)
        return
    load_vars(executor, dirname, program, None, _but(tables_of(program)), filename)
    if dirname is not None and filename is None:
        pserver_state.warn_of_what_pservers_load(program, dirname, lambda name: is_saved(dirname, name))


def _but(names: list[str]) -> Callable[[Variable], bool]:
    return lambda var: is_persistable(var) and var.name not in names
