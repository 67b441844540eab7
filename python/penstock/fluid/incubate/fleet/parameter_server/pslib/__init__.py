"""Fluid's fleet over pslib, a library that is not public: every name raises an error that says so."""


def __getattr__(name):
    if name.startswith('__'):
        raise AttributeError(name)
    raise ImportError('fleet.parameter_server.pslib needs pslib, a library of Baidu that is not public; '
                      'fleet.parameter_server.distribute_transpiler has the same interface')
