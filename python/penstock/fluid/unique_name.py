"""Unique names. The generator is C++ state, because append_backward, clips and optimizers use it too, in Fluid's order.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.unique_name import UniqueNameGenerator as UniqueNameGenerator, generate
    from penstock._src.ir.unique_name import generate_with_ignorable_key as generate_with_ignorable_key
    from penstock._src.ir.unique_name import generator as generator, guard, switch

__all__ = ['generate', 'guard', 'switch']

facade.make(__name__)
