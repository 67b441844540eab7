"""How variables are cut into slices, one or more per pserver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.transpile.config import MOST_ELEMENTS, check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.variable import Variable


class VarBlock:
    """A slice of a variable: `varname`, its number `offset`, and its elements `size`. As text: 'name:number:elements'.

    Args:
        varname (str): the variable.
        offset (int): the number of the slice.
        size (int): its elements.

    Example:
        assert str(fluid.transpiler.distribute_transpiler.VarBlock('w', 1, 5000)) == 'w:1:5000'
    """

    def __init__(self, varname: str, offset: int, size: int) -> None:
        self.varname, self.offset, self.size = varname, offset, size

    def __str__(self) -> str:
        return f"{self.varname}:{self.offset}:{self.size}"


def same_or_split_var(p_name: str, var_name: str) -> bool:
    """Tells whether a name is that of a variable or of one of its slices, as the transpiler names them.

    Args:
        p_name (str): the name.
        var_name (str): the variable.

    Returns:
        bool: True for 'w' and 'w.block0' of 'w'.

    Example:
        from penstock.fluid.transpiler.distribute_transpiler import same_or_split_var
        assert same_or_split_var('w.block1', 'w') and not same_or_split_var('w_1', 'w')
    """
    return p_name == var_name or p_name.startswith(var_name + ".block")


def slice_variable(var_list: Sequence[Variable], slice_count: int, min_block_size: int) -> list[str]:
    """Computes how variables would be cut into slices.

    Args:
        var_list (list[Variable]): the variables.
        slice_count (int): the maximum number of slices of a variable, such as the number of pservers.
        min_block_size (int): the minimum number of elements of a slice.

    Returns:
        list[str]: 'name:slice number:elements' for each slice.

    Example:
        w = fluid.layers.create_parameter([1000, 10], 'float32', name='w')
        slices = fluid.transpiler.distribute_transpiler.slice_variable([w], 2, 1024)
        assert slices == ['w:0:5000', 'w:1:5000']
    """
    check_count("slice_count", slice_count, 1)
    check_count("min_block_size", min_block_size, 1, MOST_ELEMENTS)
    cuts = []
    for var in var_list:
        bounds = _penstock.cut_rows(list(var.shape), slice_count, min_block_size)
        width = 1
        for extent in var.shape[1:]:
            width *= extent
        cuts += [VarBlock(var.name, i, (bounds[i + 1] - bounds[i]) * width) for i in range(len(bounds) - 1)]
    return [str(cut) for cut in cuts]
