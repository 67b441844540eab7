"""memory_optimize and release_memory: the same program with less memory.

Since 1.6 Fluid's own do nothing but log a warning. These rewrite the program that is given, as Fluid's did before:

    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[loss])

What is fetched has to stand in skip_opt_set, because a variable that takes another's buffer is gone under its name.
Nothing that is fed, kept between steps, sent or received is touched, so it works before and after transpile.
"""

from penstock import _penstock
from penstock.fluid.framework import Program

__all__ = ['memory_optimize', 'release_memory']


def memory_optimize(input_program, skip_opt_set=None, print_log=False, level=0, skip_grads=True):
    """Lets temporaries take the buffers of others that nobody reads any more.

    skip_opt_set   variables, or their names, that keep their own
    print_log      print what takes whose buffer, and how many bytes that saves
    level          0: buffers of the same type and shape alone; 1: also larger ones
    skip_grads     leave alone what the backward pass writes
    """
    if level not in (0, 1):
        raise ValueError('level must be 0 or 1, not %r' % (level,))
    less, report = _penstock.reuse_buffers(_desc(input_program), _names(skip_opt_set), level == 1, bool(skip_grads))
    _rewrite(input_program, less, report if print_log else '')


def release_memory(input_program, skip_opt_set=None):
    """Puts a delete_var behind the last use of each temporary."""
    less, _ = _penstock.release_buffers(_desc(input_program), _names(skip_opt_set))
    _rewrite(input_program, less, '')


def _desc(program):
    if not isinstance(program, Program):
        raise TypeError('a Program is needed, not %s' % type(program).__name__)
    return program.desc


def _names(variables):
    if variables is None:
        return []
    if isinstance(variables, str):
        variables = [variables]
    return [variable if isinstance(variable, str) else variable.name for variable in variables]


def _rewrite(program, less, report):
    if report:
        print(report, end='')
    if less.content_id != program.desc.content_id:
        program._rebind(less)
