"""GeoSgdTranspiler: trainers update their own parameters and exchange the changes through pservers.

    t = fluid.transpiler.GeoSgdTranspiler(config)
    t.transpile(trainer_id, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)

transpile() replaces the contents of both programs by the trainer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.transpile.distribute_transpiler import DistributeTranspiler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.program import Program


class GeoSgdTranspiler(DistributeTranspiler):
    """Makes the programs of geo-SGD: trainers update their own parameters and exchange the changes through pservers.

    `transpile` replaces the contents of both programs by the trainer's.

    Args:
        config (DistributeTranspilerConfig | None): the settings of the transpiler; geo_sgd_need_push_nums is the number
            of steps between two exchanges.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        t = fluid.transpiler.GeoSgdTranspiler()
        t.transpile(trainer_id=0, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)
    """

    _kind = "geo"

    def transpile(  # type: ignore[override]  # as in Fluid
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: Sequence[str] | str = "127.0.0.1:6174",
        trainers: int = 1,
        sync_mode: bool = False,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Makes the programs of all roles.

        Args:
            trainer_id (int): this trainer.
            program (Program | None): the main program, after minimize; None: the default one.
            pservers (str | list[str]): addresses of the pservers.
            trainers (int): number of trainers.
            sync_mode (bool): accepted for Fluid's scripts: geo-SGD is asynchronous.
            startup_program (Program | None): the startup program; None: the default one.
            current_endpoint (str): accepted for Fluid's scripts.

        Raises:
            penstock.ProgramError: the program or the configuration is wrong.
        """
        super().transpile(trainer_id, program, pservers, trainers, None, startup_program, current_endpoint)
        self.trainer_startup_program = self.startup_program
        self.vars_info = {param: _info_of(sparse, pieces) for param, _, _, _, sparse, _, pieces in self._made().params}

    def _get_vars_info(self) -> dict[str, dict[str, list[str]]]:
        """Returns the facts of each parameter that a communicator needs: its pieces, their rows and servers."""
        self._made()
        return self.vars_info


def _info_of(sparse: bool, pieces: list[tuple[str, int, int, str]]) -> dict[str, list[str]]:
    return {
        "var_names": [name for name, _, _, _ in pieces],
        "sections": [str(end - begin) for _, begin, end, _ in pieces],
        "epmap": [address for _, _, _, address in pieces],
        "is_sparse": [str(sparse)],
    }
