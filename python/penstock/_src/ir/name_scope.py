"""NameScope: a tree of names, as the module framework of Fluid has it."""

from __future__ import annotations


class NameScope:
    """A name in a tree of names. fluid.name_scope() keeps its own tree; this one is for programs that name things.

    Args:
        name (str): the name; '' for the root.
        parent (NameScope | None): the name above it.

    Example:
        root = fluid.framework.NameScope()
        first, second = root.child('block'), root.child('block')
        assert (first.name(), second.name()) == ('block', 'block_1') and second.parent() is root
    """

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._name, self._parent = name, parent
        self._counts: dict[str, int] = {}  # {prefix: children that have it}

    def child(self, prefix: str) -> NameScope:
        """Creates a name below this one: the prefix itself, or, if it was asked for before, with a number.

        Args:
            prefix (str): the prefix.

        Returns:
            NameScope: the child.
        """
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        return NameScope(f"{prefix}_{count}" if count else prefix, self)

    def parent(self) -> NameScope | None:
        """Returns the name above this one.

        Returns:
            NameScope: None for the root.
        """
        return self._parent

    def name(self) -> str:
        """Returns this name, without those above it.

        Returns:
            str: the name.
        """
        return self._name
