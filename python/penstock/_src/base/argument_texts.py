"""Descriptions of arguments and results that functions of several folders share (doc_texts.py inserts them)."""

OPTIMIZER = {
    "learning_rate": "learning_rate (float | Variable): a number, or a schedule.",
    "parameters": "parameter_list (list | None): the parameters to update; None: all trainable ones.",
    "regularization": (
        "regularization (WeightDecayRegularizer | None): regularizes parameters that have no regularizer."
    ),
    "grad_clip": "grad_clip (GradientClipBase | None): how gradients are clipped.",
    "name": "name (str | None): prefix of the names of the variables that the optimizer creates.",
    "common": "{parameters}\n{regularization}\n{grad_clip}\n{name}",
    "example": (
        "Example:\n"
        "    loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))\n"
        "    fluid.optimizer.{call}.minimize(loss)"
    ),
}

MINIMIZE = {
    "loss": "loss (Variable): shape [1].",
    "startup_program": (
        "startup_program (Program | None): receives the initial values; None: the default startup program."
    ),
    "parameter_list": "parameter_list (list | None): parameters or their names; None: all trainable ones.",
    "no_grad_set": "no_grad_set (set | None): variables, or their names, that get no gradient.",
    "callbacks": "callbacks (list | None): called for each gradient op; see append_backward.",
    "ignored_startup": "startup_program (Program | None): ignored; accepted for compatibility with Fluid.",
    "parameters_and_callbacks": "{parameter_list}\n{no_grad_set}\n{callbacks}",
    "from_pairs": "Args:\n    {params_grads}\n\n{updates}",
    "of_settings": (
        "Raises:\n"
        "    ValueError: settings of the strategy contradict each other.\n"
        "    NotImplementedError: a setting of the strategy is not built."
    ),
    "of_backward": (
        "Args:\n    {loss}\n    {ignored_startup}\n    {parameters_and_callbacks}\n\n"
        "Returns:\n    list: (parameter, gradient) pairs."
    ),
    "to_minimize": "{loss}\n{startup_program}\n{parameter_list}\n{no_grad_set}",
    "updates_and_pairs": "Returns:\n    tuple: (update ops, [(parameter, gradient)]).",
    "pairs": "Returns:\n    list: (parameter, gradient) pairs.",
    "of_a_loss": (
        "Args:\n    loss (Variable): its program is changed.\n    {startup_program}\n    {params_grads}\n\n{updates}"
    ),
    "params_grads": "params_grads (list): (parameter, gradient) pairs.",
    "updates": "Returns:\n    list[Operator]: the update ops.",
}

DATASET = {
    "file_of_two": """x = fluid.data('x', [None, 2])
with open('part-0', 'w') as file:
    file.write('2 0.5 1.5\\n2 1 1\\n')"""
}
