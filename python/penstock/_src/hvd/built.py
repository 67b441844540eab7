"""What this build exchanges data with, in Horovod's terms."""

from __future__ import annotations

import ctypes

from penstock import _penstock
from penstock._src.base import environment
from penstock._src.base.errors import program_error
from penstock._src.ir.types import is_compiled_with_cuda


def _uses_mpi() -> bool:
    return environment.text("PENSTOCK_COLLECTIVE_BACKEND") == "mpi"


def mpi_built() -> bool:
    """Tells whether this build can exchange data over MPI (CMake's option PENSTOCK_MPI).

    Returns:
        bool: whether it can.

    Example:
        import penstock.hvd as hvd
        hvd.mpi_built()
    """
    return _penstock.ranks_built()[1]


def mpi_enabled() -> bool:
    """Tells whether ranks of this process use MPI: PENSTOCK_COLLECTIVE_BACKEND=mpi, in a build that has it.

    Returns:
        bool: whether they use it.

    Example:
        import penstock.hvd as hvd
        hvd.mpi_enabled()
    """
    return mpi_built() and _uses_mpi()


def mpi_threads_supported() -> bool:
    """Tells whether other code of this process may use MPI from other threads.

    Returns:
        bool: False: ranks call MPI from one thread, without MPI_THREAD_MULTIPLE.

    Raises:
        ValueError: the ranks do not use MPI, as in Horovod (E-hvd-mpi).

    Example:
        import penstock.hvd as hvd
        try:
            hvd.mpi_threads_supported()
        except ValueError as error:
            print(error)
    """
    if not mpi_enabled():
        raise program_error(
            "E-hvd-mpi",
            "hvd.mpi_threads_supported: the ranks do not use MPI; "
            "PENSTOCK_COLLECTIVE_BACKEND=mpi selects it in a build with MPI",
        )
    return False


def gloo_built() -> bool:
    """Tells whether this build can exchange data over TCP, by Gloo's transport.

    Returns:
        bool: whether it can.

    Example:
        import penstock.hvd as hvd
        hvd.gloo_built()
    """
    return _penstock.ranks_built()[0]


def gloo_enabled() -> bool:
    """Tells whether ranks on different hosts use Gloo's transport: the build has it, and MPI is not selected.

    Returns:
        bool: whether they use it.

    Example:
        import penstock.hvd as hvd
        hvd.gloo_enabled()
    """
    return gloo_built() and not _uses_mpi()


def nccl_built() -> int:
    """Returns the version of the NCCL that this machine has; NCCL is loaded when ranks ask for it.

    Returns:
        int: NCCL's version code, such as 22803; 0 without NCCL.

    Example:
        import penstock.hvd as hvd
        hvd.nccl_built()
    """
    version = ctypes.c_int(0)
    for name in ("libnccl.so.2", "libnccl.so"):
        try:
            found = ctypes.CDLL(name)
            return version.value if found.ncclGetVersion(ctypes.byref(version)) == 0 else 0
        except (OSError, AttributeError):
            continue
    return 0


def ddl_built() -> bool:
    """Returns False: there is no exchange by IBM's DDL.

    Returns:
        bool: False.

    Example:
        import penstock.hvd as hvd
        assert not hvd.ddl_built()
    """
    return False


def ccl_built() -> bool:
    """Returns False: there is no exchange by oneCCL.

    Returns:
        bool: False.

    Example:
        import penstock.hvd as hvd
        assert not hvd.ccl_built()
    """
    return False


def cuda_built() -> bool:
    """Tells whether programs run on NVIDIA's GPUs, as `fluid.is_compiled_with_cuda`.

    Returns:
        bool: whether they do.

    Example:
        import penstock.hvd as hvd
        hvd.cuda_built()
    """
    return bool(is_compiled_with_cuda())


def rocm_built() -> bool:
    """Returns False: there is no support for AMD's GPUs.

    Returns:
        bool: False.

    Example:
        import penstock.hvd as hvd
        assert not hvd.rocm_built()
    """
    return False
