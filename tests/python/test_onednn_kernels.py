"""No primitive of a model uses one of oneDNN's reference implementations. tests/ops/onednn_kernels.py checks the
goldens."""

import importlib.util
import os
import sys

import conftest
import pytest

_SPEC = importlib.util.spec_from_file_location("onednn_kernels", conftest.ROOT / "tests" / "ops" / "onednn_kernels.py")
onednn_kernels = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(onednn_kernels)

# Products whose results are transposed in their gradients, and a softmax along an extent that is not the last.
ATTENTION = """
import numpy as np
import penstock.fluid as fluid
x = fluid.data('x', [None, 8, 16])
q, k, v = (fluid.layers.fc(x, 16, num_flatten_dims=2) for _ in range(3))
heads = fluid.nets.scaled_dot_product_attention(q, k, v, num_heads=4)
weights = fluid.layers.matmul(k, q, transpose_y=True, alpha=0.25)
other = fluid.layers.matmul(fluid.layers.softmax(weights, axis=1), v, transpose_x=True)
loss = fluid.layers.mean(heads * other)
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exe.run(feed={'x': np.ones((2, 8, 16), 'float32')}, fetch_list=[loss])
"""


def expect_none(command, at_least, environment=None):
    primitives = onednn_kernels.made(dict(os.environ, **(environment or {})), command)
    assert len(primitives) >= at_least
    assert not onednn_kernels.unlisted(primitives)


def test_attention_uses_no_reference_kernel():
    expect_none([sys.executable, "-c", ATTENTION], 15)


@pytest.mark.parametrize(
    "model, at_least", [("lenet", 10), ("resnet20", 50), ("transformer", 40), ("lstm", 4), ("word2vec", 4)]
)
def test_models_use_no_reference_kernel(peers, model, at_least):
    expect_none(
        [sys.executable, str(peers / "models.py"), model, "1", "0", "1", "exe"],
        at_least,
        {"FLUID_MODULE": "penstock.fluid"},
    )
