"""What all parts use: errors, log lines, the environment, files."""
