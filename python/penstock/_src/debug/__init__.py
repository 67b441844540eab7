"""Drawing and timing programs."""
