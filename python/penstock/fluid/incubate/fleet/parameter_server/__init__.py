"""Fleets with pservers."""

from penstock.fluid.incubate.fleet.parameter_server import version
