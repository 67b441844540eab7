"""Operator: runs single ops in a scope, as Fluid's op tests do."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.single_op import DynamicRecurrentOp as DynamicRecurrentOp, OpDescCreationMethod
    from penstock._src.executor.single_op import Operator, OperatorFactory, get_all_op_protos
    from penstock.fluid.proto import framework_pb2 as framework_pb2

__all__ = ['OpDescCreationMethod', 'Operator', 'OperatorFactory', 'get_all_op_protos']

facade.make(__name__)
