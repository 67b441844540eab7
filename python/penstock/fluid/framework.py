"""Program, Block, Operator, Variable: handles on a program that C++ owns.

A handle is (program, block, id or name); the same thing always gives the same handle, so `is` works. One whose op or
variable is gone raises penstock.StateError when it is used. Only what C++ has no field for (a parameter's regularizer,
say) lives in Python, in Program._parameter_attrs.
"""

import contextlib

from penstock._call_site import call_site
from penstock._penstock import NameScopes, OpContext, ProgramDesc
from penstock.fluid import core, unique_name
from penstock.fluid.core import VAR_TYPES, VarType, to_dtype

__all__ = [
    'Block', 'Operator', 'Parameter', 'Program', 'Variable', 'cpu_places', 'default_main_program',
    'default_startup_program', 'grad_var_name', 'in_dygraph_mode', 'name_scope', 'program_guard',
]

GRAD_SUFFIX = '@GRAD'
FLUID_VERSION = 1008005
_name_scopes = NameScopes()
ATTR_KINDS = ('INT', 'FLOAT', 'STRING', 'INTS', 'FLOATS', 'STRINGS', 'BOOLEAN', 'BOOLEANS', 'BLOCK', 'LONG', 'BLOCKS',
              'LONGS')


class OpRole:
    """Bits of op_role."""
    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256


def grad_var_name(var_name):
    return var_name + GRAD_SUFFIX


def in_dygraph_mode():
    return False


def cpu_places(device_count=None):
    return [core.CPUPlace()] * (device_count or 1)


class Variable:
    """A variable of a block."""

    __slots__ = ('block', 'name', '_desc', 'error_clip', '__weakref__')

    def __init__(self, block, name):
        self.block = block
        self.name = name
        self._desc = block.program.desc
        self.error_clip = None

    @property
    def shape(self):
        return self._desc.var_shape(self.block.idx, self.name)

    @shape.setter
    def shape(self, shape):
        self._desc.set_var_shape(self.block.idx, self.name, [int(extent) for extent in shape])

    @property
    def dtype(self):
        return VAR_TYPES[self._desc.var_dtype(self.block.idx, self.name)]

    @dtype.setter
    def dtype(self, dtype):
        self._desc.set_var_dtype(self.block.idx, self.name, int(to_dtype(dtype)))

    @property
    def lod_level(self):
        return self._desc.var_lod_level(self.block.idx, self.name)

    @property
    def type(self):
        return VAR_TYPES[self._desc.var_kind(self.block.idx, self.name)]

    @property
    def persistable(self):
        return self._desc.var_persistable(self.block.idx, self.name)

    @persistable.setter
    def persistable(self, value):
        self._desc.set_var_persistable(self.block.idx, self.name, bool(value))

    @property
    def need_check_feed(self):
        return self._desc.var_need_check_feed(self.block.idx, self.name)

    @property
    def stop_gradient(self):
        return self._facts().stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value):
        self._set_fact('stop_gradient', bool(value))

    @property
    def is_data(self):
        return self._facts().is_data

    @is_data.setter
    def is_data(self, value):
        self._set_fact('is_data', bool(value))

    @property
    def grad_name(self):
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

    def astype(self, dtype):
        from penstock.fluid.layers import cast
        return cast(self, dtype)

    def to_string(self, throw_on_error=True, with_details=False):
        kind = self.type
        what = '%s%s' % (core.dtype_name(self.dtype), list(self.shape)) if kind == VarType.LOD_TENSOR else kind.name
        return '%s %s : %s' % ('param' if isinstance(self, Parameter) else 'persist' if self.persistable else 'var',
                               self.name, what)

    __str__ = to_string

    def __repr__(self):
        return '<%s %s>' % (type(self).__name__, self.name)


