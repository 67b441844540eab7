"""Descriptions of arguments, results and errors that the functions of penstock.hvd share (base/doc_texts.py)."""

ARRAYS = {
    "own_tensor": "tensor (numpy.ndarray | torch.Tensor): C-contiguous and writeable.",
    "own_tensors": "tensors (list[numpy.ndarray | torch.Tensor]): C-contiguous and writeable.",
    "each_as_allreduce": (
        "tensors (list[numpy.ndarray | torch.Tensor]): each as for `allreduce`; all ranks give the same number."
    ),
    "name": "name (str | None): appears in errors; must be equal on all ranks.",
    "process_set": "process_set (ProcessSet): the ranks that take part.",
    "name_and_set": "{name}\n{process_set}",
    "root_rank": "root_rank (int): the rank, of the job, whose array all ranks receive.",
    "from_root": "{root_rank}\n{name_and_set}",
    "compression": "compression (Compression): Compression.fp16 exchanges floats in half precision.",
    "average": "average (bool | None): the older spelling of `op`.",
    "average_or_sum": "average (bool | None): the older spelling of `op`: True is Average, False is Sum.",
    "op": "op (object): as for `allreduce`.",
    "op_of_scatter": "op (object): as for `reducescatter`.",
    "factors": (
        "prescale_factor (float): multiplies the array before the reduction.\n"
        "postscale_factor (float): multiplies the result."
    ),
    "factors_of_all": (
        "prescale_factor (float): multiplies the arrays before the reduction.\n"
        "postscale_factor (float): multiplies the results."
    ),
    "reduction": "{average}\n{name}\n{op}\n{factors}\n{process_set}",
    "reduction_of_all": "{average}\n{name}\n{op}\n{factors_of_all}\n{process_set}",
    "handle": "Returns:\n    int: a handle for `synchronize`.",
    "handle_of_list": "Returns:\n    int: a handle for `synchronize`, which returns a list.",
    "example": "Example:\n    import penstock.hvd as hvd\n    hvd.init()",
}

NEEDS_INIT = {
    "needs_init_example": (
        "Raises:\n    penstock.StateError: `init` has not been called (E-hvd-init).\n\n"
        "Example:\n    import penstock.hvd as hvd\n    hvd.init()"
    )
}
