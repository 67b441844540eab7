"""Training a program: backward, clipping, optimizers."""
