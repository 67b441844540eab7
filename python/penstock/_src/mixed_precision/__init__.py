"""Training with float16."""
