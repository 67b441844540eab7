"""Makes one random program from a seed, on either side."""

import attributes
import control
import dense
import images
import losses
import sequences
import training
from dice import Dice


class Generator:
    """Builds into the default programs of `fluid`, which is Fluid's or Penstock's."""

    def __init__(self, fluid, seed):
        self.fluid, self.L, self.dice = fluid, fluid.layers, Dice(seed)
        self.main, self.startup = fluid.default_main_program(), fluid.default_startup_program()
        self.shared = {}  # shape key -> [(name, attr)]
        self.feeds = []
        self.sparse = self.distributed = False  # whether it has sparse and distributed tables
        self._names = 0
        self._rows = []

    # Called by layers.
    def fresh(self, prefix):
        self._names += 1
        return f"{prefix}_{self._names}"

    def width(self):
        return self.dice.pick([2, 4, 6, 8, 8, 16, 33])

    def weighted(self, choices):
        return self.dice.pick([one for one, weight in choices for _ in range(weight)])

    def data(self, name, shape, dtype="float32", lod_level=0):
        name = self.fresh(name)
        self.feeds.append(name)
        kind = self.dice.between(0, 3)
        if kind == 0 and lod_level == 0:
            made = self.fluid.data(name, [None] + shape, dtype)
        else:
            made = self.L.data(name, shape=shape, dtype=dtype, lod_level=lod_level)
        if self.dice.chance(0.03) and dtype == "float32":
            made.stop_gradient = False
        if self.dice.chance(0.02):
            made.persistable = True
        return made

    def ids(self, most, lod_level=0, name="ids"):
        return self.data(name, [1], "int64", lod_level)

    def vector(self, size):
        return self.L.create_parameter(
            [size], "float32", attr=attributes.plain(self, ("vector", size)), is_bias=self.dice.chance(0.2)
        )

    def matrix(self, rows, size):
        return self.L.create_parameter([rows, size], "float32", attr=attributes.plain(self, ("matrix", rows, size)))

    def rows(self, size=None):
        """Earlier rows, or those of a new input; of the given width, if any."""
        fitting = [x for x in self._rows if size is None or int(x.shape[-1]) == size]
        if fitting and self.dice.chance(0.7):
            return self.dice.pick(fitting)
        if self._rows and self.dice.chance(0.5):
            return self.L.fc(self.dice.pick(self._rows), size or self.width())
        return self.data("x", [size or self.width()])

    # The program.
    def build(self):
        """Builds everything including the updates; returns facts that the programs do not contain."""
        dice = self.dice
        if dice.chance(0.3):
            self.main.random_seed = self.startup.random_seed = dice.between(1, 90)
        for _ in range(dice.between(1, 2)):
            self._rows.append(self._tower())
        for _ in range(dice.between(1, 5)):
            self._deepen()
        costs = []
        for _ in range(1 if dice.chance(0.75) else 2):
            cost = self.weighted(losses.LOSSES)(self, self._joined())
            costs.append(losses.reduced(self, cost))
        if dice.chance(0.07):
            costs.append(sequences.tagged(self))
        loss = costs[0] if len(costs) == 1 else self._added(costs)
        before = self.main.clone(for_test=True) if dice.chance(0.5) else None
        pairs = training.minimize(self, loss)
        after = self.main.clone(for_test=True) if dice.chance(0.3) else None
        return loss, before, after, pairs

    def _tower(self):
        kind = self.dice.between(0, 9)
        if kind < 4:
            return self.data("x", [self.width()])
        if kind < 6:
            return images.rows(self)
        if kind < 9:
            return sequences.rows(self)
        return dense.looked_up(self, None)

    def _deepen(self):
        x = self.dice.pick(self._rows)
        layers = control.LAYERS if self.dice.chance(0.15) else dense.LAYERS
        if self.dice.chance(0.05):
            with self.fluid.name_scope(self.fresh("scope")):
                made = self.weighted(layers)(self, x)
        else:
            made = self.weighted(layers)(self, x)
        if len(made.shape) == 2 and int(made.shape[-1]) > 0:
            self._rows.append(made)

    def _joined(self):
        parts = self.dice.some(self._rows, 1, 3)
        if all(self._rows[-1] is not part for part in parts):
            parts.append(self._rows[-1])
        if len(parts) == 1:
            return parts[0]
        return self.L.concat(parts, axis=1) if self.dice.chance(0.5) else self.L.fc(parts, self.width())

    def _added(self, costs):
        if self.dice.chance(0.5):
            return self.L.sums(costs)
        return self.L.elementwise_add(costs[0], costs[1]) if len(costs) == 2 else self.L.sum(costs)
