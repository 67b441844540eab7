"""The variables of a block as a mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock._src.ir.block import Block
    from penstock._src.ir.variable import Variable


class BlockVars:
    """Block.vars: the block's own variables by name, in their order; a read-only view."""

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __getitem__(self, name: str) -> Variable:
        block = self._block
        if not block.program.desc.has_var(block.idx, name):
            raise KeyError(name)
        return block._var_handle(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._block.program.desc.has_var(self._block.idx, name)

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        return self._block.program.desc.vars(self._block.idx)

    def values(self) -> list[Variable]:
        return [self._block._var_handle(name) for name in self.keys()]

    def items(self) -> list[tuple[str, Variable]]:
        return [(name, self._block._var_handle(name)) for name in self.keys()]

    def get(self, name: str, default: Variable | None = None) -> Variable | None:
        return self[name] if name in self else default
