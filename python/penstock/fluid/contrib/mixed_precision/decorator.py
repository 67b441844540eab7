"""decorate(), which some of Fluid's scripts import from this module."""

__all__ = ['decorate']


def decorate(optimizer, amp_lists=None, init_loss_scaling=1.0, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2,
             incr_ratio=2.0, decr_ratio=0.8, use_dynamic_loss_scaling=False):
    """Raises NotImplementedError: programs are not rewritten to float16.

    Args:
        optimizer (Optimizer): the optimizer of the float32 training.
        amp_lists (AutoMixedPrecisionLists | None): as in Fluid.
        init_loss_scaling (float): as in Fluid.
        incr_every_n_steps (int): as in Fluid.
        decr_every_n_nan_or_inf (int): as in Fluid.
        incr_ratio (float): as in Fluid.
        decr_ratio (float): as in Fluid.
        use_dynamic_loss_scaling (bool): as in Fluid.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1))
        except NotImplementedError as error:
            print(error)
    """
    raise NotImplementedError('mixed_precision.decorate: programs run on CPUs, where float16 saves no time; minimize '
                              'with the optimizer itself, in float32')
