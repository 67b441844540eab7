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

# Arguments of layers.
LAYER = {
    "act": "act (str | None): name of an activation.",
    "align_corners": "align_corners (bool): whether the corner pixels of the input and the result are aligned.",
    "axis": "axis (int): the axis; negative: counted from the end.",
    "background_label": "background_label (int): the class that is ignored; -1: none.",
    "bias_attr": "bias_attr (ParamAttr | bool | None): attributes of the bias; False: no bias.",
    "candidate_activation": "candidate_activation (str): activation of the candidate: one of the same names.",
    "class_num": "class_num (int): the number of classes.",
    "clip": "clip (bool): whether boxes are clipped to the image.",
    "data_format": "data_format (str): 'NCHW' or 'NHWC'.",
    "data_layout": "data_layout (str): 'NCHW' or 'NHWC'.",
    "device": "device (str): 'cpu' or 'gpu'; has no effect, because the place of the executor decides.",
    "dtype": "dtype (str | VarType): type of the elements of the result.",
    "epsilon": "epsilon (float): added to the variance.",
    "force_cpu": "force_cpu (bool): keep the tensor in host memory.",
    "gate_activation": "gate_activation (str): activation of the gates: 'sigmoid', 'tanh', 'relu' or 'identity'.",
    "groups": (
        "groups (int | None): number of groups into which the channels are split, each with its own filters; None: 1."
    ),
    "im_info": "im_info (Variable): shape [N, 3]: height, width and scale of each image.",
    "is_reverse": "is_reverse (bool): run from the last row to the first.",
    "is_test": "is_test (bool): compute the result of inference; `Program.clone(for_test=True)` sets it.",
    "keep_dim": "keep_dim (bool): keep the reduced axes, with extent 1.",
    "keep_top_k": "keep_top_k (int): the maximum number of boxes that are kept per image; -1: all.",
    "learning_rate": "learning_rate (float | Variable): rate in step 0; a Variable has shape [1], float32.",
    "name": "name (str | None): prefix of the names of the variables that the layer creates.",
    "nms_threshold": "nms_threshold (float): the maximum overlap of two boxes that are kept.",
    "nms_top_k": "nms_top_k (int): the maximum number of boxes that are considered per class; -1: all.",
    "normalized": (
        "normalized (bool): False for boxes in pixels, whose width and height are the difference of their "
        "corners plus 1."
    ),
    "num_classes": "num_classes (int): the number of classes.",
    "num_filters": "num_filters (int): number of channels of the result.",
    "offset": (
        "offset (float): position of the centre in its cell: 0 is the left or upper edge, 1 the right or lower edge."
    ),
    "out": "out (Variable | None): receives the result, of its shape and type; by default a new Variable.",
    "param_attr": "param_attr (ParamAttr | None): attributes of the weights.",
    "pool_type": "pool_type (str): 'max' or 'avg'.",
    "pooled_height": "pooled_height (int): the number of bins along the height.",
    "pooled_width": "pooled_width (int): the number of bins along the width.",
    "rois": "rois (Variable): shape [regions, 4]: x1, y1, x2, y2, in a sequence for each image; same type as `input`.",
    "score_threshold": "score_threshold (float): only boxes whose score is above this are considered.",
    "seed": "seed (int): seed of the random numbers; 0: different numbers in each run.",
    "shape": "shape (list[int | Variable] | Variable): the shape; Variables are int32 or int64.",
    "spatial_scale": "spatial_scale (float): factor that converts the coordinates of the regions to those of `input`.",
    "staircase": "staircase (bool): round step / decay_steps down.",
    "stop_gradient": "stop_gradient (bool): whether gradients stop at the result.",
    "use_cudnn": "use_cudnn (bool): has no effect on CPUs; kept for compatibility with Fluid.",
    "variance": "variance (list): the 4 variances that are returned for each box.",
}

# A GRU or an LSTM: its cells, their units, and networks of them.
RECURRENT = {
    "name_scope": "name_scope (str): prefix of the names of the parameters.",
    "hidden_size": "hidden_size (int): width of the hidden state.",
    "param_attr": "param_attr (ParamAttr): attributes of the weights.",
    "bias_attr": "bias_attr (ParamAttr): attributes of the biases.",
    "gate_activation": "gate_activation (callable): activation of the gates; `layers.sigmoid` if None.",
    "activation": "activation (callable): activation of the candidate{and_cell}; `layers.tanh` if None.",
    "and_cell": "",
    "forget_bias": "forget_bias (float): added to the forget gate before its activation.",
    "dtype": "dtype (str): 'float32' or 'float64'.",
    "name": "name (str): prefix of the names of the parameters.",
}
GRU = {
    **RECURRENT,
    "step": """u = gate(W_u [x, h] + b_u)    r = gate(W_r [x, h] + b_r)
c = act(W_c [x, r h] + b_c)   h' = u h + (1 - u) c""",
}
LSTM = {
    **RECURRENT,
    "step": """[i, j, f, o] = W [x, h] + b
c' = c gate(f + forget_bias) + gate(i) act(j)    h' = act(c') gate(o)""",
    "hidden_size": "hidden_size (int): width of the hidden state and of the cell.",
    "param_attr": "param_attr (ParamAttr): attributes of the weight.",
    "bias_attr": "bias_attr (ParamAttr): attributes of the bias.",
    "and_cell": " and the cell",
}
