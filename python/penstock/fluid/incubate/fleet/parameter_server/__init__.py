"""Fleets with pservers."""

version = 'penstock'
