"""Fluid's fleet based on pslib, a library that is not public: any use raises an error that says so."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

__all__ = []

facade.make(__name__)
