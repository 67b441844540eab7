"""Unique names. The generator is C++ state, because append_backward, clips and optimizers use it too, in Fluid's order.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.ir.unique_name import (
    UniqueNameGenerator as UniqueNameGenerator, generate as generate,
    generate_with_ignorable_key as generate_with_ignorable_key, generator as generator, guard as guard,
    switch as switch,
)
from penstock._src.names import facade

__all__ = ['generate', 'guard', 'switch']

facade.make(__name__)
