"""TrainerDesc: Fluid's settings for training from a dataset. train_from_dataset takes these settings as arguments; the
classes here only store them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.trainer_desc import DistMultiTrainer as DistMultiTrainer
    from penstock._src.executor.trainer_desc import MultiTrainer as MultiTrainer, PipelineTrainer as PipelineTrainer
    from penstock._src.executor.trainer_desc import TrainerDesc

__all__ = ['TrainerDesc']

facade.make(__name__)
