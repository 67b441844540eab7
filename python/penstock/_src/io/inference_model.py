"""Inference models: the part of a program that computes some variables from some feeds, and its parameters."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._penstock import DataError
from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import program_error
from penstock._src.base.file_writing import save_files
from penstock._src.executor.remote_tables import look_up_at_hand, note_tables
from penstock._src.io.model_files import load_persistables, save_persistables_but
from penstock._src.io.var_files import path_in, program_or_default
from penstock._src.io.var_records import read_saved
from penstock._src.ir import framework
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Variable
from penstock._src.layers import arithmetic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.executor.executor import Executor


def _feed_names(feeded_var_names: Sequence[str] | str) -> list[str]:
    names = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names or [])
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"feeded_var_names must be names, not {feeded_var_names!r}")
    return names


def _targets(target_vars: Sequence[Variable] | Variable, required: bool) -> list[Variable]:
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars)
    if (required and not targets) or not all(isinstance(target, Variable) for target in targets):
        raise ValueError(f"target_vars must be Variables, at least one, not {target_vars!r}")
    return targets


def _require_needed(program: Program, feeds: list[str]) -> None:
    read = {name for block in program.blocks for op in block.ops for name in op.input_arg_names}
    for i, name in enumerate(feeds):
        if name not in read:
            raise program_error("E-save-feed", f"feeded_var_names[{i}]: {name} is not needed for the targets")


def save_inference_model(
    dirname: str,
    feeded_var_names: Sequence[str] | str,
    target_vars: Sequence[Variable] | Variable,
    executor: Executor,
    main_program: Program | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
) -> list[str]:
    """Writes the part of a program that computes targets from feeds, and its parameters.

    The saved program of a trainer runs without pservers, because it looks up rows in the saved tables: the trainer
    fetches them whole, those with is_distributed too. A program with an op auc gives a warning, because its
    statistics are saved as they are.

    Args:
        dirname (str): the folder.
        feeded_var_names (list[str] | str): names of the feeds.
        target_vars (list[Variable] | Variable): the targets.
        executor (Executor): fetches tables of pservers.
        main_program (Program | None): the program; None: the default main program.
        model_filename (str | None): file of the program; None: __model__.
        params_filename (str | None): one file for all parameters; None: a file per parameter.
        export_for_deployment (bool): False: write the whole program, with the suffix .main_program; feeds and targets
            may then be empty.
        program_only (bool): do not write the parameters; gives a warning.

    Returns:
        list[str]: the names of the variables that the saved program fetches.

    Raises:
        ValueError: a feed is not needed for the targets, or an argument has another type.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.fc(x, 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model('model', ['x'], [y], exe)
    """
    dirname = os.fspath(dirname)
    feeds, targets = _feed_names(feeded_var_names), _targets(target_vars, required=export_for_deployment)
    program = program_or_default(main_program).clone()
    if export_for_deployment:
        note_tables(program)
        look_up_at_hand(program, by_id=True)  # before pruning, which removes tables that no op names
    block = program.global_block()
    # Each target passes through a scale op with factor 1, so that its name and the op that computes it survive pruning.
    with framework.program_guard(program):
        ends = [
            arithmetic.scale(block.var(target.name), 1.0, name=f"save_infer_model/scale_{i}")
            for i, target in enumerate(targets)
        ]
    if any(op.type == "auc" for op in block.ops):
        warnings.warn(
            "save_inference_model: the program has an op auc; set its statistics to 0 before saving, unless "
            "the saved program is to continue counting",
            stacklevel=stack_level(),
        )
    model = os.path.basename(model_filename) if model_filename else "__model__"
    if export_for_deployment:
        for i in reversed(range(len(block.ops))):
            if block.ops[i].type in ("feed", "fetch"):
                block._remove_op(i)
        program = program._prune(ends, feeds).clone(for_test=True)
        _require_needed(program, feeds)
        prepend_feed_ops(program, feeds)
        append_fetch_ops(program, [end.name for end in ends])
    else:
        model += ".main_program"
    files = [(model, [program.desc.serialize_to_string()])]
    if program_only:
        warnings.warn("save_inference_model: program_only leaves out the parameters", stacklevel=stack_level())
        save_files(dirname, files)
    else:
        save_persistables_but(
            executor, dirname, program, lambda var: False, params_filename and os.path.basename(params_filename), files
        )
    return [end.name for end in ends]


def prepend_feed_ops(
    inference_program: Program, feed_target_names: Sequence[str], feed_holder_name: str = "feed"
) -> None:
    """Adds a feed op for each name at the beginning of a program.

    Args:
        inference_program (Program): the program.
        feed_target_names (list[str]): the names.
        feed_holder_name (str): name of the variable from which they are fed.

    Raises:
        ValueError: the program has no such variable.

    Example:
        y = fluid.layers.scale(fluid.data('x', [None, 4]), 2.0)
        fluid.io.prepend_feed_ops(fluid.default_main_program(), ['x'])
    """
    if not feed_target_names:
        return
    block = inference_program.global_block()
    holder = block.create_var(name=feed_holder_name, type=VarType.FEED_MINIBATCH, persistable=True)
    for i, name in enumerate(feed_target_names):
        if not block.has_var(name):
            raise program_error("E-save-feed", f"feeded_var_names[{i}]: {name} is not needed for the targets")
        block._prepend_op("feed", {"X": holder}, {"Out": block.var(name)}, {"col": i})


def append_fetch_ops(
    inference_program: Program, fetch_target_names: Sequence[str], fetch_holder_name: str = "fetch"
) -> None:
    """Adds a fetch op for each name at the end of a program.

    Args:
        inference_program (Program): the program.
        fetch_target_names (list[str]): the names.
        fetch_holder_name (str): name of the variable into which they are fetched.

    Example:
        y = fluid.layers.scale(fluid.data('x', [None, 4]), 2.0)
        fluid.io.append_fetch_ops(fluid.default_main_program(), [y.name])
    """
    block = inference_program.global_block()
    holder = block.create_var(name=fetch_holder_name, type=VarType.FETCH_LIST, persistable=True)
    for i, name in enumerate(fetch_target_names):
        block.append_op("fetch", {"X": name}, {"Out": holder}, {"col": i})


def warn_of_unknown_ops(program: Program, origin: str) -> None:
    """Warns that a program that was read has ops that are not known, which cannot run.

    Args:
        program (Program): the program.
        origin (str): where it was read from.
    """
    unknown = _penstock.unknown_ops(program.desc)
    if unknown:
        warnings.warn(f"{origin} has ops that are not known and cannot run: {unknown}", stacklevel=stack_level())


def _program_bytes(path: str) -> bytes:
    """Returns the bytes of the program of a saved model. Tools rewrite programs and leave their parameters alone, so a
    program that differs from the list of digests gives a warning; no interrupted save leaves such a program."""
    try:
        return read_saved(path)
    except DataError as error:
        if error.id != "E-save-mixed":
            raise
    warnings.warn(f"{path} has been changed since the model was saved; it is loaded as it is", stacklevel=stack_level())
    with open(path, "rb") as file:
        return file.read()


def load_inference_model(
    dirname: str | None,
    executor: Executor,
    model_filename: bytes | str | None = None,
    params_filename: bytes | str | None = None,
    pserver_endpoints: Sequence[str] | None = None,
) -> list[Any]:  # of three types
    """Reads a saved inference model, and loads its parameters into the global scope.

    Models of every version of Fluid and of Paddle 2 can be read. A warning names the ops that are not known, with their
    numbers; the rest of such a program can still be pruned and run. A program that another tool has rewritten in the
    folder gives a warning.

    Args:
        dirname (str | None): the folder; None: `model_filename` and `params_filename` are the bytes of the two files.
        executor (Executor): ignored; accepted for compatibility with Fluid.
        model_filename (str | bytes | None): file of the program; None: __model__.
        params_filename (str | bytes | None): one file for all parameters; None: a file per parameter.
        pserver_endpoints (list[str] | None): the pservers of its tables, instead of those that the program names.

    Returns:
        list: the program, the names of its feeds, and the Variables that it fetches.

    Raises:
        ValueError: `dirname` is not a folder.
        penstock.DataError: a file is damaged.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model('model', ['x'], [y], exe)
        program, feeds, fetches = fluid.io.load_inference_model('model', exe)
        result, = exe.run(program, feed={feeds[0]: np.ones((3, 4), 'float32')}, fetch_list=fetches)
        assert result.shape == (3, 2)
    """
    if dirname is None:
        if not isinstance(model_filename, bytes) or not isinstance(params_filename, bytes):
            raise ValueError("without dirname, model_filename and params_filename must be the bytes of the two files")
        model = model_filename
    elif not os.path.isdir(dirname):
        raise program_error("E-load-folder", f"{dirname} is not a folder")
    else:
        name = os.path.basename(model_filename) if model_filename else "__model__"
        model = _program_bytes(path_in(dirname, name))
        params_filename = params_filename and os.path.basename(params_filename)
    program = Program.parse_from_string(model)
    warn_of_unknown_ops(program, dirname or "the program")
    load_persistables(executor, dirname, program, params_filename)
    block = program.global_block()
    if pserver_endpoints:
        for op in block.ops:
            if op.has_attr("epmap"):
                op._set_attr("epmap", list(pserver_endpoints))
    feeds = [(op.attr("col"), op.output("Out")[0]) for op in block.ops if op.type == "feed"]
    fetches = [(op.attr("col"), op.input("X")[0]) for op in block.ops if op.type == "fetch"]
    return [program, [name for _, name in sorted(feeds)], [block.var(name) for _, name in sorted(fetches)]]
