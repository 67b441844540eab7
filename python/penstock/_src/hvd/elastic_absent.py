"""Names of horovod.torch.elastic and horovod.tensorflow.elastic that penstock.hvd.elastic lacks."""

from penstock._src.base.absent import absent_names

__getattr__ = absent_names(
    "penstock.hvd.elastic",
    (
        "CommitStateCallback",
        "KerasState",
        "TensorFlowKerasState",
        "TensorFlowState",
        "TorchState",
        "UpdateBatchStateCallback",
        "UpdateEpochStateCallback",
    ),
    "it is of another framework; use ProgramState, or ObjectState for arrays, and call State.commit() in the loop",
)
