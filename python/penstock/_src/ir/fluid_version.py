"""What a script may ask about Fluid: its version, its constants, its imperative mode."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import error_with_id, not_built
from penstock._src.ir.types import to_dtype
from penstock._src.ir.variable import GRAD_SUFFIX

if TYPE_CHECKING:
    from penstock._src.ir.types import VarType
    from penstock._src.ir.typing import Dtype


FLUID_VERSION = 1008005


# Fluid's constants for names.
GRAD_VAR_SUFFIX, EMPTY_VAR_NAME, TEMP_VAR_NAME, ZERO_VAR_SUFFIX = GRAD_SUFFIX, "@EMPTY@", "@TEMP@", "@ZERO"


def convert_np_dtype_to_dtype_(np_dtype: Dtype) -> VarType:
    """Returns the VarType of an element type of numpy.

    Args:
        np_dtype (str | type | numpy.dtype): such as 'float32'.

    Returns:
        VarType: its number.

    Raises:
        ValueError: the type is unknown.

    Example:
        assert fluid.framework.convert_np_dtype_to_dtype_('float32') == fluid.core.VarDesc.VarType.FP32
    """
    return to_dtype(np_dtype)


def in_dygraph_mode() -> bool:
    """Returns whether ops run as they are created.

    Returns:
        bool: False, because there is no imperative mode.

    Example:
        assert not fluid.in_dygraph_mode()
    """
    return False


def load_op_library(lib_filename: str) -> None:
    """Raises NotImplementedError: an operator library of Fluid cannot be loaded.

    Args:
        lib_filename (str): the library.

    Raises:
        NotImplementedError: always, because the library is linked against Fluid's own classes.

    Example:
        try:
            fluid.load_op_library('libcustom.so')
        except NotImplementedError as error:
            print(error)
    """
    raise not_built(
        f"load_op_library: {lib_filename} is linked against Fluid's own C++ classes, which are not here; add "
        "the operator to operators/ in C++, or call a Python function by fluid.layers.py_func"
    )


def api_version() -> list[str]:
    """Returns the version of Fluid whose API Penstock provides.

    Returns:
        list[str]: four numbers as text.

    Example:
        assert fluid.framework.api_version() == ['1', '8', '5', '0']
    """
    return ["1", "8", "5", "0"]


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raises an error unless Fluid 1.8.5, whose API Penstock provides, is in a range of versions.

    Args:
        min_version (str): the oldest accepted version, such as '1.6.0'.
        max_version (str | None): the newest accepted version; None: any.

    Raises:
        Exception: 1.8.5 is outside the range.
        TypeError, ValueError: a bound is not a version.

    Example:
        fluid.require_version('1.6.0')
    """
    bounds = [min_version, max_version or min_version]
    for bound in bounds:
        if not isinstance(bound, str):
            raise TypeError(f"a version is a string such as '1.8.0', not {bound!r}")
        parts = bound.split(".")
        if len(parts) > 4 or not all(part.isdigit() for part in parts):
            raise ValueError(f"a version is one to four numbers between dots, not {bound!r}")

    def number(version: str) -> list[int]:
        return ([int(part) for part in version.split(".")] + [0, 0, 0])[:4]

    ours = ".".join(api_version())
    if not any(number(ours)):
        warnings.warn("the version is unknown, so no version is too old", stacklevel=stack_level())
    elif number(ours) < number(min_version) or (max_version and number(ours) > number(max_version)):
        raise error_with_id(
            Exception,
            "E-fluid-version",
            f"Fluid {min_version}{' to ' + max_version if max_version else ' or later'} is required, but this is "
            f"the API of Fluid {ours}",
        )
