"""The slices of all variables and their pservers: t.vars_overview after transpile().

    for one in t.vars_overview.get_distributed_vars_by_ep('10.0.0.1:6174'):
        print(one.origin.name, one.slice.name, one.offset)
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.types import VarDesc as VarDesc
    from penstock._src.transpile.vars_distributed import VarDistributed, VarsDistributed, VarStruct
    from penstock._src.transpile.vars_distributed import overview_of as overview_of

__all__ = ['VarDistributed', 'VarStruct', 'VarsDistributed']

facade.make(__name__)
