"""The layers: each generates a name and adds its ops, in Fluid's order, to the default main program."""
