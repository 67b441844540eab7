"""Variables and their records in files, in Fluid's formats: which variables a file holds, where it lies, what it
contains. var_files.py writes and loads them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock._penstock import RuntimeVariable
from penstock._src.base.errors import program_error
from penstock._src.base.file_writing import SavedFolder, is_list
from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Parameter

if TYPE_CHECKING:
    from penstock._src.ir.variable import Variable


NEVER_SAVED = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW)


def is_parameter(var: Variable) -> bool:
    """Returns whether a variable is a parameter.

    Args:
        var (Variable): the variable.

    Returns:
        bool: whether training updates it.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32')
        assert fluid.io.is_parameter(w)
    """
    return isinstance(var, Parameter)


def is_persistable(var: Variable) -> bool:
    """Returns whether a variable is saved: persistable, and neither a feed, a fetch nor a reader.

    Args:
        var (Variable): the variable.

    Returns:
        bool: whether it is.

    Example:
        assert not fluid.io.is_persistable(fluid.data('x', [2, 3]))
    """
    return var.persistable and var.type not in NEVER_SAVED


def is_belong_to_optimizer(var: Variable) -> bool:
    """Returns whether a variable is persistable but not a parameter, like the state of an optimizer.

    Args:
        var (Variable): the variable.

    Returns:
        bool: whether it is.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32')
        assert not fluid.io.is_belong_to_optimizer(w)
    """
    return not is_parameter(var) and not var.need_check_feed and is_persistable(var)


def file_of(dirname: str, name: str) -> str:
    """Returns the path of a variable's own file.

    The names in a model are untrusted: a name such as "../../x" must not lead out of the folder. Names with slashes,
    which Fluid's name scopes create, have files in subfolders.
    """
    inside = os.path.normpath(name) if name else os.curdir
    if os.path.isabs(name) or inside == os.pardir or inside.startswith(os.pardir + os.sep):
        raise program_error(
            "E-file-outside", f"the file of variable {name!r} is outside {dirname}; rename the variable"
        )
    if is_list(inside):
        raise program_error(
            "E-file-reserved",
            f"the file of variable {name!r} would replace the list of digests in {dirname}; rename the variable",
        )
    return os.path.join(dirname, name)


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def parse(path: str, data: bytes, offset: int, kind: VarType = VarType.LOD_TENSOR) -> tuple[RuntimeVariable, int]:
    """Returns (the value at `offset` of a file, the offset of the next one)."""
    return RuntimeVariable._from_file_bytes(data, offset, kind == VarType.SELECTED_ROWS, path)


def read_single(path: str) -> RuntimeVariable:
    """Returns the tensor in a file of one variable. Ignores data after it, which Fluid's pservers write."""
    return parse(path, read_saved(path), 0)[0]


def read_saved(path: str) -> bytes:
    """Returns the bytes of a file, compared with its digest if the folder has a list of digests."""
    return SavedFolder(os.path.dirname(path) or os.curdir).read(os.path.basename(path))


def read_combined(path: str, names: list[str]) -> list[RuntimeVariable]:
    """Returns the tensors in one file for all, one per name."""
    return records_in(read_saved(path), path, names)


def records_in(data: bytes, path: str, names: list[str]) -> list[RuntimeVariable]:
    values, offset = [], 0
    for name in names:
        if offset >= len(data):
            raise program_error(
                "E-load-short",
                f"{path} ends before variable {name}: it holds fewer than the {len(names)} requested variables",
            )
        value, offset = parse(f"{path}: {name}", data, offset)
        values.append(value)
    if offset != len(data):
        raise program_error("E-load-rest", f"{path} holds more than the {len(names)} requested variables")
    return values
