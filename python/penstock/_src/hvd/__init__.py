"""Horovod's interface."""
