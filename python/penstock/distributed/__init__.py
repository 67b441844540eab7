"""Starts and describes jobs of several processes."""
