"""Fleets with parameter servers."""

version = 'penstock'
