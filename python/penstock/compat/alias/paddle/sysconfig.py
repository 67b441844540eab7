"""The folders of headers and libraries for operators that users compile, which Penstock does not have."""

__all__ = ["get_include", "get_lib"]


def get_include():
    """Raises NotImplementedError: an operator compiled against Fluid's headers cannot be loaded."""
    raise NotImplementedError(
        "paddle.sysconfig: Fluid's headers are not part of Penstock; add your own operators in "
        "C++ to operators/, or in Python by fluid.layers.py_func"
    )


def get_lib():
    """Raises NotImplementedError, like get_include."""
    return get_include()
