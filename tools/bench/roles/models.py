"""The models that tools/bench/ps and netns train: build(fluid, name, size, seed) returns loss and feeds.

    dense   four layers without biases whose weights have `size` MB in total; batch 1, so that computation is short
    many    `size` parameters of at most 8 x 8, weights and biases of consecutive layers; batch 8
    lenet   LeNet; batch 64; ignores `size`
    ctr     a sparse table of `size` rows x 16, 26 words per example, two layers; batch 512
    ctr_dnn the same table and words, 13 numbers, and three layers of 400: the shape of a production model, with a
            dense part of 2 MB
    vgg     13 small layers, which take `compute_s` seconds forward and backward, and three layers with 89 % of the
            parameters, as in VGG16; `size` MB in total. The layers sleep instead of computing, as if an accelerator
            computed, which leaves the CPU to the transfer of gradients. Batch 1. Only for Penstock

Runs under Python 3.7 and later, with both libraries.
"""

import time

import numpy as np

DENSE_LAYERS, SLOTS, WIDTH, EXAMPLES = 4, 26, 16, 512
NUMBERS, DEEP_LAYERS, DEEP_WIDTH = 13, 3, 400


def dense(fluid, size, random):
    extent = int((size * 1e6 / 4 / DENSE_LAYERS) ** 0.5)
    hidden = fluid.data("x", [None, extent])
    for _ in range(DENSE_LAYERS):
        hidden = fluid.layers.fc(hidden, extent, bias_attr=False)
    return fluid.layers.mean(hidden), [{"x": random.rand(1, extent).astype("float32") * 1e-3}]


def many(fluid, size, random):
    x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1], dtype="int64")
    hidden = x
    for _ in range(size // 2 - 1):
        hidden = fluid.layers.fc(hidden, 8, act="relu")
    loss = classified(fluid, fluid.layers.fc(hidden, 8, act="softmax"), y)
    return loss, [{"x": random.rand(8, 8).astype("float32"), "y": np.zeros((8, 1), "int64")}]


def lenet(fluid, size, random):
    x, y = fluid.data("x", [None, 1, 28, 28]), fluid.data("y", [None, 1], dtype="int64")
    hidden = x
    for filters in (20, 50):
        hidden = fluid.nets.simple_img_conv_pool(
            hidden, filter_size=5, num_filters=filters, pool_size=2, pool_stride=2, act="relu"
        )
    hidden = fluid.layers.fc(hidden, 500, act="relu")
    loss = classified(fluid, fluid.layers.fc(hidden, 10, act="softmax"), y)
    return loss, [
        {"x": random.rand(64, 1, 28, 28).astype("float32"), "y": random.randint(0, 10, (64, 1)).astype("int64")}
        for _ in range(4)
    ]


def rows_of_words(fluid, size):
    words = fluid.data("words", [None, 1], dtype="int64")
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.01))
    rows = fluid.layers.embedding(words, [size, WIDTH], is_sparse=True, param_attr=attr)
    return fluid.layers.reshape(rows, [-1, SLOTS * WIDTH])


def batches(size, random):
    return [
        {
            "words": random.randint(0, size, (EXAMPLES * SLOTS, 1)).astype("int64"),
            "y": random.randint(0, 2, (EXAMPLES, 1)).astype("int64"),
        }
        for _ in range(8)
    ]


def ctr(fluid, size, random):
    hidden = fluid.layers.fc(rows_of_words(fluid, size), 128, act="relu")
    y = fluid.data("y", [None, 1], dtype="int64")
    return classified(fluid, fluid.layers.fc(hidden, 2, act="softmax"), y), batches(size, random)


def ctr_dnn(fluid, size, random):
    x, y = fluid.data("x", [None, NUMBERS]), fluid.data("y", [None, 1], dtype="int64")
    hidden = fluid.layers.concat([rows_of_words(fluid, size), x], axis=1)
    for _ in range(DEEP_LAYERS):
        hidden = fluid.layers.fc(hidden, DEEP_WIDTH, act="relu")
    feeds = [dict(batch, x=random.rand(EXAMPLES, NUMBERS).astype("float32")) for batch in batches(size, random)]
    return classified(fluid, fluid.layers.fc(hidden, 2, act="softmax"), y), feeds


# VGG16's parameters: of the 13 convolutions, then of each of the three layers behind them, as parts of all.
SMALL_LAYERS, SMALL_PART, LARGE_PARTS = 13, 0.106, (0.743, 0.121, 0.03)


def vgg(fluid, size, random, compute_s):
    floats = size * 1e6 / 4
    width = max(1, int((floats * SMALL_PART / SMALL_LAYERS) ** 0.5))
    hidden = fluid.data("x", [None, width])
    for _ in range(SMALL_LAYERS):
        hidden = fluid.layers.fc(hidden, width, bias_attr=False)
        hidden = waiting(fluid, hidden, compute_s / SMALL_LAYERS / 3, compute_s / SMALL_LAYERS * 2 / 3)
    for part in LARGE_PARTS:
        hidden = fluid.layers.fc(hidden, max(1, int(floats * part / hidden.shape[1])), bias_attr=False)
    return fluid.layers.mean(hidden), [{"x": random.rand(1, width).astype("float32") * 1e-3}]


def waiting(fluid, x, forward_s, backward_s):
    """A layer that returns its input after forward_s seconds, and its gradient after backward_s seconds."""
    out = (
        fluid.default_main_program()
        .current_block()
        .create_var(name=fluid.unique_name.generate("waited"), dtype=x.dtype, shape=x.shape)
    )

    def forward(value):
        time.sleep(forward_s)
        return np.array(value)

    def backward(gradient):
        time.sleep(backward_s)
        return np.array(gradient)

    return fluid.layers.py_func(forward, x, out, backward, skip_vars_in_backward_input=[x, out])


def classified(fluid, probabilities, labels):
    return fluid.layers.mean(fluid.layers.cross_entropy(probabilities, labels))


def build(fluid, name, size, seed, compute_s=None):
    make = {"dense": dense, "many": many, "lenet": lenet, "ctr": ctr, "ctr_dnn": ctr_dnn, "vgg": vgg}[name]
    random = np.random.RandomState(seed)
    loss, feeds = make(fluid, size, random) if compute_s is None else make(fluid, size, random, compute_s)
    fluid.optimizer.SGD(0.01).minimize(loss)
    return loss, feeds


def bytes_of_step(program, name):
    """The bytes that a trainer pushes and pulls per step, both directions together, as float32: the parameters, and the
    looked-up rows of a sparse table."""
    whole = {p.name: int(np.prod(p.shape)) for p in program.all_parameters()}
    if name in ("ctr", "ctr_dnn"):
        whole["table"] = EXAMPLES * SLOTS * WIDTH
    return 2 * 4 * sum(whole.values())
