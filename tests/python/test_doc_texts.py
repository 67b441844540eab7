"""Texts that docstrings share (base/doc_texts.py)."""

import inspect
import subprocess
import sys

import pytest
from penstock._src.base.doc_texts import with_texts

ARGUMENTS = {"loss": "loss (Variable): its {extent}.", "places": "places (list): those\n    of the batches."}


def test_keys_are_replaced_with_the_indentation_of_their_line():
    @with_texts(ARGUMENTS, extent="shape is [1]", verb="Runs")
    def run(loss, places):
        """{verb} on a {dict}.

        Args:
            {loss}
            {places}
        """

    assert inspect.getdoc(run) == (
        "Runs on a {dict}.\n\nArgs:\n    loss (Variable): its shape is [1].\n    places (list): those\n"
        "        of the batches."
    )


def test_a_whole_docstring_may_be_one_text():
    @with_texts(whole="Makes a {kind}.\n\n    Returns:\n        int: one.\n", kind="number")
    class Number:
        """{whole}"""

    assert inspect.getdoc(Number) == "Makes a number.\n\nReturns:\n    int: one."


def test_an_argument_that_the_docstring_lacks_has_the_text_of_its_name():
    @with_texts(ARGUMENTS, extent="shape is [1]")
    class Run:
        """Runs.

        Args:
            program (Program): what to run.

        Example:
            Run(loss, program, places)
        """

        def __init__(self, loss, program, places):
            pass

    assert inspect.getdoc(Run) == (
        "Runs.\n\nArgs:\n    loss (Variable): its shape is [1].\n    program (Program): what to run.\n"
        "    places (list): those\n        of the batches.\n\nExample:\n    Run(loss, program, places)"
    )


def test_an_argument_that_the_docstring_describes_keeps_its_text():
    @with_texts(ARGUMENTS)
    def run(loss):
        """Runs.

        Args:
            loss (float): the loss.
        """

    assert inspect.getdoc(run) == "Runs.\n\nArgs:\n    loss (float): the loss."


def test_a_line_with_an_unknown_key_is_an_error():
    def run():
        """Runs.

        {notes}
        """

    with pytest.raises(KeyError, match="notes"):
        with_texts(ARGUMENTS)(run)


def test_python_without_docstrings_has_nothing_to_fill():
    def run():
        pass

    assert with_texts(ARGUMENTS)(run) is run and run.__doc__ is None


def test_the_package_works_without_docstrings():
    """python -OO drops them."""
    script = """
import penstock.hvd
from penstock.fluid import *
from penstock.fluid.layers import *
assert fc.__doc__ is None and not conv2d.__doc__ and mean(fc(data('x', [None, 4]), 2)).shape == (1,)
"""
    done = subprocess.run([sys.executable, "-B", "-OO", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
