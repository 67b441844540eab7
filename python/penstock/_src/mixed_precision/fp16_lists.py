"""AutoMixedPrecisionLists: which ops a program in mixed precision computes in float16."""

from __future__ import annotations

import copy

# Computed in float16: safe, and where most of the time is spent.
white_list = {"conv2d", "matmul", "mul"}

# Computed in float32: their results, or what follows them, need the range or the precision.
black_list = {
    "cos_sim",
    "cross_entropy",
    "cross_entropy2",
    "exp",
    "log",
    "mean",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_with_cross_entropy",
    "square",
    "sum",
}

# Computed as the ops before them are.
gray_list = {
    "batch_norm",
    "cast",
    "dropout",
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "fill_constant",
    "flatten2",
    "gather",
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "get_tensor_from_selected_rows",
    "leaky_relu",
    "lookup_table",
    "pool2d",
    "pool3d",
    "rank",
    "relu",
    "relu6",
    "reshape2",
    "scale",
    "sigmoid",
    "sign",
    "slice",
    "soft_relu",
    "stack",
    "tanh",
    "top_k",
    "transpose2",
    "uniform_random_batch_size_like",
    "unstack",
}


class AutoMixedPrecisionLists:
    """Which ops are computed in float16 (white_list), in float32 (black_list), or as the ops before them (gray_list).

    An op of no list is computed in float32.

    Args:
        custom_white_list (set | None): types of ops that join the white list, and leave the others.
        custom_black_list (set | None): types of ops that join the black list, and leave the others.
        custom_black_varnames (set | None): ops that read or write a variable of these names are computed in float32.

    Raises:
        ValueError: a type is in both custom lists.

    Example:
        lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_list={'mul'})
        optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1), amp_lists=lists)
    """

    def __init__(
        self,
        custom_white_list: set[str] | None = None,
        custom_black_list: set[str] | None = None,
        custom_black_varnames: set[str] | None = None,
    ) -> None:
        self._custom_white_list = custom_white_list
        self._custom_black_list = custom_black_list
        self.white_list, self.black_list, self.gray_list = map(copy.copy, (white_list, black_list, gray_list))
        self.black_varnames = copy.copy(custom_black_varnames)
        self._update_list()

    def _update_list(self) -> None:
        white, black = set(self._custom_white_list or ()), set(self._custom_black_list or ())
        if white & black:
            raise ValueError(
                f"AutoMixedPrecisionLists: {', '.join(sorted(white & black))} is in the custom white list and in the "
                "custom black list"
            )
        self.white_list = (self.white_list | white) - black
        self.black_list = (self.black_list | black) - white
        self.gray_list -= white | black
