"""The models of fluid_models.py in PyTorch, with the same arithmetic: build(name, batch, sparse) returns a Built.

An LSTM here takes the embedding itself, where dynamic_lstm takes its product with a matrix; both compute the same.
"""

import collections

import fluid_models as same
import torch
import torch.nn.functional as F
from torch import nn

# model(x) gives the scores whose cross_entropy with y is the loss.
Built = collections.namedtuple("Built", "model x y")


def normalised(channels, filters, size, stride=1):
    return nn.Sequential(
        nn.Conv2d(channels, filters, size, stride, (size - 1) // 2, bias=False), nn.BatchNorm2d(filters)
    )


class Residual(nn.Module):
    """relu(main(x) + x), after a projection of x if the shapes differ."""

    def __init__(self, main, channels, filters, stride):
        super().__init__()
        self.main = main
        self.shortcut = (
            normalised(channels, filters, 1, stride) if stride != 1 or channels != filters else nn.Identity()
        )

    def forward(self, x):
        return F.relu(self.main(x) + self.shortcut(x))


class Pooled(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    )


def resnet20():
    layers, channels = [normalised(3, 16, 3), nn.ReLU()], 16
    for times, stride in same.strides([3, 3, 3]):
        filters = 16 * times
        main = nn.Sequential(normalised(channels, filters, 3, stride), nn.ReLU(), normalised(filters, filters, 3))
        layers.append(Residual(main, channels, filters, stride))
        channels = filters
    return nn.Sequential(*layers, Pooled(), nn.Linear(64, 10))


def resnet50():
    layers, channels = [normalised(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for times, stride in same.strides([3, 4, 6, 3]):
        filters = 64 * times
        main = nn.Sequential(
            normalised(channels, filters, 1),
            nn.ReLU(),
            normalised(filters, filters, 3, stride),
            nn.ReLU(),
            normalised(filters, 4 * filters, 1),
        )
        layers.append(Residual(main, channels, 4 * filters, stride))
        channels = 4 * filters
    return nn.Sequential(*layers, Pooled(), nn.Linear(2048, 1000))


class Encoder(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.mix = [nn.Linear(width, width) for _ in range(4)]
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        batch, length, width = x.shape

        def heads(y):
            return y.view(batch, length, self.heads, -1).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(heads(self.query(x)), heads(self.key(x)), heads(self.value(x)))
        x = self.first(x + self.mix(mixed.transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.narrow(F.relu(self.wide(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(same.VOCABULARY, same.WIDTH)
        self.layers = nn.Sequential(*[Encoder(same.WIDTH, same.HEADS, same.HIDDEN) for _ in range(2)])
        self.out = nn.Linear(same.WIDTH, same.VOCABULARY)

    def forward(self, x):
        return self.out(self.layers(self.table(x)).reshape(-1, same.WIDTH))


class Lstm(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.table = nn.Embedding(same.VOCABULARY, 128, sparse=sparse)
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.out = nn.Linear(128, 2)

    def forward(self, x):
        return self.out(self.lstm(self.table(x))[0].max(1)[0])


class Word2vec(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.table = nn.Embedding(same.DICTIONARY, 32, sparse=sparse)
        self.hidden, self.out = nn.Linear(32 * same.CONTEXT, 256), nn.Linear(256, same.DICTIONARY)

    def forward(self, x):
        return self.out(torch.sigmoid(self.hidden(self.table(x).flatten(1))))


def build(name, batch, sparse):
    """sparse: gradients of lookups are sparse, which torch.compile cannot make."""

    def ids(below, *shape):
        return torch.randint(0, below, shape)

    if name == "transformer":
        return Built(Transformer(), ids(same.VOCABULARY, batch, same.LENGTH), ids(same.VOCABULARY, batch * same.LENGTH))
    if name == "lstm":
        return Built(Lstm(sparse), ids(same.VOCABULARY, batch, same.WORDS), ids(2, batch))
    if name == "word2vec":
        return Built(Word2vec(sparse), ids(same.DICTIONARY, batch, same.CONTEXT), ids(same.DICTIONARY, batch))
    make, shape, classes = {
        "lenet": (lenet, (1, 28, 28), 10),
        "resnet20": (resnet20, (3, 32, 32), 10),
        "resnet50": (resnet50, (3, 224, 224), 1000),
    }[name]
    return Built(make(), torch.rand(batch, *shape), ids(classes, batch))
