"""TrainerDesc: Fluid's settings for training from a dataset. train_from_dataset takes these settings as arguments; the
classes here only store them."""

# Written by tools/dev/gen_names.py.
from penstock._src.executor.trainer_desc import (
    DistMultiTrainer as DistMultiTrainer, MultiTrainer as MultiTrainer, PipelineTrainer as PipelineTrainer,
    TrainerDesc as TrainerDesc,
)
from penstock._src.names import facade

__all__ = ['TrainerDesc']

facade.make(__name__)
