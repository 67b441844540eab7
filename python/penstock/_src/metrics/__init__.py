"""Metrics, in Python and in programs."""
