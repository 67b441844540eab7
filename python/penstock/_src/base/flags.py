"""fluid.set_flags and fluid.get_flags. FLAGS_check_nan_inf takes effect; Fluid's other flags are only stored."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.call_site import stack_level

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_remembered: dict[str, object] = {}


def set_flags(flags: Mapping[str, object]) -> None:
    """Sets flags of Fluid.

    Only FLAGS_check_nan_inf has an effect: from the next run on, the first op that produces a NaN or an Inf raises an
    error. Other flags are only stored, with a warning. An environment variable with the name of a flag sets it too.

    Args:
        flags (dict): {name: value}; names begin with FLAGS_.

    Raises:
        TypeError: `flags` is not a dict.
        ValueError: a name does not begin with FLAGS_, or FLAGS_check_nan_inf is neither true nor false.

    Example:
        fluid.set_flags({'FLAGS_check_nan_inf': True})
        assert fluid.get_flags('FLAGS_check_nan_inf')['FLAGS_check_nan_inf']
        fluid.set_flags({'FLAGS_check_nan_inf': False})
    """
    if not isinstance(flags, dict):
        raise TypeError(f"set_flags takes a dict {{name: value}}, not {type(flags).__name__}")
    for name, value in flags.items():
        if not name.startswith("FLAGS_"):
            raise ValueError(f"set_flags: {name} is not a flag; the names of flags begin with FLAGS_")
        if name == "FLAGS_check_nan_inf":
            _penstock.set_check_nan_inf(bool(_penstock.parse_setting(name, str(value))))
            continue
        _remembered[name] = value
        warnings.warn(f"{name} has no effect on Penstock", stacklevel=stack_level())


def get_flags(flags: Sequence[str] | str) -> dict[str, object]:
    """Returns the values of flags that set_flags or the environment has set.

    Args:
        flags (str | list[str] | tuple): a name such as 'FLAGS_check_nan_inf', or several.

    Returns:
        dict: {name: value}.

    Raises:
        TypeError: `flags` is neither a name nor a list or tuple of names.
        ValueError: a flag has not been set.

    Example:
        assert fluid.get_flags('FLAGS_check_nan_inf') == {'FLAGS_check_nan_inf': False}
    """
    names = [flags] if isinstance(flags, str) else flags
    if not isinstance(names, (list, tuple)):
        raise TypeError(f"get_flags takes a name, or a list or tuple of names, not {type(flags).__name__}")
    known = {**_remembered, "FLAGS_check_nan_inf": _penstock.check_nan_inf()}
    for name in names:
        if name not in known:
            raise ValueError(f"get_flags: flag {name} has not been set")
    return {name: known[name] for name in names}
