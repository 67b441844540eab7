"""Datasets of files, and threads that read ahead."""