class Parameter(Variable):
    """A variable that training changes. What C++ has no field for is shared by all handles of its name."""

    __slots__ = ()

    @property
    def _attrs(self):
        return self.block.program._parameter_attrs.setdefault(self.name, {})

    @property
    def trainable(self):
        return self._facts().trainable

    @trainable.setter
    def trainable(self, value):
        self._set_fact('trainable', bool(value))

    @property
    def is_distributed(self):
        return self._facts().is_distributed

    @is_distributed.setter
    def is_distributed(self, value):
        self._set_fact('is_distributed', bool(value))

    @property
    def optimize_attr(self):
        return {'learning_rate': self._facts().learning_rate}

    @optimize_attr.setter
    def optimize_attr(self, value):
        self._set_fact('learning_rate', float(value['learning_rate']))

    @property
    def regularizer(self):
        return self._attrs.get('regularizer')

    @regularizer.setter
    def regularizer(self, value):
        self._attrs['regularizer'] = value

    @property
    def do_model_average(self):
        return self._attrs.get('do_model_average')

    @do_model_average.setter
    def do_model_average(self, value):
        self._attrs['do_model_average'] = value


class Operator:
    """An op of a block."""

    __slots__ = ('block', '_id', '_desc', '__weakref__')

    def __init__(self, block, op_id):
        self.block = block
        self._id = op_id
        self._desc = block.program.desc

    @property
    def type(self):
        return self._desc.op_type(self.block.idx, self._id)

    @property
    def idx(self):
        """Its position in the block, now."""
        return self._desc.op_position(self.block.idx, self._id)

    @property
    def location(self):
        """Where the user wrote it: 'train.py:12 in model'."""
        return self._desc.op_location(self.block.idx, self._id)

    def _inputs(self):
        return self._desc.op_inputs(self.block.idx, self._id)

    def _outputs(self):
        return self._desc.op_outputs(self.block.idx, self._id)

    def input(self, name):
        return self._inputs().get(name, [])

    def output(self, name):
        return self._outputs().get(name, [])

    @property
    def input_names(self):
        return list(self._inputs())

    @property
    def output_names(self):
        return list(self._outputs())

    @property
    def input_arg_names(self):
        return [name for names in self._inputs().values() for name in names]

    @property
    def output_arg_names(self):
        return [name for names in self._outputs().values() for name in names]

    def all_attrs(self):
        return self._desc.op_attrs(self.block.idx, self._id)

    @property
    def attr_names(self):
        return list(self.all_attrs())

    def has_attr(self, name):
        return name in self.all_attrs()

    def attr(self, name):
        attrs = self.all_attrs()
        if name not in attrs:
            raise ValueError('op %s has no attribute %s; it has %s' % (self.type, name, ', '.join(sorted(attrs))))
        return attrs[name]

    def attr_type(self, name):
        """'INT', 'FLOATS', ... ; None if there is no such attribute."""
        kind = self._desc.op_attr_kind(self.block.idx, self._id, name)
        return None if kind is None else ATTR_KINDS[kind]

    def _set_attr(self, name, value):
        self._desc.set_op_attr(self.block.idx, self._id, name, value)

    def _remove_attr(self, name):
        self._desc.remove_op_attr(self.block.idx, self._id, name)

    def _rename_input(self, old_name, new_name):
        self._desc.rename_in_op(self.block.idx, self._id, old_name, new_name, True, False)

    def _rename_output(self, old_name, new_name):
        self._desc.rename_in_op(self.block.idx, self._id, old_name, new_name, False, True)

    def to_string(self, throw_on_error=True):
        return self._desc.op_to_string(self.block.idx, self._id)

    def __str__(self):
        return self.to_string()

    def __repr__(self):
        return '<Operator %s>' % self.type


class _Vars:
    """Block.vars: the block's own variables by name, in their order. A view, read-only."""

    __slots__ = ('_block',)

    def __init__(self, block):
        self._block = block

    def __getitem__(self, name):
        block = self._block
        if not block.program.desc.has_var(block.idx, name):
            raise KeyError(name)
        return block._var_handle(name)

    def __contains__(self, name):
        return isinstance(name, str) and self._block.program.desc.has_var(self._block.idx, name)

    def __len__(self):
        return len(self.keys())

    def __iter__(self):
        return iter(self.keys())

    def keys(self):
        return self._block.program.desc.vars(self._block.idx)

    def values(self):
        return [self._block._var_handle(name) for name in self.keys()]

    def items(self):
        return [(name, self._block._var_handle(name)) for name in self.keys()]

    def get(self, name, default=None):
        return self[name] if name in self else default


