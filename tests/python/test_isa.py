"""PENSTOCK_ISA caps the instruction sets of all kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

# Trains a little network of kernels by vector instructions and by oneDNN; prints the bytes of its parameters.
TRAIN = """
import sys
import numpy as np
import penstock.fluid as fluid
L = fluid.layers
fluid.default_startup_program().random_seed = 7
image, label = fluid.data("image", [None, 1, 8, 8]), fluid.data("label", [None, 1], "int64")
hidden = L.pool2d(L.conv2d(image, 6, 3, act="tanh"), 2, "max", 2)
hidden = L.fc(L.swish(L.fc(hidden, 33, act="sigmoid")), 37)
loss = L.mean(L.softmax_with_cross_entropy(hidden, label))
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
random = np.random.RandomState(1)
for _ in range(5):
    feed = {"image": random.rand(16, 1, 8, 8).astype("float32"), "label": random.randint(0, 37, (16, 1))}
    exe.run(feed=feed, fetch_list=[loss])
scope = fluid.global_scope()
for p in fluid.default_main_program().all_parameters():
    sys.stdout.buffer.write(np.array(scope.find_var(p.name).get_tensor()).tobytes())
"""


def trained(isa):
    done = subprocess.run(
        [sys.executable, "-c", TRAIN],
        env=dict(os.environ, PENSTOCK_ISA=isa, OMP_NUM_THREADS="1"),
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("isa", ["sse4", "avx2", "avx512"])
def test_a_process_with_a_capped_isa_trains_equally(isa):
    ours, capped = (np.frombuffer(trained(each), "float32") for each in ("", isa))
    assert len(ours) > 1000
    np.testing.assert_allclose(capped, ours, rtol=1e-3, atol=1e-5)


def test_an_unknown_isa_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", TRAIN],
        env=dict(os.environ, PENSTOCK_ISA="avx"),
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "PENSTOCK_ISA" in done.stderr and "E-environment" in done.stderr and "sse4" in done.stderr
