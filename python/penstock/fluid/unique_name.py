"""Unique names are C++ state: append_backward, clips and optimizers draw from it too, in Fluid's order."""

import contextlib

from penstock._penstock import UniqueNames

__all__ = ['generate', 'guard', 'switch']

UniqueNameGenerator = UniqueNames
generator = UniqueNames()


def generate(key):
    """key_0, key_1, ... : the next of its key."""
    return generator(key)


def generate_with_ignorable_key(key):
    """generate, under the name that Fluid's layers call it by."""
    return generate(key)


def switch(new_generator=None):
    """Makes `new_generator` (default: an empty one) the current one; returns the one before."""
    global generator
    old = generator
    generator = UniqueNames() if new_generator is None else new_generator
    return old


@contextlib.contextmanager
def guard(new_generator=None):
    """Names inside start afresh. A string is a prefix of all of them."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNames(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
