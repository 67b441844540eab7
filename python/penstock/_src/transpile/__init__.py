"""Programs of one machine rewritten for the processes of a job."""
