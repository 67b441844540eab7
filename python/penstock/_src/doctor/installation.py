"""The installation: Penstock, Python, the libraries that it has loaded, GPUs, NCCL, MPI, and optional packages."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import re
import shutil

from penstock import _penstock
from penstock._src.base import environment
from penstock._src.doctor.findings import NOTE, PROBLEM, Finding

SHOWN = {
    "libgrpc++": "gRPC",
    "libprotobuf": "Protocol Buffers",
    "libdnnl": "oneDNN",
    "libgloo": "Gloo",
    "libcrypto": "OpenSSL",
}
OPTIONAL = {
    "torch": ("torch", "models of PyTorch"),
    "matplotlib": ("plot", "pictures of penstock plot"),
    "sphinx": ("docs", "building the documentation"),
    "six": ("compat", "scripts of Fluid's time"),
}


def version_of(library: str) -> tuple[str, str] | None:
    """Returns the name and version that the file name of a library has, also of one that a wheel contains."""
    found = re.fullmatch(r"(lib[\w+]+?)(?:-[0-9a-f]{8})?\.so\.([\d.]+)", library)
    return (found[1], found[2]) if found else None


def _loaded() -> list[str]:
    """Returns the file names of the shared libraries of this process."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(maxsplit=5)[5].strip() for line in file if ".so" in line}
    except OSError:
        return []
    return sorted(os.path.basename(os.path.realpath(path)) for path in paths)


def package() -> Finding:
    where = os.path.dirname(_penstock.__file__ or "")
    return Finding("penstock", f"{_penstock.__version__} in {where}")


def python() -> Finding:
    try:
        numpy = importlib.util.find_spec("numpy")
    except ValueError:
        numpy = None
    found = f"{platform.python_version()}, {platform.platform(terse=True)}"
    if numpy is None:
        return Finding("Python", f"{found}, without NumPy", PROBLEM, "pip install numpy")
    return Finding("Python", found)


def libraries() -> Finding:
    versions = dict(filter(None, map(version_of, _loaded())))
    return Finding("libraries", ", ".join(f"{SHOWN[name]} {versions[name]}" for name in SHOWN if name in versions))


def command() -> Finding:
    found = shutil.which("penstock")
    if found is None:
        return Finding("command", "penstock is not on PATH", NOTE, "Activate the environment, or use its bin/penstock.")
    return Finding("command", found)


def _library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def gpus() -> Finding:
    driver = _library("libcuda.so.1")
    if driver is None:
        return Finding("CUDA", "no NVIDIA driver (libcuda.so.1); programs run on the processors")
    count = ctypes.c_int(0)
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    found = f"driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}, {count.value} GPUs"
    if error or not count.value:
        hidden = environment.text("CUDA_VISIBLE_DEVICES", None) == ""
        advice = "CUDA_VISIBLE_DEVICES is empty." if hidden else "nvidia-smi says why no GPU is usable."
        return Finding("CUDA", f"{found} (error {error})" if error else found, NOTE, advice)
    return Finding("CUDA", found)


def nccl() -> Finding:
    found = _library("libnccl.so.2", "libnccl.so")
    if found is None:
        return Finding("NCCL", "not found (libnccl.so.2); only ranks on GPUs need it")
    version = ctypes.c_int(0)
    found.ncclGetVersion(ctypes.byref(version))
    return Finding("NCCL", f"{version.value // 10000}.{version.value // 100 % 100}.{version.value % 100}")


def mpi() -> Finding:
    starter = shutil.which("mpirun")
    built = _penstock.ranks_built()[1]
    if built:
        return Finding("MPI", f"built in; mpirun is {starter or 'not on PATH'}")
    found = f"not built in; mpirun is {starter or 'not on PATH'}"
    return Finding("MPI", f"{found}. Ranks exchange data by shared memory, TCP and Gloo; mpirun can start launchers")


def optional() -> list[Finding]:
    result = []
    for name, (extra, purpose) in OPTIONAL.items():
        there = importlib.util.find_spec(name) is not None
        advice = "" if there else f"For {purpose}: pip install 'penstock[{extra}]'"
        result.append(Finding(name, "installed" if there else "not installed", advice=advice))
    return result


def findings() -> list[Finding]:
    return [package(), python(), libraries(), command(), gpus(), nccl(), mpi(), *optional()]
