"""The parts that all kinds of fleets share: roles and the interface."""
