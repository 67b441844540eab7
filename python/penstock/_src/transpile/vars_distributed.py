"""The slices of all variables and their pservers: t.vars_overview after transpile().

for one in t.vars_overview.get_distributed_vars_by_ep('10.0.0.1:6174'):
    print(one.origin.name, one.slice.name, one.offset)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.same_arguments import arguments_of
from penstock._src.ir.types import VarDesc, to_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._penstock import _PlannedParam
    from penstock._src.ir.types import VarType


class VarStruct:
    """Describes a variable without its program.

    Args:
        name (str): its name.
        shape (list[int] | tuple): its shape.
        dtype (VarType): its element type.
        type (VarType): its kind.
        lod_level (int): its nesting of sequences.
        persistable (bool): whether it keeps its value between steps.

    Example:
        from penstock.fluid.transpiler.details import VarStruct
        piece = VarStruct.of_piece('w.block0', [7, 4], 'f32', sparse=False)
        assert piece.shape == (7, 4) and not piece.persistable
    """

    def __init__(
        self, name: str, shape: Sequence[int], dtype: VarType, type: VarType, lod_level: int, persistable: bool
    ) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        self.type = type
        self.lod_level = lod_level
        self.persistable = persistable

    @classmethod
    def of_piece(cls, name: str, shape: Sequence[int], dtype: str, sparse: bool) -> VarStruct:
        """Describes a slice of the plan.

        Args:
            name (str): its name.
            shape (list[int]): its shape.
            dtype (str): its element type, as the plan writes it ('f32').
            sparse (bool): whether it is selected rows.

        Returns:
            VarStruct: the description.
        """
        kind = VarDesc.VarType.SELECTED_ROWS if sparse else VarDesc.VarType.LOD_TENSOR
        return cls(name, shape, to_dtype(_DTYPES.get(dtype, dtype)), kind, 0, False)

    def __repr__(self) -> str:
        return f"VarStruct({self.name!r}, shape={list(self.shape)})"


# The plan's names of element types, if they differ from numpy's.
_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
}


_TEXTS = {
    "equal": """Returns whether two descriptions are equal.

Args:
    var1 (VarStruct): one description.
    var2 (VarStruct): the other.

Returns:
    bool: True if all fields are equal.""",
    "of_a_slice": """origin_var (VarStruct): the whole variable.
