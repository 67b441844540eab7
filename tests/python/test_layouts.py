"""Images may be stored channels last (PENSTOCK_LAYOUTS=chosen, the default): results are those of plain layouts within
the bounds of the ops, and what others see is plain."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

TRAIN = """
import json
import sys
import numpy as np
import penstock.fluid as fluid

kind, fetches = sys.argv[1], sys.argv[2:]
main, startup = fluid.Program(), fluid.Program()
main.random_seed = startup.random_seed = 3


def normalised(x, filters, size, stride=1, act='relu', groups=1):
    x = fluid.layers.conv2d(x, filters, size, stride=stride, padding=(size - 1) // 2, groups=groups, bias_attr=False)
    return fluid.layers.batch_norm(x, act=act)


def residual(x):
    x = normalised(x, 16, 3)
    for stride in (1, 2):
        side = x if stride == 1 else normalised(x, 16, 1, 2, None)
        x = fluid.layers.relu(fluid.layers.elementwise_add(normalised(x, 16, 3, stride, None), side))
    return fluid.layers.pool2d(x, pool_type='avg', global_pooling=True)


def branches(x):
    x = fluid.layers.conv2d(x, 16, 5, act='relu', param_attr='first.w')
    left = fluid.layers.conv2d(x, 8, 3, padding=1, act='leaky_relu')
    right = fluid.layers.pool2d(fluid.layers.conv2d(x, 8, 1, act='sigmoid'), 3, 'max', 1, 1)
    both = fluid.layers.concat([left, right, fluid.layers.scale(x, 0.5)], axis=1)
    a, b = fluid.layers.split(both, 2, dim=1)
    both = fluid.layers.dropout(fluid.layers.elementwise_mul(a, b), 0.3, seed=5)
    return fluid.layers.pool2d(both, 3, 'max', 2, 1, ceil_mode=True)


def depthwise(x):
    x = normalised(x, 8, 3)
    x = normalised(x, 8, 3, 2, 'relu6', groups=8)
    x = normalised(x, 24, 1)
    return fluid.layers.pool2d(x, 2, 'avg', 2)


def decoder(x):
    x = normalised(x, 16, 3)
    small = fluid.layers.pool2d(normalised(x, 32, 3), 2, 'max', 2)
    large = fluid.layers.conv2d_transpose(small, 16, filter_size=2, stride=2, act='relu')
    near = fluid.layers.resize_nearest(small, out_shape=[14, 14], align_corners=False)
    smooth = fluid.layers.resize_bilinear(small, scale=2.0)
    return normalised(fluid.layers.concat([x, large, near, smooth], axis=1), 4, 3)


def looped(x):
    x = fluid.layers.conv2d(x, 8, 3, act='relu', name='outer')
    count = fluid.layers.fill_constant([1], 'int64', 0)
    total = fluid.layers.fill_constant([1], 'float32', 0)

    def body(i, sum):
        return fluid.layers.increment(i, in_place=False), sum + fluid.layers.reduce_mean(x)

    def more(i, sum):
        return fluid.layers.less_than(i, fluid.layers.fill_constant([1], 'int64', 3))

    _, total = fluid.layers.while_loop(more, body, [count, total])
    return fluid.layers.elementwise_add(normalised(x, 8, 3), total)


with fluid.program_guard(main, startup):
    x = fluid.data('x', [None, 3, 14, 14])
    y = fluid.data('y', [None, 1], dtype='int64')
    hidden = globals()[kind](x)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(hidden, 5), y))
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
exe = fluid.Executor()
exe.run(startup)
random = np.random.RandomState(0)
images = [v for v in main.list_vars() if len(v.shape) == 4 and not v.persistable and 'conv2d' in v.name]
norms = [v for v in main.list_vars() if len(v.shape) == 4 and not v.persistable and 'batch_norm' in v.name]
out = []
for step in range(4):
    feed = {'x': random.rand(6, 3, 14, 14).astype('float32'), 'y': random.randint(0, 5, (6, 1))}
    wanted = [loss] + (images if 'images' in fetches else []) + (norms if 'norms' in fetches else [])
    out.append([np.asarray(v, 'float64').ravel().tolist() for v in exe.run(main, feed=feed, fetch_list=wanted)])
out.append([np.asarray(fluid.global_scope().find_var(p.name).get_tensor(), 'float64').ravel().tolist()
            for p in main.all_parameters()])
print(json.dumps(out))
"""


def trained(kind, layouts, *fetches, threads=1, fusion="on"):
    env = dict(os.environ, PENSTOCK_LAYOUTS=layouts, PENSTOCK_FUSION=fusion, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, kind, *fetches], env=env, text=True, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_near(got, wanted):
    assert len(got) == len(wanted)
    for mine, theirs in zip(got, wanted):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("kind", ["residual", "branches", "depthwise", "decoder", "looped"])
def test_training_equals_that_of_plain_layouts(kind):
    plain = trained(kind, "plain")
    chosen = trained(kind, "chosen")
    assert chosen != plain  # another order of sums: the pass did something
    assert_near(chosen, plain)


@pytest.mark.parametrize("kind", ["residual", "branches"])
def test_fetched_images_have_plain_layout(kind):
    assert_near(trained(kind, "chosen", "images"), trained(kind, "plain", "images"))


def test_runs_are_reproducible():
    assert trained("residual", "chosen") == trained("residual", "chosen")
    assert trained("residual", "chosen", threads=2) == trained("residual", "chosen", threads=2)


@pytest.mark.parametrize("kind", ["residual", "branches", "depthwise", "decoder", "looped"])
@pytest.mark.parametrize("threads", [1, 2])
def test_fusion_does_not_change_results(kind, threads):
    assert trained(kind, "chosen", threads=threads) == trained(kind, "chosen", threads=threads, fusion="off")


def test_fetching_within_a_chain_does_not_change_results():
    assert trained("residual", "chosen", "norms") == trained("residual", "chosen", "norms", fusion="off")


def test_an_unknown_layout_is_refused():
    env = dict(os.environ, PENSTOCK_LAYOUTS="nhwc")
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, "residual"], env=env, text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 1
    assert "PENSTOCK_LAYOUTS" in done.stderr and "E-environment" in done.stderr and "plain" in done.stderr
