"""Fluid's fleet based on pslib, a library that is not public: any use raises an error that says so."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        "fleet.parameter_server.pslib needs pslib, a library of Baidu that is not public; "
        "fleet.parameter_server.distribute_transpiler has the same interface"
    )
