"""Checks of a saved model: it is loaded, fed and run, and its variables are compared."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy

from penstock._penstock import Scope
from penstock._src.base.errors import error_with_id
from penstock._src.data.feeder import DataFeeder
from penstock._src.executor import executor
from penstock._src.executor.scopes import global_scope, scope_guard
from penstock._src.fleet.program_tools import feed_fetch_type_list, load_program, logger, program_type_trans
from penstock._src.io.inference_model import load_inference_model
from penstock._src.io.var_records import is_persistable
from penstock._src.ir.lod_tensor import create_lod_tensor
from penstock._src.ir.types import CPUPlace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy import dtype, ndarray

    from penstock._penstock import LoDTensor
    from penstock._src.ir.block import Block
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


not_expected_op_types = ["lookup_table"]


def reader(batch_size: int, fn: str, dim: Sequence[int] | int) -> list[Array]:
    """Reads batches from a file of numbers, separated by spaces.

    Args:
        batch_size (int): examples of a batch.
        fn (str): the file.
        dim (int | list[int]): the extents of an example.

    Returns:
        list[numpy.ndarray]: the batches; numbers of a line that fill no batch are left out.
    """
    extents = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    count = batch_size * int(numpy.prod(extents))
    batches = []
    with open(fn) as file:
        for line in file:
            numbers = [float(word) for word in line.split()]
            batches += [
                numpy.array(numbers[at : at + count]).reshape([batch_size] + extents)
                for at in range(0, len(numbers) - count + 1, count)
            ]
    return batches


def feed_gen(
    batch_size: int, feeded_vars_dims: Sequence[Any], feeded_vars_filelist: Sequence[str]
) -> list[list[Array]]:
    """Reads the batches of several variables, each from its file.

    Args:
        batch_size (int): examples of a batch.
        feeded_vars_dims (list): the extents of each variable's examples.
        feeded_vars_filelist (list[str]): the files.

    Returns:
        list[list[numpy.ndarray]]: the batches of each variable.
    """
    return [reader(batch_size, name, dim) for name, dim in zip(feeded_vars_filelist, feeded_vars_dims)]


def _feeds(
    config: Any, block: Block, batch_size: int
) -> dict[str, LoDTensor | ndarray[tuple[Any, ...], dtype[Any]]] | dict[str, LoDTensor]:
    """Returns the feed of a run: random numbers, or those of the config's files."""
    variables = [block.var(name) for name in config.feeded_vars_names]
    dims = [tuple(dim) if isinstance(dim, (list, tuple)) else (dim,) for dim in config.feeded_vars_dims]
    for var, dim in zip(variables, dims):
        if tuple(var.shape[1:]) != dim:
            raise error_with_id(
                RuntimeError,
                "E-fleet-saved-model",
                f"feed variable '{var.name}': the program declares the shape {tuple(var.shape[1:])}, feed_config {dim}",
            )
    if config.feeded_vars_filelist:
        feeder = DataFeeder(feed_list=variables, place=CPUPlace())
        return feeder.feed([feed_gen(batch_size, dims, config.feeded_vars_filelist)])
    feed = {}
    for var, dim, dtype in zip(variables, dims, config.feeded_vars_types):
        array = numpy.random.random((batch_size,) + dim).astype(dtype)
        if var.lod_level > 1:
            raise error_with_id(
                RuntimeError,
                "E-fleet-saved-model",
                f"feed variable {var.name} has lod_level {var.lod_level}; at most 1 can be made up",
            )
        feed[var.name] = create_lod_tensor(array, [[1] * batch_size], CPUPlace()) if var.lod_level else array
    return feed


