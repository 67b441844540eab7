"""Where ops are created: the name scopes that have been entered, and the device that device_guard has set."""

from penstock._penstock import NameScopes

_name_scopes = NameScopes()
_device = ""


def name_scopes():
    """Returns the entered name scopes, which are C++ state, because optimizers enter scopes there too."""
    return _name_scopes


def switch_device(device):
    """Sets the device of the ops that are created from now on; returns the one before it."""
    global _device
    outer, _device = _device, device
    return outer


def fill_context(context):
    """Sets the name scope and the device of a program's OpContext."""
    context.name_scope = _name_scopes.path
    context.device = _device
