"""The models that tools/bench/models trains, by the Fluid API:

    data = inputs(fluid, 'lenet', 64)       # declares data.vars; data.draw(random) returns the values of a batch
    loss = minimized(fluid, 'lenet', data.vars)

    lenet        two convolutions with pooling, two layers; 28 x 28
    resnet20     for CIFAR, 32 x 32
    resnet50     for ImageNet, 224 x 224
    transformer  two encoder layers (width 256, 4 heads, 1024 hidden), 64 words, a language model of 10,000 words
    lstm         a classifier of 80 words out of 10,000, embedding and state of 128, sequences by LoD
    word2vec     the next of five words out of 2,073, embedding of 32, 256 hidden

torch_models.py has the same models with the same arithmetic. Runs under Python 3.7 and later, with both libraries.
"""

import collections

BATCHES = {"lenet": 64, "resnet20": 64, "resnet50": 8, "transformer": 16, "lstm": 32, "word2vec": 100}
WORDS, VOCABULARY = 80, 10000  # of lstm
LENGTH, WIDTH, HEADS, HIDDEN = 64, 256, 4, 1024  # of transformer
CONTEXT, DICTIONARY = 4, 2073  # of word2vec
RATE = 0.001

IMAGES = {"lenet": (1, 28, 10), "resnet20": (3, 32, 10), "resnet50": (3, 224, 1000)}  # channels, extent, classes

# The variables that are fed, and a function of a RandomState that returns their values for a new batch.
Data = collections.namedtuple("Data", "vars draw")


def images(fluid, batch, channels, extent, classes):
    x = fluid.data("x", [None, channels, extent, extent])
    y = fluid.data("y", [None, 1], dtype="int64")

    def draw(random):
        return [random.rand(batch, channels, extent, extent).astype("float32"), ids(random, classes, batch)]

    return Data([x, y], draw)


def ids(random, below, rows, columns=1):
    return random.randint(0, below, (rows, columns)).astype("int64")


def sentences(fluid, batch):
    x = fluid.data("x", [None, LENGTH], dtype="int64")
    y = fluid.data("y", [None, 1], dtype="int64")
    return Data(
        [x, y], lambda random: [ids(random, VOCABULARY, batch, LENGTH), ids(random, VOCABULARY, batch * LENGTH)]
    )


