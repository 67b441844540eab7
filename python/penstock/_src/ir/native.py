"""What Python adds to the classes of C++: methods of Fluid's core, and docstrings. The package imports it first.

A subclass or a function cannot have these methods. C++ makes the objects (`Scope.var(name).get_tensor()` a LoDTensor,
`Program.desc` a ProgramDesc), so objects of a subclass would never reach a script, and scripts written for Fluid call
the methods on the objects. They are written here and not in python/src because they consist of other methods, or return
objects of Python:

    ProgramDesc      block, append_block return BlockDesc, a class of descs.py; _version is 0 for a program without one
    LoDTensor        numpy makes parts, copies and DLPack capsules, and allocates (tensors.py); _place is a Place
    Scope            _remove_from_pool remembers, for the life of the object, that the scope was removed
    RuntimeVariable  get_fetch_list is another name of get_lod_tensor_array

_METHODS has all of them; no other module adds to a class of C++.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._penstock import LoDTensor, LoDTensorArray, ProgramDesc, RuntimeVariable, Scope, SelectedRows
from penstock._src.ir import registry, tensors, value_docs
from penstock._src.ir.descs import BlockDesc


def _block(program: ProgramDesc, index: int) -> BlockDesc:
    """Returns the block at an index.

    Args:
        index (int): from 0.

    Returns:
        BlockDesc: a view of the block.

    Raises:
        IndexError: the block does not exist.
    """
    if not 0 <= index < program.num_blocks():
        raise IndexError(f"there is no block {index}; the program has {program.num_blocks()}")
    return BlockDesc(program, index)


if TYPE_CHECKING:
    from typing import Any


_append_block = ProgramDesc.append_block


def _append(program: ProgramDesc, parent: BlockDesc | int) -> BlockDesc | int:
    """Appends a block inside another.

    Args:
        parent (int | BlockDesc): the enclosing block.

    Returns:
        int | BlockDesc: the index of the new block, or a view of it if `parent` is a view.
    """
    index = _append_block(program, parent)
    return BlockDesc(program, index) if isinstance(parent, BlockDesc) else index


def _version(program: ProgramDesc) -> int:
    return program.version or 0


_METHODS: dict[type, dict[str, Any]] = {
    ProgramDesc: {"block": _block, "append_block": _append, "_version": _version},
    LoDTensor: {
        "_to_dlpack": tensors.to_dlpack,
        "_set_dims": tensors.set_dims,
        "_get_dims": LoDTensor.shape,
        "_alloc_float": tensors.alloc("float32"),
        "_alloc_double": tensors.alloc("float64"),
        "_alloc_int": tensors.alloc("int32"),
        "_copy": tensors.copy,
        "_mutable_data": tensors.mutable_data,
        "_place": registry.place_of,
        "__getitem__": tensors.part,
    },
    Scope: {"_remove_from_pool": tensors.remove_from_pool},
    RuntimeVariable: {"get_fetch_list": RuntimeVariable.get_lod_tensor_array},
}
_DOCS = {
    LoDTensor: value_docs.LOD_TENSOR,
    LoDTensorArray: value_docs.LOD_TENSOR_ARRAY,
    SelectedRows: value_docs.SELECTED_ROWS,
    Scope: value_docs.SCOPE,
    ProgramDesc: value_docs.PROGRAM_DESC,
}

for _class, _methods in _METHODS.items():
    for _name, _method in _methods.items():
        setattr(_class, _name, _method)
for _class, _doc in _DOCS.items():
    _class.__doc__ = _doc
