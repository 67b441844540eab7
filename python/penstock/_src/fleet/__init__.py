"""Fleet: one script for all roles of a job."""
