"""Starts the processes of a job: paddle.distributed.launch and launch_ps."""
