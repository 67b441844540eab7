"""The models that tools/bench/ps and netns train, on Fluid's API: build(fluid, name, size, seed) makes loss and feeds.

    dense   four layers without biases whose weights are `size` MB together; batch 1, so that little is computed
    many    `size` parameters of at most 8 x 8, weights and biases of layers one after the other; batch 8
    lenet   LeNet; batch 64; it has no size
    ctr     a sparse table of `size` rows x 16, 26 words of each of 512 examples, two layers
    ctr_dnn the same table and words beside 13 numbers, three layers of 400: the shape of a production model, whose
            dense part has 2 MB
    vgg     13 small layers, which take `compute_s` seconds forward and backward, and three that have 89 % of the
            parameters, `size` MB together, as in VGG16. Layers wait that long instead of computing, as for a device
            that computes: processor time is left to what carries the gradients. Batch 1. Ours alone

Runs under Python 3.7 and later, for both libraries.
"""

import time

import numpy as np

DENSE_LAYERS, SLOTS, WIDTH, EXAMPLES = 4, 26, 16, 512
NUMBERS, DEEP_LAYERS, DEEP_WIDTH = 13, 3, 400


def dense(fluid, size, random):
    extent = int((size * 1e6 / 4 / DENSE_LAYERS)**0.5)
    hidden = fluid.data('x', [None, extent])
    for _ in range(DENSE_LAYERS):
        hidden = fluid.layers.fc(hidden, extent, bias_attr=False)
    return fluid.layers.mean(hidden), [{'x': random.rand(1, extent).astype('float32') * 1e-3}]


def many(fluid, size, random):
    x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1], dtype='int64')
    hidden = x
    for _ in range(size // 2 - 1):
        hidden = fluid.layers.fc(hidden, 8, act='relu')
    loss = classified(fluid, fluid.layers.fc(hidden, 8, act='softmax'), y)
    return loss, [{'x': random.rand(8, 8).astype('float32'), 'y': np.zeros((8, 1), 'int64')}]


def lenet(fluid, size, random):
    x, y = fluid.data('x', [None, 1, 28, 28]), fluid.data('y', [None, 1], dtype='int64')
    hidden = x
    for filters in (20, 50):
        hidden = fluid.nets.simple_img_conv_pool(hidden, filter_size=5, num_filters=filters, pool_size=2, pool_stride=2,
                                                 act='relu')
    hidden = fluid.layers.fc(hidden, 500, act='relu')
    loss = classified(fluid, fluid.layers.fc(hidden, 10, act='softmax'), y)
    return loss, [{'x': random.rand(64, 1, 28, 28).astype('float32'),
                   'y': random.randint(0, 10, (64, 1)).astype('int64')} for _ in range(4)]


def rows_of_words(fluid, size):
    words = fluid.data('words', [None, 1], dtype='int64')
    attr = fluid.ParamAttr(name='table', initializer=fluid.initializer.Constant(0.01))
    rows = fluid.layers.embedding(words, [size, WIDTH], is_sparse=True, param_attr=attr)
    return fluid.layers.reshape(rows, [-1, SLOTS * WIDTH])


def batches(size, random):
    return [{'words': random.randint(0, size, (EXAMPLES * SLOTS, 1)).astype('int64'),
             'y': random.randint(0, 2, (EXAMPLES, 1)).astype('int64')} for _ in range(8)]


def ctr(fluid, size, random):
    hidden = fluid.layers.fc(rows_of_words(fluid, size), 128, act='relu')
    y = fluid.data('y', [None, 1], dtype='int64')
    return classified(fluid, fluid.layers.fc(hidden, 2, act='softmax'), y), batches(size, random)


def ctr_dnn(fluid, size, random):
    x, y = fluid.data('x', [None, NUMBERS]), fluid.data('y', [None, 1], dtype='int64')
    hidden = fluid.layers.concat([rows_of_words(fluid, size), x], axis=1)
    for _ in range(DEEP_LAYERS):
        hidden = fluid.layers.fc(hidden, DEEP_WIDTH, act='relu')
    feeds = [dict(batch, x=random.rand(EXAMPLES, NUMBERS).astype('float32')) for batch in batches(size, random)]
    return classified(fluid, fluid.layers.fc(hidden, 2, act='softmax'), y), feeds


# VGG16's parameters: of the 13 convolutions, then of each of the three layers behind them, as parts of all.
SMALL_LAYERS, SMALL_PART, LARGE_PARTS = 13, 0.106, (0.743, 0.121, 0.03)


def vgg(fluid, size, random, compute_s):
    floats = size * 1e6 / 4
    width = max(1, int((floats * SMALL_PART / SMALL_LAYERS)**0.5))
    hidden = fluid.data('x', [None, width])
    for _ in range(SMALL_LAYERS):
        hidden = fluid.layers.fc(hidden, width, bias_attr=False)
        hidden = waiting(fluid, hidden, compute_s / SMALL_LAYERS / 3, compute_s / SMALL_LAYERS * 2 / 3)
    for part in LARGE_PARTS:
        hidden = fluid.layers.fc(hidden, max(1, int(floats * part / hidden.shape[1])), bias_attr=False)
    return fluid.layers.mean(hidden), [{'x': random.rand(1, width).astype('float32') * 1e-3}]


def waiting(fluid, x, forward_s, backward_s):
    """Its input, after a time; its gradient, after another."""
    out = fluid.default_main_program().current_block().create_var(
        name=fluid.unique_name.generate('waited'), dtype=x.dtype, shape=x.shape)

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
    make = {'dense': dense, 'many': many, 'lenet': lenet, 'ctr': ctr, 'ctr_dnn': ctr_dnn, 'vgg': vgg}[name]
    random = np.random.RandomState(seed)
    loss, feeds = make(fluid, size, random) if compute_s is None else make(fluid, size, random, compute_s)
    fluid.optimizer.SGD(0.01).minimize(loss)
    return loss, feeds


def bytes_of_step(program, name):
    """What a trainer pushes and pulls in a step: the parameters, and of a sparse table the rows that are looked up, as
    float32, both ways."""
    whole = {p.name: int(np.prod(p.shape)) for p in program.all_parameters()}
    if name in ('ctr', 'ctr_dnn'):
        whole['table'] = EXAMPLES * SLOTS * WIDTH
    return 2 * 4 * sum(whole.values())
