"""Plots the curves of a training with matplotlib."""

from penstock._src.base import environment

__all__ = ["PlotData", "Ploter"]


class PlotData:
    """Points of one curve: `step` and `value`, two lists."""

    def __init__(self):
        self.reset()

    def append(self, step, value):
        """Adds a point."""
        self.step.append(step)
        self.value.append(value)

    def reset(self):
        """Discards all points."""
        self.step, self.value = [], []


class Ploter:
    """Draws one curve for each title. With DISABLE_PLOT=True in the environment it draws nothing.

    Args:
        *args (str): the titles.

    Example:
        from paddle.utils import Ploter
        plot = Ploter('train', 'test')
        plot.append('train', 0, 2.5)
    """

    def __init__(self, *args):
        self._curves = {title: PlotData() for title in args}
        self._disabled = environment.value("DISABLE_PLOT", False)
        if self._disabled:
            return
        try:
            import matplotlib.pyplot
        except ImportError as error:
            raise ImportError(
                "Ploter draws with matplotlib, which is not installed; DISABLE_PLOT=True in the "
                "environment makes it draw nothing"
            ) from error
        self._pyplot = matplotlib.pyplot

    def append(self, title, step, value):
        """Adds the point (step, value) to the curve of `title`."""
        if title not in self._curves:
            raise ValueError(f"Ploter has no curve {title!r}; there are {', '.join(map(repr, self._curves))}")
        self._curves[title].append(step, value)

    def plot(self, path=None):
        """Draws the curves into the file `path`, or on the screen without a path."""
        if self._disabled:
            return
        titles = [title for title, curve in self._curves.items() if curve.step]
        for title in titles:
            self._pyplot.plot(self._curves[title].step, self._curves[title].value)
        self._pyplot.legend(titles, loc="upper left")
        if path is None:
            self._pyplot.show()
        else:
            self._pyplot.savefig(path)
        self._pyplot.gcf().clear()

    def reset(self):
        """Discards the points of all curves."""
        for curve in self._curves.values():
            curve.reset()
