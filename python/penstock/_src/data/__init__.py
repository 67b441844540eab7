"""Readers, loaders, and the variables that they feed."""
