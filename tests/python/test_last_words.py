"""What a failing trainer tells its peers: the line that says what is wrong, whatever the shape of the error."""

import pytest
from penstock import ProgramError
from penstock._src.executor.failure_report import LINE_MAX, _first_line


class Silent(Exception):
    """An exception whose text cannot be made."""

    def __str__(self):
        raise RuntimeError("no text")


def error_of(code):
    try:
        exec(compile(code, "train.py", "exec"), {})
    except BaseException as error:
        return error


def with_note(error):
    error.__notes__ = ["a note of Python 3.11"]
    return error


@pytest.mark.parametrize(
    "error, line",
    [
        (ValueError("no more data"), "ValueError: no more data"),
        (
            ProgramError(
                "lookup: no value   [E-run-uninitialized]\n  op 3 of block 0: ...\n  note: run the startup program"
            ),
            "penstock.ProgramError: lookup: no value   [E-run-uninitialized]",
        ),
        (ValueError("first\n\nValueError: third\nnote: last"), "ValueError: first"),
        (ValueError("\nbegins late\nnote: last"), "ValueError: begins late"),
        (ValueError(), "ValueError"),
        (KeyError("a\nb"), "KeyError: 'a\\nb'"),
        (with_note(ValueError("with a note")), "ValueError: with a note"),
        (error_of("x = = 1"), "SyntaxError: invalid syntax"),
        (error_of("raise ValueError('a') from KeyError('b')"), "ValueError: a"),
        (error_of("def f(): f()\nf()"), "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_the_line_with_the_error_is_found(error, line):
    assert _first_line(type(error), error) == line


def test_an_error_without_text_is_reported_by_type():
    assert _first_line(Silent, Silent()).startswith("test_last_words.Silent")
    assert len(_first_line(ValueError, ValueError("x" * 5000))) == LINE_MAX
