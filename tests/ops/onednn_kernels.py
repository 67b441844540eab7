#!/usr/bin/env python3
"""Checks which of oneDNN's implementations our kernels get. Its reference implementations ("ref:") are a hundred times
slower than the others, and no other test shows that an op uses one.

  tests/ops/onednn_kernels.py 'BINARY ARGUMENT...' ...    runs each binary with oneDNN's log of created primitives;
                                                          exit code 1 if one is an unlisted reference implementation
"""

import os
import shlex
import subprocess
import sys

WAIT_S = 600

# (kind of primitive, implementation) -> the reason why there is no better one. A new entry needs a reason.
LISTED = {}


def made(environment, command):
    """The (kind, implementation, description) of each primitive that a command makes. It must succeed."""
    result = subprocess.run(
        command, env=dict(environment, ONEDNN_VERBOSE="2"), text=True, capture_output=True, timeout=WAIT_S, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    primitives = []
    for line in result.stdout.splitlines():
        # onednn_verbose,create:cache_miss,cpu,matmul,brg:avx512_core,undef,src_f32::blocked:ab:f0 ...
        fields = line[line.find("onednn_verbose") :].split(",") if "onednn_verbose" in line else []
        at = next((i for i, field in enumerate(fields) if field.startswith("create")), None)
        if at is not None:
            # The last field is a time.
            primitives.append((fields[at + 2], fields[at + 3], ",".join(fields[at + 1 : -1])))
    return primitives


def unlisted(primitives):
    """The descriptions of unlisted reference implementations, without duplicates."""
    lines = {line for kind, name, line in primitives if name.startswith("ref:") and (kind, name) not in LISTED}
    return sorted(lines)


def main():
    found = set()
    count = 0
    for command in sys.argv[1:]:
        primitives = made(os.environ, shlex.split(command))
        found.update(unlisted(primitives))
        count += len(primitives)
        assert primitives, f"{command} made no primitive"
    for line in sorted(found):
        print(line)
    print(f"onednn_kernels: {count} primitives, {len(found)} of reference implementations")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
