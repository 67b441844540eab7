"""Initializers: each adds the op that sets a variable's initial value to a startup program."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.parameters.initializer import MSRA, VALUES_MAX as VALUES_MAX, Bilinear, BilinearInitializer
    from penstock._src.parameters.initializer import Constant, ConstantInitializer, Initializer as Initializer
    from penstock._src.parameters.initializer import MSRAInitializer, Normal, NormalInitializer
    from penstock._src.parameters.initializer import NumpyArrayInitializer, TruncatedNormal
    from penstock._src.parameters.initializer import TruncatedNormalInitializer, Uniform, UniformInitializer, Xavier
    from penstock._src.parameters.initializer import XavierInitializer, init_on_cpu as init_on_cpu
    from penstock.fluid import unique_name as unique_name

__all__ = [
    'Bilinear', 'BilinearInitializer', 'Constant', 'ConstantInitializer', 'MSRA', 'MSRAInitializer', 'Normal',
    'NormalInitializer', 'NumpyArrayInitializer', 'TruncatedNormal', 'TruncatedNormalInitializer', 'Uniform',
    'UniformInitializer', 'Xavier', 'XavierInitializer',
]

facade.make(__name__)