slice_var (VarStruct): the slice.
is_slice (bool | None): whether the slice is less than the whole.
block_id (int | None): the number of the slice.
offset (int | None): elements of the whole before the slice.
vtype (str | None): 'Param', 'RemotePrefetch' or 'Optimizer'.
endpoint (str | None): the address of the pserver.""",
}


@with_texts(_TEXTS)
class VarDistributed:
    """One slice of one variable, and the pserver that holds it.

    Args:
        {of_a_slice}

    Example:
        from penstock.fluid.transpiler.details import VarDistributed, VarStruct
        whole = VarStruct.of_piece('w', [13, 4], 'f32', sparse=False)
        first = VarStruct.of_piece('w.block0', [7, 4], 'f32', sparse=False)
        one = VarDistributed(whole, first, True, 0, 0, 'Param', '10.0.0.1:6174')
        assert one.slice.name == 'w.block0' and not VarDistributed.equal(whole, first)
    """

    def __init__(
        self,
        origin_var: VarStruct,
        slice_var: VarStruct,
        is_slice: bool | None = None,
        block_id: int | None = None,
        offset: int | None = None,
        vtype: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        self.origin = origin_var
        self.slice = slice_var
        self.is_slice = is_slice  # whether it is less than the whole
        self.block_id = block_id  # the number of the slice
        self.offset = offset  # elements of the whole before it
        self.vtype = vtype  # 'Param', 'RemotePrefetch' or 'Optimizer'
        self.endpoint = endpoint

    @staticmethod
    @with_texts(_TEXTS)
    def equal(var1: VarStruct, var2: VarStruct) -> bool:
        """{equal}"""
        return all(
            getattr(var1, field) == getattr(var2, field)
            for field in ("name", "type", "shape", "dtype", "lod_level", "persistable")
        )

    def __str__(self) -> str:
        origin, piece = (f"{var.name} : {var.dtype.name}{list(var.shape)}" for var in (self.origin, self.slice))
        return (
            f"{origin} -> {piece}, is_slice={self.is_slice}, block_id={self.block_id}, offset={self.offset}, "
            f"vtype={self.vtype}, endpoint={self.endpoint}"
        )


class VarsDistributed:
    """All slices of a transpile, in the order of the plan: `distributed_vars` is a list of VarDistributed.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1, param_attr='w', bias_attr=False))
        fluid.optimizer.SGD(0.01).minimize(loss)
        t = fluid.DistributeTranspiler()
        t.transpile(0, pservers='10.0.0.1:6174', trainers=2)
        found = t.vars_overview.get_distributed_vars_by_ep('10.0.0.1:6174')
        assert [one.origin.name for one in found] == ['w']
    """

    def __init__(self) -> None:
        self.distributed_vars: list[VarDistributed] = []

    @with_texts(_TEXTS)
    @arguments_of(VarDistributed.__init__)
    def add_distributed_var(self, *args: Any, **named: Any) -> None:
        """Appends a slice.

        Args:
            {of_a_slice}
        """
        self.distributed_vars.append(VarDistributed(*args, **named))

    @staticmethod
    @with_texts(_TEXTS)
    def equal(var1: VarStruct, var2: VarStruct) -> bool:
        """{equal}"""
        return VarDistributed.equal(var1, var2)

    def get_distributed_var_by_slice(self, var_name: str) -> VarDistributed | None:
        """Finds a slice by its name.

        Args:
            var_name (str): the name of the slice.

        Returns:
            VarDistributed: the slice, or None.
        """
        return next((one for one in self.distributed_vars if one.slice.name == var_name), None)

    def get_distributed_var_by_origin_and_ep(self, origin_var_name: str, endpoint: str) -> VarDistributed | None:
        """Finds the first slice of a variable on a pserver.

        Args:
            origin_var_name (str): the name of the whole variable.
            endpoint (str): the address of the pserver.

        Returns:
            VarDistributed: the slice, or None.
        """
        return next(
            (one for one in self.distributed_vars if one.origin.name == origin_var_name and one.endpoint == endpoint),
            None,
        )

    def get_distributed_vars_by_vtypes(
        self, vtypes: Sequence[str], groupby: bool = False
    ) -> dict[Any, Any] | list[Any]:
        """Finds the slices of some types.

        Args:
            vtypes (list[str]): of 'Param', 'RemotePrefetch' and 'Optimizer'.
            groupby (bool): group them by the whole variable.

        Returns:
            list | dict: the slices, or {name of the whole variable: [slice]}.
        """
        found = [one for one in self.distributed_vars if one.vtype in vtypes]
        if not groupby:
            return found
        groups: dict[str, list[VarDistributed]] = {}
        for one in found:
            groups.setdefault(one.origin.name, []).append(one)
        return groups

    def get_distributed_vars_by_ep(self, endpoint: str, vtype: str | None = None) -> list[VarDistributed]:
        """Finds the slices of a pserver.

        Args:
            endpoint (str): the address of the pserver.
            vtype (str | None): only slices of this type.

        Returns:
            list[VarDistributed]: the slices.
        """
        return [
            one for one in self.distributed_vars if one.endpoint == endpoint and (vtype is None or one.vtype == vtype)
        ]

    def overview(self) -> str:
        """Describes all slices as text.

        Returns:
            str: a line for each slice.
        """
        return "\n".join(str(one) for one in self.distributed_vars)


def overview_of(params: list[_PlannedParam]) -> VarsDistributed:
    """Returns the VarsDistributed of the plan's parameters, which _RoleSet.params contains."""
    overview = VarsDistributed()
    for name, _, dtype, shape, _, prefetched, slices in params:
        whole = VarStruct.of_piece(name, shape, dtype, False)
        whole.persistable = True
        width = 1
        for extent in shape[1:]:
            width *= extent
        for number, (piece, row_begin, row_end, endpoint) in enumerate(slices):
            part = VarStruct.of_piece(piece, [row_end - row_begin] + shape[1:] if shape else [], dtype, False)
            part.persistable = True
            overview.add_distributed_var(
                origin_var=whole,
                slice_var=part,
                is_slice=len(slices) > 1,
                block_id=number,
                offset=row_begin * width,
                vtype="RemotePrefetch" if prefetched else "Param",
                endpoint=endpoint,
            )
    return overview