def try_load_model_vars(
    dump_dir: str,
    dump_prog_fn: str,
    is_text_dump_program: bool,
    batch_size: int,
    feed_config: Any,
    fetch_config: Any,
    save_filename: str | None,
    saved_params: Sequence[Variable],
) -> list[Any]:
    """Loads a saved model into a scope of its own, checks the shapes of its variables, and runs it.

    Args:
        dump_dir (str): the folder.
        dump_prog_fn (str): the file of the program.
        is_text_dump_program (bool): the file holds text.
        batch_size (int): examples of the batch that is run.
        feed_config (object): feeded_vars_names, _dims, _types and _filelist.
        fetch_config (object): fetch_vars_names.
        save_filename (str | None): the file of all variables.
        saved_params (list[Variable]): the variables that must be there.

    Returns:
        list: the values of the fetched variables.

    Raises:
        RuntimeError: a shape differs.
    """
    exe = executor.Executor(CPUPlace())
    with scope_guard(Scope()):
        if is_text_dump_program:
            dump_prog_fn = program_type_trans(dump_dir, dump_prog_fn, is_text_dump_program)
        program, feeds, fetches = load_inference_model(
            dump_dir, exe, model_filename=dump_prog_fn, params_filename=save_filename
        )
        for var in saved_params:
            held = global_scope().find_var(var.name)
            if held is None:
                raise error_with_id(RuntimeError, "E-fleet-saved-model", f"the saved model has no variable {var.name}")
            shape = tuple(numpy.array(held.get_tensor()).shape)
            if shape != tuple(var.shape):
                raise error_with_id(
                    RuntimeError,
                    "E-fleet-saved-model",
                    f"Shape not matching: the program declares {var.name} with shape {tuple(var.shape)}, but the "
                    "saved one has "
                    f"shape {shape}",
                )
        block = program.global_block()
        names = fetch_config.fetch_vars_names
        fetches = fetches if names is None else [block.var(name) for name in names]
        for kind, have, want in (("feed", feeds, feed_config.feeded_vars_names), ("fetch", fetches, names)):
            if not have:
                logger.warning("the program has no %s targets", kind)
            elif want is not None and [getattr(one, "name", one) for one in have] != list(want):
                logger.warning("%s variables of the program %s differ from those of the config %s", kind, have, want)
        results = exe.run(
            program,
            feed=_feeds(feed_config, block, batch_size),
            fetch_list=fetches,
            return_numpy=all(var.lod_level == 0 for var in fetches),
        )
    for var, value in zip(fetches, results):
        logger.info("fetched %s: %s", var.name, value)
    return results


def check_not_expected_ops(prog: Program) -> None:
    """Warns about ops that a program for inference should not have.

    Args:
        prog (Program): the program.
    """
    for kind in sorted({op.type for op in prog.global_block().ops} & set(not_expected_op_types)):
        logger.warning("the program has the op '%s'; was it pruned correctly?", kind)


def check_saved_vars_try_dump(
    dump_dir: str,
    dump_prog_fn: str,
    is_text_dump_program: bool,
    feed_config: object,
    fetch_config: object,
    batch_size: int = 1,
    save_filename: str | None = None,
) -> list[Any]:
    """Loads a saved model, checks the shapes of its variables, and runs it.

    Args:
        dump_dir (str): the folder.
        dump_prog_fn (str): the file of the program.
        is_text_dump_program (bool): the file holds text.
        feed_config (object): feeded_vars_names, feeded_vars_dims (extents without the batch), feeded_vars_types and
            feeded_vars_filelist (files of numbers; empty: random numbers).
        fetch_config (object): fetch_vars_names.
        batch_size (int): examples of the batch that is run.
        save_filename (str | None): the file of all variables; None: one for each.

    Returns:
        list: the values of the fetched variables.

    Raises:
        RuntimeError: a shape differs.

    Example:
        import types
        from penstock.fluid.incubate.fleet.utils import utils
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model('model', ['x'], [y], exe)
        feed = types.SimpleNamespace(feeded_vars_names=['x'], feeded_vars_dims=[4], feeded_vars_types=['float32'],
                                     feeded_vars_filelist=[])
        fetch = types.SimpleNamespace(fetch_vars_names=[y.name])
        result, = utils.check_saved_vars_try_dump('model', '__model__', False, feed, fetch, batch_size=3)
        assert result.shape == (3, 2)
    """
    program = load_program(os.path.join(dump_dir, dump_prog_fn), is_text_dump_program)
    saved = [var for var in program.list_vars() if is_persistable(var) and var.type not in feed_fetch_type_list]
    logger.info("persistable variables: %s", [var.name for var in saved])
    check_not_expected_ops(program)
    return try_load_model_vars(
        dump_dir, dump_prog_fn, is_text_dump_program, batch_size, feed_config, fetch_config, save_filename, saved
    )