def sequences(fluid, batch, changing):
    x = fluid.data("x", [None, 1], dtype="int64", lod_level=1)
    y = fluid.data("y", [None, 1], dtype="int64")

    def draw(random):
        lengths = random.randint(WORDS // 2, WORDS + WORDS // 2 + 1, batch) if changing else [WORDS] * batch
        lengths = [int(length) for length in lengths]
        words = ids(random, VOCABULARY, sum(lengths))
        return [fluid.create_lod_tensor(words, [lengths], fluid.CPUPlace()), ids(random, 2, batch)]

    return Data([x, y], draw)


def contexts(fluid, batch):
    words = [fluid.data(f"w{i}", [None, 1], dtype="int64") for i in range(CONTEXT)]
    y = fluid.data("y", [None, 1], dtype="int64")
    return Data([*words, y], lambda random: [ids(random, DICTIONARY, batch) for _ in range(CONTEXT + 1)])


def inputs(fluid, name, batch, changing=False):
    """changing: each batch of lstm has sequences of other lengths, WORDS in the mean."""
    if name in IMAGES:
        return images(fluid, batch, *IMAGES[name])
    if name == "lstm":
        return sequences(fluid, batch, changing)
    return {"transformer": sentences, "word2vec": contexts}[name](fluid, batch)


def classified(fluid, hidden, classes, labels):
    probabilities = fluid.layers.fc(hidden, classes, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(probabilities, labels))


def normalised(fluid, x, filters, size, stride=1, act="relu"):
    """A convolution without bias, batch_norm, and an activation."""
    x = fluid.layers.conv2d(x, filters, size, stride=stride, padding=(size - 1) // 2, bias_attr=False)
    return fluid.layers.batch_norm(x, act=act)


def lenet(fluid, x, y):
    hidden = x
    for filters in (20, 50):
        hidden = fluid.nets.simple_img_conv_pool(
            hidden, filter_size=5, num_filters=filters, pool_size=2, pool_stride=2, act="relu"
        )
    hidden = fluid.layers.fc(hidden, 500, act="relu")
    return classified(fluid, hidden, 10, y)


def added(fluid, main, shortcut, channels, filters, stride):
    """relu(main + shortcut), after a projection of the shortcut if the shapes differ."""
    if stride != 1 or channels != filters:
        shortcut = normalised(fluid, shortcut, filters, 1, stride, None)
    return fluid.layers.relu(fluid.layers.elementwise_add(main, shortcut))


def strides(blocks):
    """(filters, stride) of each block: as many blocks in each stage as `blocks` says; stages double the filters."""
    return [
        (1 << stage, 2 if stage > 0 and block == 0 else 1)
        for stage, count in enumerate(blocks)
        for block in range(count)
    ]


def pooled(fluid, hidden):
    return fluid.layers.pool2d(hidden, global_pooling=True, pool_type="avg")


def resnet20(fluid, x, y):
    hidden, channels = normalised(fluid, x, 16, 3), 16
    for times, stride in strides([3, 3, 3]):
        main = normalised(fluid, hidden, 16 * times, 3, stride)
        main = normalised(fluid, main, 16 * times, 3, 1, None)
        hidden = added(fluid, main, hidden, channels, 16 * times, stride)
        channels = 16 * times
    return classified(fluid, pooled(fluid, hidden), 10, y)


def resnet50(fluid, x, y):
    hidden = fluid.layers.pool2d(normalised(fluid, x, 64, 7, 2), 3, "max", 2, 1)
    channels = 64
    for times, stride in strides([3, 4, 6, 3]):
        main = normalised(fluid, hidden, 64 * times, 1)
        main = normalised(fluid, main, 64 * times, 3, stride)
        main = normalised(fluid, main, 256 * times, 1, 1, None)
        hidden = added(fluid, main, hidden, channels, 256 * times, stride)
        channels = 256 * times
    return classified(fluid, pooled(fluid, hidden), 1000, y)


def encoder(fluid, hidden):
    def heads(x):
        return fluid.layers.transpose(fluid.layers.reshape(x, [-1, LENGTH, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

    def layer(x, size, act=None):
        return fluid.layers.fc(x, size, num_flatten_dims=2, act=act)

    query, key, value = [heads(layer(hidden, WIDTH)) for _ in range(3)]
    scores = fluid.layers.matmul(query, key, transpose_y=True, alpha=(WIDTH // HEADS) ** -0.5)
    mixed = fluid.layers.transpose(fluid.layers.matmul(fluid.layers.softmax(scores), value), [0, 2, 1, 3])
    mixed = layer(fluid.layers.reshape(mixed, [-1, LENGTH, WIDTH]), WIDTH)
    hidden = fluid.layers.layer_norm(fluid.layers.elementwise_add(hidden, mixed), begin_norm_axis=2)
    wide = layer(layer(hidden, HIDDEN, "relu"), WIDTH)
    return fluid.layers.layer_norm(fluid.layers.elementwise_add(hidden, wide), begin_norm_axis=2)


def transformer(fluid, x, y):
    hidden = fluid.embedding(x, [VOCABULARY, WIDTH])
    for _ in range(2):
        hidden = encoder(fluid, hidden)
    scores = fluid.layers.fc(fluid.layers.reshape(hidden, [-1, WIDTH]), VOCABULARY)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores, y))


def lstm(fluid, x, y):
    hidden = fluid.layers.embedding(x, [VOCABULARY, 128], is_sparse=True)
    hidden, _ = fluid.layers.dynamic_lstm(fluid.layers.fc(hidden, 4 * 128), 4 * 128, use_peepholes=False)
    return classified(fluid, fluid.layers.sequence_pool(hidden, "max"), 2, y)


def word2vec(fluid, *words_and_next):
    rows = [
        fluid.layers.embedding(word, [DICTIONARY, 32], is_sparse=True, param_attr="table")
        for word in words_and_next[:-1]
    ]
    hidden = fluid.layers.fc(fluid.layers.concat(rows, axis=1), 256, act="sigmoid")
    return classified(fluid, hidden, DICTIONARY, words_and_next[-1])


def minimized(fluid, name, variables):
    """Builds the model on its inputs, and the ops that train it; returns the loss."""
    make = {
        "lenet": lenet,
        "resnet20": resnet20,
        "resnet50": resnet50,
        "transformer": transformer,
        "lstm": lstm,
        "word2vec": word2vec,
    }[name]
    loss = make(fluid, *variables)
    fluid.optimizer.SGD(RATE).minimize(loss)
    return loss
