"""Starts the pservers and trainers of a job on this machine, watches them, and explains the first failure.

    python -m penstock.distributed.launch --server_num 2 --worker_num 2 train.py --epochs 3
    PADDLE_NUM_TRAINERS=2 python -m penstock.distributed.launch train.py --gpus 2 --log_dir mylog

Every process runs the same script, which reads its role from the environment (README.md of this folder lists the
variables). The flow: options.py reads the command line, topology.py finds the machines, job.py makes roles with ports
and environments, supervisor.py runs them to their end.
"""
