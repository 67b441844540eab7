"""memory_optimize and release_memory: rewrite a program so that it needs less memory.

Since version 1.6 Fluid's functions only log a warning. These rewrite the given program, as Fluid's did before:

    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[loss])

skip_opt_set must contain fetched variables, because a variable that takes another's buffer loses its name. Variables
that are fed, kept between steps, sent or received are not changed, so the functions work before and after transpile.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.program import Program as Program
    from penstock._src.transpile.memory_optimization import memory_optimize, release_memory

__all__ = ['memory_optimize', 'release_memory']

facade.make(__name__)
