"""DistributeTranspiler: Fluid's interface to the transpiler, over one pure C++ call.

Fluid's scripts run default_startup_program() after transpile(), and expect get_trainer_program() to return the program
that they passed. So transpile() takes a snapshot of both programs and replaces the contents of the startup program by
the trainer's; get_trainer_program() replaces those of the main program. Getters may be called in any order, any number
of times. A second transpile() of a program that was not changed since the first starts from the snapshot.

Several main programs with one startup program train in one job (job_programs.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import program_error
from penstock._src.executor.remote_tables import note_tables
from penstock._src.ir import framework
from penstock._src.ir.program import Program
from penstock._src.transpile import job_programs, launched, vars_distributed
from penstock._src.transpile.config import MOST_ELEMENTS, DistributeTranspilerConfig, check_count
from penstock._src.transpile.native_config import native_config
from penstock._src.transpile.role_set import native_roles
from penstock._src.transpile.server_config import ServerRuntimeConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import ProgramDesc, TranspileConfig, _RoleSet
    from penstock._src.transpile.ps_dispatcher import PSDispatcher


class DistributeTranspiler:
    """Rewrites the default programs, or given ones, into those of a role of a distributed job.

    Getters may be called in any order, any number of times. A second `transpile` of a program that was not changed
    since the first starts from the original.

    Several programs, such as a GAN's two, train in one job on one set of pservers: each has a transpiler, and all have
    one startup program (or name each other by `beside`). Build all of them before the first `transpile`, and call
    `transpile` for all before the getters. Each parameter is updated by one program; the others read the value that
    the trainer received last. The startup program, and the programs of a pserver, then serve all programs. Every
    trainer runs the programs in the same order. Modes: sync, and async without a communicator.

    Args:
        config (DistributeTranspilerConfig | None): the settings of the transpiler.

    Raises:
        TypeError: `config` has another type.
        penstock.ProgramError: a field of `config` has a wrong value.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        t = fluid.DistributeTranspiler()
        t.transpile(trainer_id=0, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)
        trainer = t.get_trainer_program()
        main, startup = t.get_pserver_programs('10.0.0.1:6174')
    """

    _together: Sequence[DistributeTranspiler] = ()  # those of all programs of the job, itself included
    _served: dict[str, DistributeTranspiler]  # {pserver: the one whose program has served all programs of the job}
    origin_program: Program
    startup_program: Program

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = DistributeTranspilerConfig() if config is None else config
        if not isinstance(self.config, DistributeTranspilerConfig):
            raise TypeError(f"config must be a DistributeTranspilerConfig, not {type(config).__name__}")
        self.config.validate()
        # Fluid's constructor requires this minimum; for smaller slices set the field afterwards.
        check_count(
            "min_block_size", self.config.min_block_size, DistributeTranspilerConfig.min_block_size, MOST_ELEMENTS
        )
        self._roles: _RoleSet | None = None

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: Sequence[str] | str = "127.0.0.1:6174",
        trainers: Sequence[str] | int | str = 1,
        sync_mode: bool | None = None,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
        slice_var_up: bool | None = None,
        split_method: type[PSDispatcher] | None = None,
        beside: DistributeTranspiler | Sequence[DistributeTranspiler] | None = None,
    ) -> None:
        """Makes the programs of all roles, and replaces the contents of the startup program by the trainer's.

        Args:
            trainer_id (int): this trainer.
            program (Program | None): the main program, after minimize; None: the default one.
            pservers (str | list[str]): addresses of the pservers.
            trainers (int | str | list[str]): number of trainers; for modes without pservers their addresses.
            sync_mode (bool | None): takes precedence over a config field that was not set; if both are set, they must
                be equal.
            startup_program (Program | None): the startup program; None: the default one.
            current_endpoint (str): this trainer's address, for modes without pservers.
            slice_var_up (bool | None): as `sync_mode`.
            split_method (type | None): as `sync_mode`; a subclass of PSDispatcher.
            beside (DistributeTranspiler | list[DistributeTranspiler] | None): the transpilers of the other programs of
                the job; None: those whose programs have the same startup program, trainer_id and pservers, and other
                parameters.

        Raises:
            TypeError: an argument has the wrong type.
            penstock.ProgramError: the program or the configuration is wrong; two programs of the job update one
                parameter (E-plan-programs).
        """
        program = framework.default_main_program() if program is None else program
        startup = framework.default_startup_program() if startup_program is None else startup_program
        for given in (program, startup):
            if not isinstance(given, Program):
                raise TypeError(f"transpile takes Programs, not {type(given).__name__}")
        self._check_loss_scaling(program)
        source_main, source_startup = job_programs.source_of(program), job_programs.source_of(startup)
        config = native_config(
            self.config, self._kind, trainer_id, pservers, trainers, sync_mode, slice_var_up, split_method
        )
        if config.trainer_addresses and self._kind != "pserver":
            if not isinstance(current_endpoint, str):
                raise program_error(
                    "E-plan-config", f"plan: current_endpoint must be this trainer's address, not {current_endpoint!r}"
                )
            config.current_addresses = [current_endpoint]
        with launched.compared(config.pservers):
            roles = native_roles(source_main, source_startup, config)
            others = job_programs.others_of(self, program, startup, source_startup, roles, config, beside)
            members = [*others, self]
            sources = [
                (
                    one._sources[0],
                    source_startup if one.startup_program is startup else one._sources[1],
                    one._sources[2],
                )
                for one in others
            ]
            sources.append((source_main, source_startup, config))
            sets = job_programs.made_together(sources) if others else [roles]
        self.source_main, self.source_startup = Program._of(source_main), Program._of(source_startup)
        self.trainer_id, self.trainer_num = trainer_id, config.trainers
        self.pserver_endpoints, self.trainer_endpoints = config.pservers, config.trainer_addresses
        self.origin_program, self.startup_program = program, startup
        self._current_endpoint = current_endpoint
        self._take(sources[-1], sets[-1], members)
        # If pservers optimize, Fluid changes the main program only in get_trainer_program().
        job_programs.make_mean(program, source_main if self._kind == "pserver" else self._trainer_main, source_main)
        for one, its_sources, made in zip(others, sources, sets):
            is_trainers = one.origin_program.desc.content_id == one._trainer_main.content_id
            one._take(its_sources, made, members)
            if is_trainers:
                job_programs.make_mean(one.origin_program, one._trainer_main, one._sources[0])
        job_programs.share_startups(members)
        served: dict[str, DistributeTranspiler] = {}
        for one in members:
            one._served = served
            one._leave_marks(one._current_endpoint)

    def _take(
        self,
        sources: tuple[ProgramDesc, ProgramDesc, TranspileConfig],
        roles: _RoleSet,
        members: list[DistributeTranspiler],
    ) -> None:
        """Keeps the roles that were made from (main, startup, settings), and the transpilers of all programs of the
        job."""
        self._sources, self._roles, self._together = sources, roles, members
        self.vars_overview = vars_distributed.overview_of(roles.params)
        self._pservers = {address: (main, start) for address, main, start in roles.pservers}
        _, self._trainer_main, self._trainer_startup = roles.trainers[0]

    def _check_loss_scaling(self, program: Program) -> None:
        if self._kind == "pserver" and getattr(program, "_scales_loss_dynamically", False):
            raise program_error(
                "E-plan-loss-scaling",
                "plan: the program adapts the scaling of its loss to whether "
                "all gradients are finite, which pservers that update single parameters do not know; "
                "decorate the optimizer with use_dynamic_loss_scaling=False, or train on ranks",
            )

    def _leave_marks(self, current_endpoint: str) -> None:
        """Sets the attributes that Fluid's users and runtime expect on the programs."""
        program, given = self.origin_program, self.config
        if self._kind == "nccl2":
            program._trainers_endpoints = list(self.trainer_endpoints)
            program._trainer_id = self.trainer_id
            program._nccl_comm_num = given.nccl_comm_num
            program._use_hierarchical_allreduce = given.use_hierarchical_allreduce
            program._hierarchical_allreduce_inter_nranks = given.hierarchical_allreduce_inter_nranks
        elif self._kind == "collective":
            program._origin_program, self.startup_program._origin_program = self.source_main, self.source_startup
        else:
            program._is_distributed = True
            program._endpoints = list(self.pserver_endpoints)
            program._ps_endpoint = current_endpoint
            program._is_chief = self.trainer_id == 0
            program._distributed_lookup_table = self.table_name
            program._distributed_lookup_tables = list(self._made().tables)  # Fluid has only one
            program._parameters_on_pservers = self.vars_overview

    def _set_server_config(self, server_config: ServerRuntimeConfig | None = None) -> None:
        """Accepts the setting that fleets pass; it has no effect."""
        if server_config is not None and not isinstance(server_config, ServerRuntimeConfig):
            raise TypeError(f"server_config must be a ServerRuntimeConfig, not {server_config!r}")

    @property
    def _kind(self) -> str:
        """Returns the config's mode, or 'geo'."""
        return self.config.mode

    @property
    def plan(self) -> str:
        """The placement plan as text."""
        return self._made().plan

    @property
    def has_distributed_lookup_table(self) -> bool:
        """Whether a table is sharded over the pservers."""
        return self.table_name is not None

    @property
    def table_name(self) -> str | None:
        """The first table that is sharded over the pservers, or None."""
        return next(iter(self._roles.tables), None) if self._roles else None

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """Replaces the contents of the main program by the trainer's. Running it waits for the servers.

        Args:
            wait_port (bool): accepted for Fluid's scripts.

        Returns:
            Program: the main program that was given to `transpile`.

        Raises:
            penstock.StateError: `transpile` has not been called.
        """
        tables = list(self._made().tables)
        job_programs.make_mean(self.origin_program, self._trainer_main, self.source_main.desc)
        note_tables(
            self.origin_program,
            tables,
            self.trainer_id,
            [(address, Program._of(main)) for address, (main, _) in self._pservers.items() if tables],
        )
        self.origin_program._placed_by = self
        return self.origin_program

    def _why_not_replaced(self, program: Program) -> str:
        """Returns why the pservers of the trainer's program cannot be replaced by others, with the error's id; '' if
        they can."""
        config = self._sources[2]
        if program is not self.origin_program or program.desc.content_id != self._trainer_main.content_id:
            return "a trainer's program was changed after get_trainer_program() had returned it   [E-scale-program]"
        if len(self._together) > 1:
            return "the pservers serve several programs   [E-scale-programs]"
        others = {
            f"exchange={config.dense}": config.dense != "pserver",
            f"clip={config.clip}": config.clip != "local",
            f"compression={config.compression}": bool(config.compression),
            f"on_uneven={config.on_uneven}": bool(config.on_uneven),
            f"backup_trainers={config.backup_trainers}": config.backup_trainers > 0,
            "asynchronous training": not self.plan.startswith('plan {mode="sync",'),
        }
        found = [name for name, set_so in others.items() if set_so]
        return f"the job works with {', '.join(found)}   [E-scale-mode]" if found else ""

    def _replace_pservers(self, pservers: list[str]) -> Program:
        """Makes the trainer's programs again, for other pservers, which hold what the earlier ones did. Returns the
        startup program: with the main program, it says what the pservers must hold."""
        main, startup, config = self._sources
        config.pservers = self.pserver_endpoints = list(pservers)
        self._take((main, startup, config), native_roles(main, startup, config), [self])
        self._leave_marks(self._current_endpoint)
        job_programs.share_startups(self._together)
        self.get_trainer_program()
        return self.startup_program

    def get_pserver_program(self, endpoint: str) -> Program:
        """Returns the main program of a pserver.

        Args:
            endpoint (str): its address.

        Returns:
            Program: a new one.

        Raises:
            penstock.ProgramError: there is no such pserver.
            penstock.StateError: `transpile` has not been called.
        """
        program = self._pserver_main(endpoint)
        program._served_with = [one._pserver_main(endpoint) for one in self._others_on(endpoint)]
        program._serves = self._served, self, endpoint
        return program

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """Returns both programs of a pserver.

        Args:
            endpoint (str): its address.

        Returns:
            tuple[Program, Program]: main and startup program.

        Raises:
            penstock.ProgramError: there is no such pserver.
            penstock.StateError: `transpile` has not been called.
        """
        return self.get_pserver_program(endpoint), self.get_startup_program(endpoint)

    def _others_on(self, endpoint: str) -> list[DistributeTranspiler]:
        """Returns the transpilers of the job's other programs that have parameters on this pserver."""
        return [one for one in self._together if one is not self and endpoint in one._pservers]

    def _pserver_main(self, endpoint: str) -> Program:
        program = Program._of(self._pserver(endpoint)[0].copy())
        program._parameters_on_pservers, program._ps_endpoint = self.vars_overview, endpoint  # as in Fluid
        program._pservers, program._sharded_tables = list(self.pserver_endpoints), list(self._made().tables)
        program._source_main = self.source_main
        return program

    def get_startup_program(
        self, endpoint: str, pserver_program: Program | None = None, startup_program: Program | None = None
    ) -> Program:
        """Returns the startup program of a pserver.

        Args:
            endpoint (str): its address.
            pserver_program (Program | None): accepted for Fluid's scripts.
            startup_program (Program | None): accepted for Fluid's scripts.

        Returns:
            Program: a new one.

        Raises:
            penstock.ProgramError: there is no such pserver.
            penstock.StateError: `transpile` has not been called.
        """
        program = Program._of(self._pserver(endpoint)[1].copy())
        program._then = [Program._of(one._pserver(endpoint)[1].copy()) for one in self._others_on(endpoint)]
        return program

    def _made(self) -> _RoleSet:
        if self._roles is None:
            raise _penstock.StateError("transpile() has not been called yet")
        return self._roles

    def _pserver(self, endpoint: str) -> tuple[ProgramDesc, ProgramDesc]:
        self._made()
        if endpoint not in self._pservers:
            raise program_error(
                "E-plan-pserver",
                f"plan: there is no pserver {endpoint}; the plan has {', '.join(self._pservers) or 'none'}",
            )
        return self._pservers[endpoint]
