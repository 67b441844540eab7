"""horovod.torch.elastic, which Penstock does not have: the ranks of a job do not change while it runs.

The module can be imported, because scripts import it beside the rest; any use raises an error.
"""

from penstock._src.base.absent import absent

__path__, __getattr__ = absent(
    "hvd.elastic",
    "ranks do not join or leave a running job; let the launcher restart it "
    "(--max_restart) and continue from a checkpoint",
)
