"""What a transpile says of the variables it distributed."""

from penstock.fluid.transpiler.details.vars_distributed import VarDistributed, VarsDistributed, VarStruct

__all__ = ['VarDistributed', 'VarStruct', 'VarsDistributed']
