"""Initializers: each adds the op that sets a variable's initial value to a startup program."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade
from penstock._src.parameters.initializer import (
    MSRA as MSRA, VALUES_MAX as VALUES_MAX, Bilinear as Bilinear, BilinearInitializer as BilinearInitializer,
    Constant as Constant, ConstantInitializer as ConstantInitializer, Initializer as Initializer,
    MSRAInitializer as MSRAInitializer, Normal as Normal, NormalInitializer as NormalInitializer,
    NumpyArrayInitializer as NumpyArrayInitializer, TruncatedNormal as TruncatedNormal,
    TruncatedNormalInitializer as TruncatedNormalInitializer, Uniform as Uniform,
    UniformInitializer as UniformInitializer, Xavier as Xavier, XavierInitializer as XavierInitializer,
    init_on_cpu as init_on_cpu,
)
from penstock.fluid import unique_name as unique_name

__all__ = [
    'Bilinear', 'BilinearInitializer', 'Constant', 'ConstantInitializer', 'MSRA', 'MSRAInitializer', 'Normal',
    'NormalInitializer', 'NumpyArrayInitializer', 'TruncatedNormal', 'TruncatedNormalInitializer', 'Uniform',
    'UniformInitializer', 'Xavier', 'XavierInitializer',
]

facade.make(__name__, elsewhere=('unique_name',))
