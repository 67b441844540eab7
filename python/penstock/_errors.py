"""Errors that only Python can find, in the form of those from C++."""

from penstock._penstock import ProgramError


def program_error(id, message, *details):
    """A ProgramError to raise: `message   [id]`, then one line for each detail."""
    error = ProgramError('\n  '.join(('%s   [%s]' % (message, id),) + details))
    error.id = id
    error.details = list(details)
    return error
