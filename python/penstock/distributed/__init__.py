"""Starting and describing jobs of several processes."""
