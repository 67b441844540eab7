"""Fluid's protobuf messages of ops, as scripts build and compare them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock.fluid.proto import framework_pb2 as framework_pb2

__all__ = []

facade.make(__name__)
