"""The machine: processors, memory, shared memory, limits, clock, network."""

from __future__ import annotations

import os
import resource
import socket
import time

from penstock._src.base import environment
from penstock._src.doctor.findings import NOTE, OK, PROBLEM, Finding

ISAS = {"avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "avx2": {"avx2", "fma"}, "sse4": {"sse4_2"}}
MEMORY_LEAST = 2 << 30
SHARED_LEAST = 256 << 20
FILES_LEAST = 4096
CLOCKS = {"tsc", "kvm-clock", "arch_sys_counter"}  # which a process reads without a system call


def _read(path: str) -> str:
    """Returns the text of a file of /proc or /sys; "" if there is none."""
    try:
        with open(path) as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB"


def instruction_set(flags: set[str]) -> str:
    """Returns the best instruction set that kernels can use, by the flags of /proc/cpuinfo."""
    return next((name for name, needed in ISAS.items() if needed <= flags), "")


def processors() -> Finding:
    usable, count = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    text = _read("/proc/cpuinfo")
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    named = {name.strip(): value.strip() for name, value in facts.items()}
    isa = instruction_set(set(named.get("flags", "").split()))
    cap = environment.text("PENSTOCK_ISA")
    found = f"{usable} of {count} usable, {named.get('model name', os.uname().machine)}, {isa or 'no vector kernels'}"
    if cap:
        return Finding(
            "processors", f"{found}, capped by PENSTOCK_ISA={cap}", NOTE, "Unset PENSTOCK_ISA for full speed."
        )
    if not isa:
        return Finding("processors", found, NOTE, "Kernels are slow without SSE 4.2, AVX2 or AVX-512.")
    return Finding("processors", found)


def quota() -> Finding:
    """How much processor time the container grants."""
    given = _read("/sys/fs/cgroup/cpu.max").split()
    usable = len(os.sched_getaffinity(0))
    if len(given) != 2 or not given[0].isdigit() or int(given[0]) >= usable * int(given[1]):
        return Finding("CPU quota", "none")
    cores = int(given[0]) / int(given[1])
    return Finding(
        "CPU quota",
        f"{cores:.1f} cores, of {usable} that are visible",
        NOTE,
        f"Set OMP_NUM_THREADS so that all processes of this machine together use at most {max(1, int(cores))} threads.",
    )


def memory() -> Finding:
    facts = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    try:
        total, free = (int(facts[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    except (KeyError, ValueError):
        return Finding("memory", "cannot be read from /proc/meminfo", NOTE)
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    granted = f", of which the container grants {_gigabytes(int(limit))}" if limit.isdigit() else ""
    found = f"{_gigabytes(total)}, {_gigabytes(free)} available{granted}"
    if min(free, int(limit) if limit.isdigit() else free) < MEMORY_LEAST:
        return Finding("memory", found, NOTE, "`penstock plan` says how much the processes of a job need.")
    return Finding("memory", found)


def shared_memory(folder: str = "/dev/shm") -> Finding:
    """Processes of one machine share memory that has no name (memfd); its pages count like those of /dev/shm."""
    try:
        os.close(os.memfd_create("penstock"))
    except OSError as error:
        return Finding(
            "shared memory",
            f"memfd_create fails: {error.strerror}",
            NOTE,
            "Processes of one machine use TCP, which is slower. Allow the system call in the container's profile.",
        )
    try:
        facts = os.statvfs(folder)
    except OSError:
        return Finding("shared memory", f"memfd works; there is no {folder}")
    size = facts.f_blocks * facts.f_frsize
    found = f"memfd works; {folder} has {_gigabytes(size)}"
    if size < SHARED_LEAST:
        return Finding(
            "shared memory",
            found,
            NOTE,
            "Penstock does not need it, but DataLoaders with processes do: start the container with --shm-size=1g.",
        )
    return Finding("shared memory", found)


def limits() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    found = f"{soft} open files (at most {hard}), {'any' if locked < 0 else f'{locked >> 20} MB of'} locked memory"
    if soft < FILES_LEAST:
        return Finding(
            "limits", found, NOTE, f"A server of many trainers needs more files: ulimit -n {max(FILES_LEAST, soft)}."
        )
    return Finding("limits", found)


def clock() -> Finding:
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    began = time.perf_counter()
    for _ in range(1000):
        time.monotonic()
    each_us = (time.perf_counter() - began) * 1000
    found = f"{source or 'unknown source'}, {each_us:.2f} us to read"
    if source and source not in CLOCKS:
        return Finding(
            "clock", found, NOTE, "Traces and profiles cost more with this clock source; tsc is the fastest."
        )
    return Finding("clock", found)


def network() -> Finding:
    name = socket.gethostname()
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding(
            "network", f"127.0.0.1 cannot be bound: {error.strerror}", PROBLEM, "Bring the loopback interface up."
        )
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return Finding(
            "network",
            f"{name} has no address",
            NOTE,
            "For jobs on several machines, give addresses by --cluster_node_ips and --node_ip, or add the name to "
            "/etc/hosts.",
        )
    if address.startswith("127."):
        return Finding(
            "network", f"{name} is {address}, the loopback interface", NOTE, "Give other machines a real address."
        )
    return Finding("network", f"{name} is {address}", OK)


def findings() -> list[Finding]:
    return [processors(), quota(), memory(), shared_memory(), limits(), clock(), network()]
