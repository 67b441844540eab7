"""UnionFind: a partition of elements into sets that are merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class UnionFind:
    """Sets of elements; at first each element is a set of its own.

    Args:
        elementes (list | None): the elements, which hash; None: none.

    Example:
        from penstock.fluid.transpiler.details.ufind import UnionFind
        sets = UnionFind(['a', 'b', 'c'])
        sets.union('a', 'b')
        assert sets.is_connected('a', 'b') and not sets.is_connected('a', 'c')

    Reference:
        Galler, Fischer: "An improved equivalence algorithm", Communications of the ACM 7, 1964.
    """

    def __init__(self, elementes: Sequence[Any] | None = None) -> None:
        self._number = {element: number for number, element in enumerate(dict.fromkeys(elementes or ()))}
        self._above = list(range(len(self._number)))  # by number; that of a set itself at its root

    def find(self, x: object) -> int:
        """Finds the set of an element.

        Args:
            x (object): the element.

        Returns:
            int: the number of the set, equal for all its elements; -1: there is no such element.
        """
        if x not in self._number:
            return -1
        root = self._number[x]
        while self._above[root] != root:
            root = self._above[root]
        number = self._number[x]
        while number != root:  # later calls are quicker
            number, self._above[number] = self._above[number], root
        return root

    def union(self, x: object, y: object) -> None:
        """Merges the sets of two elements.

        Args:
            x (object): an element.
            y (object): another one.

        Raises:
            ValueError: there is no such element.
        """
        for element in (x, y):
            if element not in self._number:
                raise ValueError(f"UnionFind: there is no element {element!r}")
        self._above[self.find(x)] = self.find(y)

    def is_connected(self, x: object, y: object) -> bool:
        """Tells whether two elements are in one set.

        Args:
            x (object): an element.
            y (object): another one.

        Returns:
            bool: False also if one of them is not there.
        """
        return self.find(x) == self.find(y) != -1
