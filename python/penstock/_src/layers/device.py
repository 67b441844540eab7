"""get_places, an op for ParallelDo. Fluid 1.8 has removed both."""

from __future__ import annotations

from penstock._src.base.errors import not_built


def get_places(device_count: int | None = None, device_type: str | None = None) -> None:
    """Raises NotImplementedError: Fluid 1.8 has removed the op get_places too.

    Args:
        device_count (int): the number of devices.
        device_type (str): 'CPU' or 'CUDA'.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.layers.device.get_places()
        except NotImplementedError as error:
            print(error)
    """
    raise not_built("get_places: Fluid 1.8 has no op get_places; CompiledProgram.with_data_parallel takes places")
