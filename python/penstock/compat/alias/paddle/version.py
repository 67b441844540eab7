"""The version of Fluid whose API Penstock provides. penstock.__version__ is the version of Penstock."""

full_version = "1.8.5"
major, minor, patch, rc = "1", "8", "5", "0"
istaged = True
commit = "penstock"
with_mkl = "ON"


def show():
    """Prints the version."""
    for name in ("full_version", "major", "minor", "patch", "rc"):
        print(f"{name}: {globals()[name]}")


def mkl():
    """Returns whether oneDNN, formerly MKL-DNN, computes on CPUs: 'ON'."""
    return with_mkl
