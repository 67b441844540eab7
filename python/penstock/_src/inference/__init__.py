"""Fluid's native predictor."""
