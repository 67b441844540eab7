"""Initializers: each adds the op that sets a variable's initial value to a startup program."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.parameters.initializer import MSRA as MSRA, VALUES_MAX as VALUES_MAX, Bilinear as Bilinear
    from penstock._src.parameters.initializer import BilinearInitializer as BilinearInitializer, Constant as Constant
    from penstock._src.parameters.initializer import ConstantInitializer as ConstantInitializer
    from penstock._src.parameters.initializer import Initializer as Initializer, MSRAInitializer as MSRAInitializer
    from penstock._src.parameters.initializer import Normal as Normal, NormalInitializer as NormalInitializer
    from penstock._src.parameters.initializer import NumpyArrayInitializer as NumpyArrayInitializer
    from penstock._src.parameters.initializer import TruncatedNormal as TruncatedNormal
    from penstock._src.parameters.initializer import TruncatedNormalInitializer as TruncatedNormalInitializer
    from penstock._src.parameters.initializer import Uniform as Uniform, UniformInitializer as UniformInitializer
    from penstock._src.parameters.initializer import Xavier as Xavier, XavierInitializer as XavierInitializer
    from penstock._src.parameters.initializer import init_on_cpu as init_on_cpu
    from penstock.fluid import unique_name as unique_name

__all__ = [
    'Bilinear', 'BilinearInitializer', 'Constant', 'ConstantInitializer', 'MSRA', 'MSRAInitializer', 'Normal',
    'NormalInitializer', 'NumpyArrayInitializer', 'TruncatedNormal', 'TruncatedNormalInitializer', 'Uniform',
    'UniformInitializer', 'Xavier', 'XavierInitializer',
]

facade.make(__name__)
