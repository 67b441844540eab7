"""Gradient clipping: ops between the gradients and the updates.

    fluid.optimizer.SGD(0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)

set_gradient_clip() is the older spelling: it marks parameters, and an optimizer without a grad_clip clips those.
"""

import warnings

from penstock._call_site import stack_level
from penstock.fluid import framework
from penstock.fluid.core import VarType
from penstock.fluid.framework import OpRole, Parameter
from penstock.fluid.layers import arithmetic, nn, ops, tensor

__all__ = [
    'ErrorClipByValue', 'GradientClipByGlobalNorm', 'GradientClipByNorm', 'GradientClipByValue', 'set_gradient_clip'
]


class BaseErrorClipAttr:
    """What Variable.error_clip may be: how the variable's gradient is clipped before it flows on."""

    def _insert_op(self, block, position, grad_name):
        raise NotImplementedError


class ErrorClipByValue(BaseErrorClipAttr):
    """Each element between min and max; min is -max by default."""

    def __init__(self, max, min=None):
        self.max, self.min = _bounds(max, min)

    def __str__(self):
        return 'ByValue, min=%f, max=%f' % (self.min, self.max)

    def _insert_op(self, block, position, grad_name):
        with block.program._role_guard(OpRole.Backward):
            block._insert_op(position, 'clip', {'X': grad_name}, {'Out': grad_name}, {'min': self.min, 'max': self.max})


def clip_errors(block, begin):
    """Clips gradients of variables with an error_clip behind each op from position `begin` on that writes one."""
    clips = {}
    for var in block._var_handles.values():
        if var.error_clip is None:
            continue
        if not isinstance(var.error_clip, BaseErrorClipAttr):
            raise TypeError('error_clip of %s must be an instance of BaseErrorClipAttr, not %s' %
                            (var.name, type(var.error_clip).__name__))
        clips[var.grad_name] = var.error_clip
    if not clips:
        return
    for op in block.ops[begin:]:
        for name in op.output_arg_names:
            if name in clips:
                clips[name]._insert_op(block, op.idx + 1, name)


def _bounds(max, min):
    if min is None:
        if not max > 0:
            raise ValueError('max must be above 0 if min is not given, but it is %r' % (max,))
        min = -max
    return float(max), float(min)


class GradientClipBase:
    """Called with (parameter, gradient) pairs, gives the pairs with clipped gradients.

    need_clip  a function of a parameter: whether its gradient is clipped; by default all are
    """

    def __init__(self, need_clip=None):
        if need_clip is not None and not callable(need_clip):
            raise TypeError('need_clip must be a function of a parameter, not %s' % type(need_clip).__name__)
        self._need_clip_func = need_clip

    def __call__(self, params_grads):
        chosen = [pair for pair in params_grads if self._need_clip_func is None or self._need_clip_func(pair[0])]
        return _clipped(params_grads, [(self, chosen)], 'gradient_clip')

    def _clip(self, pairs):
        """Appends its ops; gives the new gradients, one a pair. Each op says of which pair it is."""
        raise NotImplementedError

    def _group(self):
        """Parameters whose clips are of one group are clipped together."""
        return id(self)


class GradientClipByValue(GradientClipBase):
    """Each element of a gradient between min and max; min is -max by default."""

    def __init__(self, max, min=None, need_clip=None):
        super().__init__(need_clip)
        self.max, self.min = _bounds(max, min)

    def __str__(self):
        return 'Gradient Clip By Value, min = %f, max=%f' % (self.min, self.max)

    def _clip(self, pairs):
        grads = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                grads.append(arithmetic.clip(x=grad, min=self.min, max=self.max))
        return grads


class GradientClipByNorm(GradientClipBase):
    """Each gradient made shorter if the root of the sum of its squares is above clip_norm."""

    def __init__(self, clip_norm, need_clip=None):
        super().__init__(need_clip)
        self.clip_norm = float(clip_norm)

    def __str__(self):
        return 'Gradient Clip By Norm, clip_norm=%f' % self.clip_norm

    def _clip(self, pairs):
        grads = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                grads.append(arithmetic.clip_by_norm(x=grad, max_norm=self.clip_norm))
        return grads


