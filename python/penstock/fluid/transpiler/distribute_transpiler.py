"""DistributeTranspiler: Fluid's way to ask for role programs, over one pure C++ call.

Fluid's scripts run default_startup_program() after transpile(), and what get_trainer_program() returns is the
program they gave. So transpile() takes a snapshot of both programs and makes the start-up handle mean the trainer's
start-up program; get_trainer_program() makes the main handle mean the trainer's. Getters may be called in any order,
any number of times; a second transpile() of a program that still is what the first made of it starts from the
snapshot.
"""

from penstock import _penstock
from penstock._penstock import ProgramError
from penstock.fluid import framework
from penstock.fluid.framework import Program

__all__ = ['DistributeTranspiler', 'DistributeTranspilerConfig']


class DistributeTranspilerConfig:
    """What to ask of the transpiler. Fields and defaults are Fluid's."""

    def __init__(self):
        self.slice_var_up = True
        self.split_method = None      # RoundRobin or HashName of penstock.fluid.transpiler
        self.min_block_size = 8192    # elements; a slice of a parameter is not made smaller
        self.enable_dc_asgd = False
        self.mode = 'pserver'
        self.print_log = False
        self.wait_port = True
        self.half_async = False
        self.completely_not_async = False
        self.geo_sgd_mode = False
        self.geo_sgd_need_push_nums = 100
        self.nccl_comm_num = 1
        self.use_hierarchical_allreduce = False
        self.hierarchical_allreduce_inter_nranks = 0
        self.collective_mode = None
        self._sync_mode = None        # None: untouched, so an argument of transpile() wins
        self._runtime_split_send_recv = False

    @property
    def sync_mode(self):
        return True if self._sync_mode is None else self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value):
        if value is None:
            raise ValueError('sync_mode must not be None')
        if value and self._runtime_split_send_recv:
            raise ValueError('sync_mode and runtime_split_send_recv cannot both be True')
        self._sync_mode = bool(value)

    @property
    def runtime_split_send_recv(self):
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value):
        if value is None:
            raise ValueError('runtime_split_send_recv must not be None')
        if value and self._sync_mode:
            raise ValueError('sync_mode and runtime_split_send_recv cannot both be True')
        self._runtime_split_send_recv = bool(value)


class DistributeTranspiler:
    """
        t = fluid.DistributeTranspiler()
        t.transpile(trainer_id, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)
        exe.run(t.get_pserver_programs(endpoint)...)     # on a pserver
        exe.run(fluid.default_startup_program())         # on a trainer
        exe.run(t.get_trainer_program(), feed=..., fetch_list=...)
    """

    def __init__(self, config=None):
        self.config = DistributeTranspilerConfig() if config is None else config
        self._roles = None

    def transpile(self, trainer_id, program=None, pservers='127.0.0.1:6174', trainers=1, sync_mode=None,
                  startup_program=None, current_endpoint='127.0.0.1:6174'):
        """Makes the programs of all roles.

        sync_mode   given, it wins over an untouched config; both given and different is an error
        """
        program = framework.default_main_program() if program is None else program
        startup = framework.default_startup_program() if startup_program is None else startup_program
        for one in (program, startup):
            if not isinstance(one, Program):
                raise TypeError('transpile takes Programs, not %s' % type(one).__name__)
        source_main, source_startup = _source_of(program), _source_of(startup)
        config = self._native_config(trainer_id, pservers, trainers, sync_mode)
        roles = _penstock.transpile(source_main, source_startup, config)
        self.source_main, self.source_startup = Program._of(source_main), Program._of(source_startup)
        self.trainer_id, self.trainer_num = trainer_id, trainers
        self.pserver_endpoints = config.pservers
        self.origin_program, self.startup_program = program, startup
        self._roles = roles
        self._pservers = {address: (main, start) for address, main, start in roles.pservers}
        _, self._trainer_main, trainer_startup = roles.trainers[0]
        _make_mean(program, source_main, source_main)
        _make_mean(startup, trainer_startup, source_startup)
        program._is_distributed = True
        program._endpoints = list(config.pservers)
        program._ps_endpoint = current_endpoint
        program._is_chief = trainer_id == 0

    @property
    def plan(self):
        """Who holds what, as text."""
        return self._made().plan

    has_distributed_lookup_table = False
    table_name = None

    def get_trainer_program(self, wait_port=True):
        """The main program's handle, now meaning the trainer's program. Servers are waited for when it runs."""
        self._made()
        _make_mean(self.origin_program, self._trainer_main, self.source_main.desc)
        return self.origin_program

    def get_pserver_program(self, endpoint):
        return Program._of(self._pserver(endpoint)[0].copy())

    def get_pserver_programs(self, endpoint):
        """(main, start-up) of one pserver."""
        main, startup = self._pserver(endpoint)
        return Program._of(main.copy()), Program._of(startup.copy())

    def get_startup_program(self, endpoint, pserver_program=None, startup_program=None):
        return Program._of(self._pserver(endpoint)[1].copy())

    def _made(self):
        if self._roles is None:
            raise _penstock.StateError('transpile() has not been called yet')
        return self._roles

    def _pserver(self, endpoint):
        self._made()
        if endpoint not in self._pservers:
            raise ProgramError('there is no pserver %s; the plan has %s' % (endpoint, ', '.join(self._pservers)))
        return self._pservers[endpoint]

    def _native_config(self, trainer_id, pservers, trainers, sync_mode):
        given = self.config
        if not isinstance(trainers, int):
            raise NotImplementedError('a list of trainers is for the nccl2 and collective modes, which are not built')
        config = _penstock.TranspileConfig()
        config.kind = given.mode
        config.trainers = trainers
        config.trainer_ids = [trainer_id]
        config.pservers = [address.strip() for address in pservers.split(',')]
        config.slice_params = bool(given.slice_var_up)
        config.min_block_size = given.min_block_size
        config.allow_small_blocks = True
        if given.split_method is not None:
            placement = getattr(given.split_method, 'placement', None)
            if placement is None:
                raise NotImplementedError('split_method %r: RoundRobin and HashName are built' % (given.split_method,))
            config.placement = placement
        config.sync_mode_argument = sync_mode
        config.sync_mode_field = given._sync_mode
        config.runtime_split_send_recv = given.runtime_split_send_recv
        config.half_async = given.half_async
        config.completely_not_async = given.completely_not_async
        config.dc_asgd = given.enable_dc_asgd
        return config


def _source_of(program):
    """What a transpile starts from: what the program was before an earlier one, unless it was changed since."""
    source, content_id = program.__dict__.get('_transpile_source', (None, None))
    if content_id == program.desc.content_id:
        return source
    return program.desc.copy()


def _make_mean(program, desc, source):
    """Makes the handle mean `desc`, and remembers what it was made from."""
    if program.desc.content_id != desc.content_id:
        program._rebind(desc)
    program._transpile_source = (source, program.desc.content_id)