class Block:
    """A block of a program."""

    def __init__(self, program, idx):
        self.program = program
        self.idx = idx
        self._desc = program.desc
        self._op_handles = {}
        self._var_handles = {}

    @property
    def parent_idx(self):
        return self._desc.parent(self.idx)

    @property
    def forward_block_idx(self):
        return self._desc.forward_block(self.idx)

    @property
    def ops(self):
        """Handles of its ops, in order, as they are now."""
        return [self._op_handle(op_id) for op_id in self._desc.ops(self.idx)]

    def _op_handle(self, op_id):
        handle = self._op_handles.get(op_id)
        if handle is None:
            handle = self._op_handles[op_id] = Operator(self, op_id)
        return handle

    @property
    def vars(self):
        return _Vars(self)

    def var(self, name):
        if not isinstance(name, str):
            raise TypeError('a variable is asked for by its name, not by %s' % type(name).__name__)
        if not self._desc.has_var(self.idx, name):
            raise ValueError('var %s is not in this block' % name)
        return self._var_handle(name)

    def has_var(self, name):
        return self._desc.has_var(self.idx, name)

    def _find_var_recursive(self, name):
        owner = self._desc.block_of_var(self.idx, name)
        return None if owner < 0 else self.program.block(owner)._var_handle(name)

    def _var_recursive(self, name):
        var = self._find_var_recursive(name)
        if var is None:
            raise ValueError('Var %s is not found recursively' % name)
        return var

    def _var_handle(self, name):
        handle = self._var_handles.get(name)
        if handle is None:
            kind = Parameter if self._desc.var_facts(self.idx, name).is_parameter else Variable
            handle = self._var_handles[name] = kind(self, name)
        return handle

    def all_parameters(self):
        return list(self.iter_parameters())

    def iter_parameters(self):
        return (var for var in self.vars.values() if isinstance(var, Parameter))

    def create_var(self, name=None, shape=None, dtype=None, type=VarType.LOD_TENSOR, lod_level=None, persistable=None,
                   stop_gradient=False, is_data=False, need_check_feed=False, error_clip=None, capacity=None,
                   initializer=None, belong_to_optimizer=False):
        """Declares a variable, or gives the one of that name if what is asked agrees with it."""
        desc = self._desc
        if name is None:
            name = unique_name.generator('_generated_var')
        if dtype is not None:
            dtype = int(to_dtype(dtype))
        if shape is not None:
            shape = [int(extent) for extent in shape]
        if desc.has_var(self.idx, name):
            var = self._var_handle(name)
            self._require_same(var, type, shape, dtype, lod_level, persistable)
        else:
            desc.create_var(self.idx, name, int(type), dtype, shape, lod_level, bool(persistable), stop_gradient,
                            is_data, need_check_feed)
            self._var_handles.pop(name, None)
            var = self._var_handles[name] = Variable(self, name)
        if error_clip is not None:
            var.error_clip = error_clip
        if initializer is not None:
            initializer(var, self)
        return var

    def _require_same(self, var, kind, shape, dtype, lod_level, persistable):
        """A second declaration must not contradict the first."""
        for what, asked, there in (('type', kind, var.type), ('shape', shape, list(var.shape)),
                                   ('data type', dtype, int(var.dtype)), ('lod_level', lod_level, var.lod_level),
                                   ('persistable', persistable, var.persistable)):
            if asked is not None and asked != there:
                raise ValueError('Variable %s has been created before. The previous %s is %s; the new %s is %s. '
                                 'They are not matched.' % (var.name, what, there, what, asked))

    def create_parameter(self, shape, dtype, name=None, type=VarType.LOD_TENSOR, initializer=None, trainable=True,
                         optimize_attr=None, regularizer=None, do_model_average=None, stop_gradient=False,
                         is_distributed=False, lod_level=0, persistable=True, need_clip=True):
        """Declares a parameter in the global block. With an initializer (in a start-up program) it adds its op, once."""
        if any(extent <= 0 for extent in shape) or len(shape) == 0:
            raise ValueError('Each dimension of parameter %s must be greater than 0, but its shape is %s' %
                             (name, tuple(shape)))
        top = self.program.global_block()
        if name is None:
            name = unique_name.generator('_generated_var')
        desc = self._desc
        known = desc.has_var(0, name)
        if known:
            param = top._var_handle(name)
            self._require_same(param, type, [int(extent) for extent in shape], int(to_dtype(dtype)), None, None)
        else:
            desc.create_var(0, name, int(type), int(to_dtype(dtype)), [int(extent) for extent in shape], lod_level,
                            True, stop_gradient, False, False)
        facts = desc.var_facts(0, name)
        facts.is_parameter = True
        facts.trainable = trainable
        facts.is_distributed = is_distributed
        facts.stop_gradient = stop_gradient
        if optimize_attr is not None:
            facts.learning_rate = optimize_attr['learning_rate']
        desc.set_var_facts(0, name, facts)
        param = top._var_handles.get(name)
        if not isinstance(param, Parameter):
            param = top._var_handles[name] = Parameter(top, name)
        if regularizer is not None:
            param.regularizer = regularizer
        if do_model_average is not None:
            param.do_model_average = do_model_average
        if initializer is not None and not (known and self._is_written(name)):
            initializer(param, self)
        return param

    def _is_written(self, name):
        return any(name in op.output_arg_names for op in self.program.global_block().ops)

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None):
        return self._insert(-1, type, inputs, outputs, attrs)

    def _prepend_op(self, type=None, inputs=None, outputs=None, attrs=None):
        return self._insert(0, type, inputs, outputs, attrs)

    def _insert_op(self, index, type=None, inputs=None, outputs=None, attrs=None):
        return self._insert(index, type, inputs, outputs, attrs)

    def _insert(self, position, type, inputs, outputs, attrs):
        context = self.program._op_context
        context.location = call_site()
        op_id = self._desc.append_op(self.idx, position, type, inputs, outputs, attrs, context)
        handle = self._op_handles[op_id] = Operator(self, op_id)
        return handle

    def _remove_op(self, index):
        op_id = self._desc.ops(self.idx)[index]
        self._desc.remove_op(self.idx, op_id)
        self._op_handles.pop(op_id, None)

    def _remove_var(self, name):
        self._desc.remove_var(self.idx, name)
        self._var_handles.pop(name, None)

    def _rename_var(self, name, new_name):
        if not self._desc.rename_var(self.idx, name, new_name):
            raise ValueError('var %s is not in this block' % name)
        self._var_handles.pop(name, None)
        return self._var_handle(new_name)

    def to_string(self, throw_on_error=True, with_details=False):
        return '\n'.join([var.to_string() for var in self.vars.values()] + [str(op) for op in self.ops])

    __str__ = to_string


