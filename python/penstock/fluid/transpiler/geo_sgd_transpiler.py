"""GeoSgdTranspiler: trainers optimize by themselves and exchange what has changed through pservers.

    t = fluid.transpiler.GeoSgdTranspiler(config)
    t.transpile(trainer_id, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)

Both handles mean the trainer's programs as soon as transpile() returns.
"""

from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler

__all__ = ['GeoSgdTranspiler']


class GeoSgdTranspiler(DistributeTranspiler):
    """As DistributeTranspiler. There is no synchronous geo-SGD, so sync_mode is not asked for."""

    _kind = 'geo'

    def transpile(self, trainer_id, program=None, pservers='127.0.0.1:6174', trainers=1, sync_mode=False,
                  startup_program=None, current_endpoint='127.0.0.1:6174'):
        super().transpile(trainer_id, program, pservers, trainers, None, startup_program, current_endpoint)
        self.vars_info = {param: _info_of(sparse, pieces)
                          for param, _, _, _, sparse, _, pieces in self._roles.params}

    def _get_vars_info(self):
        """What a communicator has to know of each parameter: its pieces, their rows and servers."""
        self._made()
        return self.vars_info


def _info_of(sparse, pieces):
    return {
        'var_names': [name for name, _, _, _ in pieces],
        'sections': [str(end - begin) for _, begin, end, _ in pieces],
        'epmap': [address for _, _, _, address in pieces],
        'is_sparse': [str(sparse)],
    }
