"""Models of PyTorch on several workers: how it works."""
