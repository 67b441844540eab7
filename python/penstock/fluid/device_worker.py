"""Workers that a TrainerDesc names: how the threads run that train from a dataset. Executor.train_from_dataset decides
this by the program itself; here the settings are kept to be read again."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.device_worker import DOWNPOUR as DOWNPOUR, NO_PSLIB as NO_PSLIB, DeviceWorker
    from penstock._src.executor.device_worker import DeviceWorkerFactory, Hogwild, Section
    from penstock._src.ir.program import Program as Program

__all__ = ['DeviceWorker', 'DeviceWorkerFactory', 'Hogwild', 'Section']

facade.make(__name__)
