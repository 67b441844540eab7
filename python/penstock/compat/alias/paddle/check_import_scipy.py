"""A check of Fluid's installer, for scripts that call it."""


def check_import_scipy(os_name):
    """Raises ImportError on Windows ('nt') if the libraries that SciPy needs are missing."""
    if os_name != "nt":
        return
    try:
        import scipy.io  # noqa: F401
    except ImportError as error:
        if "DLL load failed" in str(error):
            raise ImportError(f"{error}; SciPy needs the runtime library of Visual C++") from error
