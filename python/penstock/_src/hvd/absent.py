"""Names of Horovod that penstock.hvd lacks."""

from penstock._src.base.absent import absent_names

__getattr__ = absent_names(
    "penstock.hvd",
    ("SyncBatchNorm", "sparse_allreduce_async"),
    "PyTorch has it; in a program, use BuildStrategy.sync_batch_norm, and gradients of sparse "
    "tables are exchanged as rows",
)
