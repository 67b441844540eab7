"""Fluid's imperative mode, which is not part of Penstock: Penstock builds programs and runs them.

The module can be imported, because scripts import it beside the static graph; any use raises an error.
"""

from penstock.fluid._absent import absent

_WHY = 'there is no imperative mode here; build a Program with fluid.layers and run it by fluid.Executor'


def enable_dygraph(place=None):
    """Raises NotImplementedError: there is no imperative mode.

    Args:
        place (Place | None): where Fluid would run ops.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.enable_dygraph()
        except NotImplementedError as error:
            print(error)
    """
    raise NotImplementedError('fluid.enable_dygraph: ' + _WHY)


def disable_dygraph():
    """Does nothing: Penstock always builds programs.

    Example:
        fluid.disable_dygraph()
        assert not fluid.in_dygraph_mode()
    """


enable_imperative, disable_imperative = enable_dygraph, disable_dygraph


__path__, __getattr__ = absent('fluid.dygraph', _WHY)