class Program:
    """A program. `desc` is the C++ value it stands for; assigning to that makes every handle mean the new one."""

    def __init__(self):
        self._adopt(ProgramDesc())
        self.desc.version = FLUID_VERSION

    def _adopt(self, desc):
        self.desc = desc
        self._blocks = {}
        self._current_block = 0
        self._op_context = OpContext()
        self._op_context.name_scope = _name_scopes.path
        self._parameter_attrs = {}

    @staticmethod
    def _of(desc):
        program = Program.__new__(Program)
        program._adopt(desc)
        return program

    def _rebind(self, desc):
        """Makes this program, and every handle of it, mean `desc`."""
        self.desc.assign(desc)
        for block in self._blocks.values():
            block._var_handles = {
                name: handle for name, handle in block._var_handles.items() if self.desc.has_var(block.idx, name)
            } if block.idx < self.desc.num_blocks() else {}

    # Blocks.
    @property
    def num_blocks(self):
        return self.desc.num_blocks()

    @property
    def blocks(self):
        return [self.block(index) for index in range(self.desc.num_blocks())]

    def block(self, index):
        block = self._blocks.get(index)
        if block is None:
            if not 0 <= index < self.desc.num_blocks():
                raise IndexError('there is no block %d; the program has %d' % (index, self.desc.num_blocks()))
            block = self._blocks[index] = Block(self, index)
        return block

    def global_block(self):
        return self._blocks.get(0) or self.block(0)

    def current_block(self):
        return self.block(self._current_block)

    def _create_block(self, parent_idx=None):
        self._current_block = self.desc.append_block(self._current_block if parent_idx is None else parent_idx)
        return self.current_block()

    def _rollback(self):
        self._current_block = self.current_block().parent_idx

    # What it holds.
    def list_vars(self):
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self):
        return [param for block in self.blocks for param in block.all_parameters()]

    @property
    def random_seed(self):
        return self.desc.random_seed

    @random_seed.setter
    def random_seed(self, seed):
        if not isinstance(seed, int):
            raise ValueError('Program.random_seed must be an integer, not %r' % (seed,))
        self.desc.random_seed = seed

    def global_seed(self, seed=0):
        self.random_seed = seed

    @property
    def _seed(self):
        return self.desc.random_seed

    @property
    def plan(self):
        """The text of the placement plan that made this program; '' if the transpiler did not make it."""
        return self.desc.plan

    # Roles of the ops that are added next.
    @property
    def _op_role(self):
        return self._op_context.role

    @_op_role.setter
    def _op_role(self, role):
        self._op_context.role = int(role)

    op_role = _op_role

    @property
    def _op_role_var(self):
        return self._op_context.role_var

    @_op_role_var.setter
    def _op_role_var(self, names):
        self._op_context.role_var = [getattr(name, 'name', name) for name in names]

    op_role_var = _op_role_var

    @contextlib.contextmanager
    def _role_guard(self, role, role_var=()):
        old = self._op_role, self._op_role_var
        self._op_role, self._op_role_var = role, role_var
        try:
            yield
        finally:
            self._op_role, self._op_role_var = old

    def _optimized_guard(self, param_and_grads):
        return self._role_guard(OpRole.Optimize, param_and_grads)

    def _lr_schedule_guard(self, is_with_opt=False):
        return self._role_guard(OpRole.LRSched | (OpRole.Optimize if is_with_opt else 0))

    def _backward_role_guard(self):
        return self._role_guard(OpRole.Backward)

    # Copies.
    def clone(self, for_test=False):
        """A program of its own with the same content; for_test: without backward and optimizer ops, in test mode."""
        program = Program._of(self.desc.clone_for_test() if for_test else self.desc.copy())
        program._copy_parameter_attrs_from(self)
        return program

    def _copy_parameter_attrs_from(self, other):
        self._parameter_attrs = {name: dict(attrs) for name, attrs in other._parameter_attrs.items()}

    def _prune(self, targets, feeds=()):
        program = Program._of(
            self.desc.prune([getattr(feed, 'name', feed) for feed in feeds],
                            [getattr(target, 'name', target) for target in targets]))
        program._copy_parameter_attrs_from(self)
        return program

    @staticmethod
    def parse_from_string(binary_str):
        return Program._of(ProgramDesc.parse(bytes(binary_str)))

    def to_string(self, throw_on_error=True, with_details=False):
        return self.desc.to_string(with_details)

    def __str__(self):
        return self.to_string()

    def __repr__(self):
        return '<Program of %d blocks, %d ops>' % (self.num_blocks, self.desc.op_count(0))


