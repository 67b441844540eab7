"""Fluid's classes for jobs of equal ranks: each makes the given programs those of one rank.

    GradAllReduce(nrings=2).transpile(startup, main, rank=0, endpoints='10.0.0.1:6170,10.0.0.2:6170',
                                      current_endpoint='10.0.0.1:6170', wait_port=True)

DistributeTranspiler with config.mode = 'collective' is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir import framework
from penstock._src.transpile.config import DistributeTranspilerConfig, check_count, check_flag
from penstock._src.transpile.distribute_transpiler import DistributeTranspiler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.program import Program


class Collective:
    """Base of the classes below. `nrings` rings are used in turn, so that exchanges overlap."""

    collective_mode: str | None = None

    def __init__(self, nrings: int) -> None:
        self.nrings = check_count("nrings", nrings, 1)
        self.endpoints: list[str] | None = None
        self.current_endpoint: str | None = None
        self.nranks: int | None = None
        self.rank: int | None = None
        self.startup_program: Program | None = None
        self.main_program: Program | None = None

    def transpile(
        self,
        startup_program: Program | None,
        main_program: Program | None,
        rank: int,
        endpoints: Sequence[str] | str,
        current_endpoint: str,
        wait_port: bool,
    ) -> None:
        """Makes both programs those of a rank.

        Args:
            startup_program (Program | None): the startup program; None: the default one.
            main_program (Program | None): the main program, after minimize; None: the default one.
            rank (int): the rank.
            endpoints (str | list[str]): addresses of all ranks.
            current_endpoint (str): address of this rank.
            wait_port (bool): accepted for Fluid's scripts; ranks wait for each other when the startup program runs.

        Raises:
            penstock.ProgramError: the program or the addresses are wrong.
        """
        main = framework.default_main_program() if main_program is None else main_program
        startup = framework.default_startup_program() if startup_program is None else startup_program
        transpiler = DistributeTranspiler(self._config())
        transpiler.transpile(
            rank, program=main, trainers=endpoints, startup_program=startup, current_endpoint=current_endpoint
        )
        self.startup_program, self.main_program = startup, main
        self.endpoints, self.current_endpoint = transpiler.trainer_endpoints, current_endpoint
        self.nranks, self.rank, self.wait_port = len(transpiler.trainer_endpoints), rank, wait_port

    def _config(self) -> DistributeTranspilerConfig:
        config = DistributeTranspilerConfig()
        config.mode = "collective"
        config.collective_mode = self.collective_mode
        config.nccl_comm_num = self.nrings
        return config


class GradAllReduce(Collective):
    """Makes programs of ranks that all-reduce their gradients in every step.

    Args:
        nrings (int): the number of rings, which are used in turn, so that exchanges overlap.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        endpoints = '10.0.0.1:6170,10.0.0.2:6170'
        fluid.transpiler.collective.GradAllReduce().transpile(
            fluid.default_startup_program(), fluid.default_main_program(), rank=0, endpoints=endpoints,
            current_endpoint='10.0.0.1:6170', wait_port=True)
    """

    collective_mode = "grad_allreduce"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)


class LocalSGD(Collective):
    """Makes programs of ranks that train independently and average their parameters after every `k_steps` steps.

    Args:
        nrings (int): the number of rings, which are used in turn.
        k_steps (int): steps between two averages; with `adaptive`, before the first one.
        adaptive (bool): change the number of steps; see DistributeTranspilerConfig.local_sgd_adaptive.

    Raises:
        penstock.ProgramError: a number is below 1, or `adaptive` is not a bool.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        fluid.transpiler.collective.LocalSGD(k_steps=4).transpile(
            fluid.default_startup_program(), fluid.default_main_program(), rank=0,
            endpoints='10.0.0.1:6170,10.0.0.2:6170', current_endpoint='10.0.0.1:6170', wait_port=True)
    """

    collective_mode = "local_sgd"
    snapshot_key = "@SNAPSHOT"

    def __init__(self, nrings: int = 2, k_steps: int = 1, adaptive: bool = False) -> None:
        super().__init__(nrings)
        self.k_steps = check_count("k_steps", k_steps, 1)
        self.adaptive = check_flag("adaptive", adaptive)

    def snapshot_name(self, param_name: str) -> str:
        """Returns the name of the variable that keeps the last average of a parameter.

        Args:
            param_name (str): the parameter.

        Returns:
            str: the name.
        """
        return param_name + self.snapshot_key

    def _config(self) -> DistributeTranspilerConfig:
        config = super()._config()
        config.local_sgd_k_steps, config.local_sgd_adaptive = self.k_steps, self.adaptive
        return config


class SingleProcessMultiThread(GradAllReduce):
    """Makes the program of one process whose devices sum their gradients.

    Example:
        transpiler = fluid.transpiler.collective.SingleProcessMultiThread()
    """

    collective_mode = "single_process_multi_thread"

    def __init__(self) -> None:
        super().__init__(1)
