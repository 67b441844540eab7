"""ServerRuntimeConfig: how many threads Fluid's servers have for what."""

import os

__all__ = ['ServerRuntimeConfig']


class ServerRuntimeConfig:
    """Reads FLAGS_rpc_send_thread_num, FLAGS_rpc_get_thread_num and FLAGS_rpc_prefetch_thread_num (12). They make no
    difference here: our servers run the queues of all chunks on one pool of as many threads as there are cores.

    Example:
        from penstock.fluid.transpiler.distribute_transpiler import ServerRuntimeConfig
        assert ServerRuntimeConfig()._rpc_send_thread_num == 12
    """

    def __init__(self):
        for name in ('rpc_send_thread_num', 'rpc_get_thread_num', 'rpc_prefetch_thread_num'):
            setattr(self, '_' + name, int(os.environ.get('FLAGS_' + name, '12')))