class GradientClipByGlobalNorm(GradientClipBase):
    """All gradients made shorter by one factor if the root of the sum of all their squares is above clip_norm.

    group_name  with set_gradient_clip: parameters of one group have one norm
    """

    def __init__(self, clip_norm, group_name='default_group', need_clip=None):
        super().__init__(need_clip)
        self.clip_norm = float(clip_norm)
        self.group_name = group_name

    def __str__(self):
        return 'Gradient Clip By GlobalNorm, global_norm=%f' % self.clip_norm

    def _group(self):
        return self.group_name

    def _clip(self, pairs):
        squares = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                squares.append(_sum_of_squares(grad))
        with pairs[-1][0].block.program._optimized_guard(pairs[-1]):
            norm = ops.sqrt(tensor.sums(squares))
            most = tensor.fill_constant(shape=[1], dtype=norm.dtype, value=self.clip_norm)
            factor = arithmetic.elementwise_div(x=most, y=arithmetic.elementwise_max(x=most, y=norm))
        grads = []
        for param, grad in pairs:
            with param.block.program._optimized_guard([param, grad]):
                grads.append(arithmetic.elementwise_mul(x=grad, y=factor))
        return grads


def _sum_of_squares(grad):
    if grad.type == VarType.SELECTED_ROWS:
        grad = nn.get_tensor_from_selected_rows(nn.merge_selected_rows(grad))
    return arithmetic.reduce_sum(ops.square(grad))


def _clipped(params_grads, groups, scope):
    """The pairs with new gradients for those in `groups`, a list of (clip, pairs)."""
    groups = [(clip, pairs) for clip, pairs in groups if pairs]
    if not groups:
        return params_grads
    block = params_grads[0][0].block
    begin = block.program.desc.op_count(block.idx)
    renamed = {}
    with framework.name_scope(scope):
        for clip, pairs in groups:
            renamed.update((param.name, grad) for (param, _), grad in zip(pairs, clip._clip(pairs)))
    # Now that it has a name, an op is of (parameter, clipped gradient).
    for op in block.ops[begin:]:
        param_name = op.attr('op_role_var')[0]
        op._set_attr('op_role_var', [param_name, renamed[param_name].name])
    return [(param, renamed.get(param.name, grad)) for param, grad in params_grads]


def set_gradient_clip(clip, param_list=None, program=None):
    """Clips gradients of the parameters (Parameters or names; default: all) in a later minimize().

    Where only some are marked, only those are clipped; Fluid 1.8.5 then clips none.
    """
    if not isinstance(clip, GradientClipBase):
        raise TypeError("'clip' should be an instance of GradientClipBase's derived class, not %s" %
                        type(clip).__name__)
    block = (framework.default_main_program() if program is None else program).global_block()
    if any(op.attr('op_role') & OpRole.Optimize for op in block.ops):
        warnings.warn('set_gradient_clip after minimize() has no effect on the ops that are there: call it before, or '
                      'give the optimizer a grad_clip', stacklevel=stack_level())
    if param_list is None:
        param_list = block.all_parameters()
    params = [block.var(param) if isinstance(param, str) else param for param in param_list]
    for param in params:
        if not isinstance(param, Parameter):
            raise TypeError('param_list must hold Parameters or their names, not %r' % (param,))
        param.gradient_clip_attr = clip


def append_gradient_clip_ops(params_grads):
    """Clips what set_gradient_clip has marked."""
    groups = {}
    for param, grad in params_grads:
        clip = getattr(param, 'gradient_clip_attr', None)    # of a loaded program: a Variable like others
        if clip is None:
            continue
        first, pairs = groups.setdefault(clip._group(), (clip, []))
        if getattr(first, 'clip_norm', None) != getattr(clip, 'clip_norm', None):
            raise ValueError("clip_norm of all parameters of group '%s' should be the same; %s has %s, another %s" %
                             (clip._group(), param.name, clip.clip_norm, first.clip_norm))
        pairs.append((param, grad))
    return _clipped(params_grads, list(groups.values()), 'gradient_clip_@CLIP')
