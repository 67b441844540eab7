"""ServerRuntimeConfig: the numbers of threads of Fluid's servers."""

from __future__ import annotations

from penstock._src.base import environment


class ServerRuntimeConfig:
    """Reads FLAGS_rpc_send_thread_num, FLAGS_rpc_get_thread_num and FLAGS_rpc_prefetch_thread_num (12). They have no
    effect: Penstock's pservers run the queues of all chunks on one pool with a thread per core.

    Example:
        from penstock.fluid.transpiler.distribute_transpiler import ServerRuntimeConfig
        assert ServerRuntimeConfig()._rpc_send_thread_num == 12
    """

    def __init__(self) -> None:
        for name in ("rpc_send_thread_num", "rpc_get_thread_num", "rpc_prefetch_thread_num"):
            setattr(self, "_" + name, environment.value("FLAGS_" + name, 12))