@contextlib.contextmanager
def name_scope(prefix=None):
    """Ops made inside carry the scope in their attribute op_namescope. It only serves reading programs."""
    if not prefix:
        raise ValueError('prefix cannot be None or empty')
    _name_scopes.enter(prefix)
    _enter_scope()
    try:
        yield
    finally:
        _name_scopes.leave()
        _enter_scope()


def name_scopes():
    """The scopes entered so far, as C++ state: optimizers enter theirs there too."""
    return _name_scopes


def _enter_scope():
    for program in (_main_program, _startup_program):
        program._op_context.name_scope = _name_scopes.path


_main_program = Program()
_startup_program = Program()


def default_main_program():
    return _main_program


def default_startup_program():
    return _startup_program


def switch_main_program(program):
    global _main_program
    old, _main_program = _main_program, program
    _enter_scope()
    return old


def switch_startup_program(program):
    global _startup_program
    old, _startup_program = _startup_program, program
    _enter_scope()
    return old


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """Inside, ops go to these programs. Without a start-up program the one of outside stays."""
    for program in (main_program, startup_program):
        if program is not None and not isinstance(program, Program):
            raise TypeError('program_guard takes Programs, not %s' % type(program).__name__)
    old_main = switch_main_program(main_program)
    old_startup = None if startup_program is None else switch_startup_program(startup_program)
    try:
        yield
    finally:
        switch_main_program(old_main)
        if startup_program is not None:
            switch_startup_program(old_startup)
