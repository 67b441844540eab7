"""The launcher of jobs: `python -m penstock.distributed.launch`."""
