"""Names of Fluid 1.8 that are not built; their use raises an error that says so. A test checks that the lists are
exact.

    __getattr__ = getattr_of(__name__)    # at the end of a module
"""

import sys

from penstock._errors import suggestion


def list_of(module):
    """Returns the key in NAMES for a module such as 'penstock.fluid.layers.io'."""
    name = module.partition('.')[2]
    return 'fluid.layers' if name.startswith('fluid.layers.') else name


LAYERS = 'penstock.fluid.layers'


def getattr_of(module):
    """Returns the __getattr__ of a module, which Python calls for missing attributes.

    Fluid's scripts reach a layer through the module that defines it in Fluid, such as fluid.layers.nn.reduce_sum, so
    every module of layers provides every layer.
    """

    def missing(name):
        if module.startswith(LAYERS + '.') and not name.startswith('__'):
            layers = vars(sys.modules[LAYERS])
            if name in layers:
                return layers[name]
        message = '%s has no %s' % (module, name)
        if not name.startswith('_'):
            listed = NAMES.get(list_of(module), ())
            if name in listed:
                message = '%s.%s is part of Fluid 1.8, but not built yet' % (module, name)
            else:
                there = [known for known in vars(sys.modules[module]) if not known.startswith('_')]
                message += suggestion(name, there + list(listed), most=3)
        raise AttributeError(message)

    return missing


def _names(lists):
    return {module: frozenset(text.split()) for module, text in lists.items()}


# One name per line where many names are added at a time.
NAMES = _names({
    'fluid': '''
    ''',
    'fluid.framework': '''
    ''',
})
