"""The names of imperative mode, whose use is an error."""
