"""Variable and Parameter: handles on the variables of a block (program.py explains handles)."""

import numpy

from penstock._src.ir import var_desc
from penstock._src.ir.types import VAR_TYPES, VarType, checked_shape, dtype_name, to_dtype
from penstock._src.ir.variable_ops import VariableOperators

GRAD_SUFFIX = "@GRAD"


def grad_var_name(var_name):
    """Returns the name of a variable's gradient.

    Args:
        var_name (str): name of the variable.

    Returns:
        str: the name with '@GRAD' appended.

    Example:
        assert fluid.framework.grad_var_name('w') == 'w@GRAD'
    """
    return var_name + GRAD_SUFFIX


class Variable(VariableOperators):
    """A variable of a block. Layers return Variables; arithmetic on them adds ops.

    Args:
        block (Block): the block.
        name (str): its name.

    Example:
        x = fluid.data('x', [None, 4])
        y = 2.0 * x + 1.0
        assert y.shape == (-1, 4)
    """

    __slots__ = ("block", "name", "_desc", "error_clip", "_infos", "__weakref__")

    def __init__(self, block, name):
        self.block = block
        self.name = name
        self._desc = block.program.desc
        self.error_clip = None

    def _set_error_clip(self, error_clip):
        """Sets how its gradient is clipped within the backward pass, a fluid.clip.ErrorClipByValue; Fluid's name."""
        self.error_clip = error_clip

    @property
    def desc(self):
        """The variable as Fluid's VarDesc, a view: desc.name(), desc.shape(), desc.set_shape(shape) and so on."""
        return var_desc.VarDesc(self._desc, self.block.idx, self.name)

    @property
    def shape(self):
        """Its shape as a tuple; -1: known at run time."""
        return self._desc.var_shape(self.block.idx, self.name)

    @shape.setter
    def shape(self, shape):
        self._desc.set_var_shape(self.block.idx, self.name, checked_shape(self.name, shape))

    @property
    def dtype(self):
        """Type of its elements, a VarType."""
        return VAR_TYPES[self._desc.var_dtype(self.block.idx, self.name)]

    @dtype.setter
    def dtype(self, dtype):
        self._desc.set_var_dtype(self.block.idx, self.name, int(to_dtype(dtype)))

    @property
    def lod_level(self):
        """Number of levels of sequences."""
        return self._desc.var_lod_level(self.block.idx, self.name)

    @property
    def type(self):
        """Kind of the variable, a VarType such as LOD_TENSOR."""
        return VAR_TYPES[self._desc.var_kind(self.block.idx, self.name)]

    @property
    def persistable(self):
        """Whether its value stays in the scope between runs, and is saved."""
        return self._desc.var_persistable(self.block.idx, self.name)

    @persistable.setter
    def persistable(self, value):
        self._desc.set_var_persistable(self.block.idx, self.name, bool(value))

    def _set_info(self, key, value):
        """Stores a value of the caller under a name; it is not part of the program."""
        if not hasattr(self, "_infos"):
            self._infos = {}
        self._infos[key] = value

    def _get_info(self, key):
        return getattr(self, "_infos", {}).get(key)

    @property
    def need_check_feed(self):
        """Whether the shape of a feed is compared with the declared shape."""
        return self._desc.var_need_check_feed(self.block.idx, self.name)

    @property
    def stop_gradient(self):
        """Whether the backward pass stops at this variable."""
        return self._facts().stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value):
        self._set_fact("stop_gradient", bool(value))

    @property
    def is_data(self):
        """Whether the caller feeds it."""
        return self._facts().is_data

    @is_data.setter
    def is_data(self, value):
        self._set_fact("is_data", bool(value))

    @property
    def grad_name(self):
        """Name of its gradient."""
        return grad_var_name(self.name)

    @property
    def op(self):
        """The last op that writes the variable; None if none does."""
        for op in reversed(self.block.ops):
            if self.name in op.output_arg_names:
                return op
        return None

    def _facts(self):
        return self._desc.var_facts(self.block.idx, self.name)

    def _set_fact(self, name, value):
        facts = self._facts()
        setattr(facts, name, value)
        self._desc.set_var_facts(self.block.idx, self.name, facts)

    def to_string(self, throw_on_error=True, with_details=False):
        """Prints the variable's declaration.

        Args:
            throw_on_error (bool): ignored; accepted for compatibility with Fluid.
            with_details (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            str: one line.
        """
        kind = self.type
        what = f"{dtype_name(self.dtype)}{list(self.shape)}" if kind == VarType.LOD_TENSOR else kind.name
        return (
            f"{'param' if isinstance(self, Parameter) else 'persist' if self.persistable else 'var'} {self.name} : "
            f"{what}"
        )

    __str__ = to_string

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"


class _OptimizeAttr(dict):
    """The value of optimize_attr; setting its item changes the parameter."""

    def __init__(self, param):
        super().__init__(learning_rate=param._learning_rate())
        self._param = param

    def __setitem__(self, name, value):
        if name != "learning_rate":
            raise KeyError(f"optimize_attr may hold learning_rate only, not {name!r}")
        rate = value if isinstance(value, Variable) else float(value)
        super().__setitem__(name, rate)
        self._param._set_learning_rate(rate)


class Parameter(Variable):
    """A variable that training updates. All handles of one name share its attributes.

    Example:
        w = fluid.layers.create_parameter([4, 2], 'float32', name='w')
        w.trainable = False
    """

    __slots__ = ()

    @property
    def _attrs(self):
        return self.block.program._parameter_attrs.setdefault(self.name, {})

    @property
    def trainable(self):
        """Whether an optimizer updates it."""
        return self._facts().trainable

    @trainable.setter
    def trainable(self, value):
        self._set_fact("trainable", bool(value))

    @property
    def is_distributed(self):
        """Whether it is a table that is sharded by id over pservers."""
        return self._facts().is_distributed

    @is_distributed.setter
    def is_distributed(self, value):
        self._set_fact("is_distributed", bool(value))

    @property
    def optimize_attr(self):
        """{'learning_rate': factor of the optimizer's learning rate, or a Variable: the parameter's own rate}."""
        return _OptimizeAttr(self)

    @optimize_attr.setter
    def optimize_attr(self, value):
        self.optimize_attr["learning_rate"] = value["learning_rate"]

    def _set_learning_rate(self, value):
        self._set_fact("learning_rate", 1.0 if isinstance(value, Variable) else value)
        self._attrs["learning_rate"] = value

    def _learning_rate(self):
        """The factor as the caller gave it; the program holds it as a float32."""
        held, given = self._facts().learning_rate, self._attrs.get("learning_rate")
        if isinstance(given, Variable):
            return given
        return given if given is not None and numpy.float32(given) == numpy.float32(held) else held

    @property
    def regularizer(self):
        """Its WeightDecayRegularizer; None: the optimizer's."""
        return self._attrs.get("regularizer")

    @regularizer.setter
    def regularizer(self, value):
        self._attrs["regularizer"] = value

    @property
    def do_model_average(self):
        """Whether ModelAverage averages it."""
        return self._attrs.get("do_model_average")

    @do_model_average.setter
    def do_model_average(self, value):
        self._attrs["do_model_average"] = value

    @property
    def gradient_clip_attr(self):
        """How clip.set_gradient_clip clips its gradient, or None."""
        return self._attrs.get("gradient_clip_attr")

    @gradient_clip_attr.setter
    def gradient_clip_attr(self, value):
        self._attrs["gradient_clip_attr"] = value
