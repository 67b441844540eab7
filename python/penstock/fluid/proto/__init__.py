"""Fluid's protobuf messages of ops, as scripts build and compare them."""
