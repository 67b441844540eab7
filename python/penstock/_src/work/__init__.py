"""Flexible shares of the work: slow workers hand examples over to fast ones."""
