"""Unique names. The generator is C++ state: append_backward, clips and optimizers use it too, in Fluid's order."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._penstock import UniqueNames
from penstock._src.base.doc_texts import with_texts

if TYPE_CHECKING:
    from collections.abc import Iterator


UniqueNameGenerator = UniqueNames
generator = UniqueNames()


_KEY = {"from_key": "Args:\n    key (str): its prefix.\n\nReturns:\n    str: key_0, key_1 and so on."}


@with_texts(_KEY)
def generate(key: str) -> str:
    """Returns a new unique name.

    {from_key}

    Example:
        assert fluid.unique_name.generate('fc') == 'fc_0'
    """
    return generator(key)


@with_texts(_KEY)
def generate_with_ignorable_key(key: str) -> str:
    """Returns a new unique name, like `generate`.

    {from_key}

    Example:
        name = fluid.unique_name.generate_with_ignorable_key('tmp')
    """
    return generate(key)


def switch(new_generator: UniqueNames | None = None) -> UniqueNames:
    """Replaces the generator of names.

    Args:
        new_generator (UniqueNameGenerator | None): the new generator; None: a newly created one.

    Returns:
        UniqueNameGenerator: the previous generator.

    Example:
        old = fluid.unique_name.switch()
        fluid.unique_name.switch(old)
    """
    global generator
    old = generator
    generator = UniqueNames() if new_generator is None else new_generator
    return old


@contextlib.contextmanager
def guard(new_generator: UniqueNames | str | None = None) -> Iterator[None]:
    """Uses a new generator of names inside a with statement.

    Args:
        new_generator (str | bytes | UniqueNameGenerator | None): a prefix of all names, or a generator.

    Returns:
        A context manager.

    Example:
        with fluid.unique_name.guard('a_'):
            assert fluid.unique_name.generate('fc') == 'a_fc_0'
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNames(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
