"""paddle.distributed.cloud_utils: the machines of a job from the variables of Fluid's cloud."""

from paddle.distributed.utils import get_cluster, logger
from penstock._src.base import environment


def _required(name):
    value = environment.text(name, None)
    assert value is not None, f"{name} should not be None"
    return value


def _number(name):
    _required(name)
    return environment.value(name)


def get_cloud_cluster(args_node_ips, args_node_ip, args_port, selected_gpus):
    """Returns (Cluster, the Pod of this machine), from PADDLE_TRAINERS, POD_IP, PADDLE_TRAINER_ID, TRAINER_PORTS_NUM,
    and DISTRIBUTED_TRAINER_ENDPOINTS or PADDLE_PORT; the arguments are those of the command line."""
    nodes, here = _required("PADDLE_TRAINERS").split(","), _required("POD_IP")
    node_rank, ports_num = _number("PADDLE_TRAINER_ID"), _number("TRAINER_PORTS_NUM")
    for given, used, name in ((args_node_ip, here, "POD_IP"), (args_node_ips, ",".join(nodes), "PADDLE_TRAINERS")):
        if given not in ("127.0.0.1", used):
            logger.warning("%s=%s of the cloud takes the place of %s", name, used, given)
    listed = environment.text("DISTRIBUTED_TRAINER_ENDPOINTS", None)
    if listed is None:
        port = args_port
        cloud_port = environment.value("PADDLE_PORT")
        if len(nodes) > 1 and cloud_port is not None and ports_num >= len(selected_gpus):
            port = cloud_port
        port = 6170 if port is None else port
        addresses = [[f"{node}:{port + i}" for i in range(len(selected_gpus))] for node in nodes]
    else:
        listed = listed.split(",")
        assert len(nodes) * ports_num == len(listed), (
            f"{len(nodes)} machines with {ports_num} ports each, but {len(listed)} addresses"
        )
        addresses = [listed[i * ports_num : (i + 1) * ports_num] for i in range(len(nodes))]
    cluster, _ = get_cluster(nodes, here, addresses, selected_gpus)
    return cluster, cluster.pods[node_rank]


def get_trainers_num():
    """Returns PADDLE_TRAINERS_NUM, 1 by default."""
    return environment.value("PADDLE_TRAINERS_NUM", 1)
