"""Which slice of which variable is where: t.vars_overview after transpile().

    for one in t.vars_overview.get_distributed_vars_by_ep('10.0.0.1:6174'):
        print(one.origin.name, one.slice.name, one.offset)
"""

from penstock.fluid.core import VarDesc, to_dtype

__all__ = ['VarDistributed', 'VarStruct', 'VarsDistributed']


class VarStruct:
    """What is known of a variable without its program."""

    def __init__(self, name, shape, dtype, type, lod_level, persistable):
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        self.type = type
        self.lod_level = lod_level
        self.persistable = persistable

    @classmethod
    def of_piece(cls, name, shape, dtype, sparse):
        """A slice, as the plan has it; `dtype` is the plan's word for it."""
        kind = VarDesc.VarType.SELECTED_ROWS if sparse else VarDesc.VarType.LOD_TENSOR
        return cls(name, shape, to_dtype(_DTYPES.get(dtype, dtype)), kind, 0, False)

    def __repr__(self):
        return 'VarStruct(%r, shape=%s)' % (self.name, list(self.shape))


# The plan's words for element types, where they are not numpy's.
_DTYPES = {'f16': 'float16', 'f32': 'float32', 'f64': 'float64', 'i8': 'int8', 'i16': 'int16', 'i32': 'int32',
           'i64': 'int64', 'u8': 'uint8'}


class VarDistributed:
    """One slice of one variable, and where it is."""

    def __init__(self, origin_var, slice_var, is_slice=None, block_id=None, offset=None, vtype=None, endpoint=None):
        self.origin = origin_var
        self.slice = slice_var
        self.is_slice = is_slice      # whether it is less than the whole
        self.block_id = block_id      # the number of the slice
        self.offset = offset          # elements of the whole before it
        self.vtype = vtype            # 'Param', 'RemotePrefetch' or 'Optimizer'
        self.endpoint = endpoint

    @staticmethod
    def equal(var1, var2):
        """Whether both are the same variable to all that is known of them."""
        return all(getattr(var1, field) == getattr(var2, field)
                   for field in ('name', 'type', 'shape', 'dtype', 'lod_level', 'persistable'))

    def __str__(self):
        origin, piece = ('%s : %s%s' % (var.name, var.dtype.name, list(var.shape)) for var in (self.origin, self.slice))
        return '%s -> %s, is_slice=%s, block_id=%s, offset=%s, vtype=%s, endpoint=%s' % (
            origin, piece, self.is_slice, self.block_id, self.offset, self.vtype, self.endpoint)


class VarsDistributed:
    """All slices of a transpile, in the order of the plan."""

    def __init__(self):
        self.distributed_vars = []

    def add_distributed_var(self, origin_var, slice_var, is_slice=None, block_id=None, offset=None, vtype=None,
                            endpoint=None):
        self.distributed_vars.append(VarDistributed(origin_var, slice_var, is_slice, block_id, offset, vtype, endpoint))

    @staticmethod
    def equal(var1, var2):
        return VarDistributed.equal(var1, var2)

    def get_distributed_var_by_slice(self, var_name):
        """The one whose slice is called so, or None."""
        return next((one for one in self.distributed_vars if one.slice.name == var_name), None)

    def get_distributed_var_by_origin_and_ep(self, origin_var_name, endpoint):
        """The first slice of a variable that is there, or None."""
        return next((one for one in self.distributed_vars
                     if one.origin.name == origin_var_name and one.endpoint == endpoint), None)

    def get_distributed_vars_by_vtypes(self, vtypes, groupby=False):
        """Those of these types; with `groupby`, {name of the whole: [its slices]}."""
        found = [one for one in self.distributed_vars if one.vtype in vtypes]
        if not groupby:
            return found
        groups = {}
        for one in found:
            groups.setdefault(one.origin.name, []).append(one)
        return groups

    def get_distributed_vars_by_ep(self, endpoint, vtype=None):
        """Those of one pserver."""
        return [one for one in self.distributed_vars
                if one.endpoint == endpoint and (vtype is None or one.vtype == vtype)]

    def overview(self):
        """A line for each, as text."""
        return '\n'.join(str(one) for one in self.distributed_vars)


def overview_of(params):
    """From the plan's parameters, as _RoleSet.params gives them."""
    overview = VarsDistributed()
    for name, _, dtype, shape, _, prefetched, slices in params:
        whole = VarStruct.of_piece(name, shape, dtype, False)
        whole.persistable = True
        width = 1
        for extent in shape[1:]:
            width *= extent
        for number, (piece, row_begin, row_end, endpoint) in enumerate(slices):
            part = VarStruct.of_piece(piece, [row_end - row_begin] + shape[1:] if shape else [], dtype, False)
            part.persistable = True
            overview.add_distributed_var(origin_var=whole, slice_var=part, is_slice=len(slices) > 1, block_id=number,
                                         offset=row_begin * width,
                                         vtype='RemotePrefetch' if prefetched else 'Param', endpoint=endpoint)
    return overview
