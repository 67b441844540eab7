"""Where the processes of a job are started: on this machine, over ssh, or by a scheduler."""
