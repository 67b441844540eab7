"""The supported part of Fluid's contrib."""
