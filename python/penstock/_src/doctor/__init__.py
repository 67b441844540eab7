"""What this machine and this installation offer to a job."""
