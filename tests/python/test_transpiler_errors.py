"""The errors of DistributeTranspiler for invalid arguments and fields, with the whole text of each."""

import penstock
import pytest
from penstock.fluid.transpiler import PSDispatcher, RoundRobin

PSERVERS = "10.0.0.1:6174,10.0.0.2:6174"


class Mine(PSDispatcher):
    def dispatch(self, varlist):
        return [self.eps[0]] * len(varlist)


# A field of DistributeTranspilerConfig, an invalid value, and the error of the transpiler's constructor.
FIELDS = [
    ("slice_var_up", "no", "plan: slice_var_up must be True or False, not 'no'   [E-plan-config]"),
    ("slice_var_up", None, "plan: slice_var_up must be True or False, not None   [E-plan-config]"),
    (
        "split_method",
        RoundRobin(["a:1"]),
        "plan: split_method must be a class, not an object of it: give RoundRobin   [E-plan-dispatcher]",
    ),
    (
        "split_method",
        "RoundRobin",
        "plan: split_method must be a subclass of PSDispatcher, not 'RoundRobin'   [E-plan-dispatcher]",
    ),
    (
        "split_method",
        int,
        "plan: split_method must be a subclass of PSDispatcher, not <class 'int'>   [E-plan-dispatcher]",
    ),
    ("min_block_size", 8191, "plan: min_block_size must be at least 8192, not 8191   [E-plan-config]"),
    ("min_block_size", 0, "plan: min_block_size must be at least 1, not 0   [E-plan-config]"),
    ("min_block_size", 8192.5, "plan: min_block_size must be an integer, not 8192.5   [E-plan-config]"),
    ("min_block_size", True, "plan: min_block_size must be an integer, not True   [E-plan-config]"),
    (
        "min_block_size",
        2**63,
        "plan: min_block_size must be at most 9223372036854775807, not 9223372036854775808   [E-plan-config]",
    ),
    ("slicing", "columns", "plan: slicing is 'columns'; it must be one of fluid, even, mxnet   [E-plan-slicing]"),
    ("bn_sync", "sum", "plan: bn_sync is 'sum'; it must be one of none, average   [E-plan-bn-sync]"),
    ("staleness", -1, "plan: staleness must be at least 0, not -1   [E-plan-config]"),
    ("staleness", "3", "plan: staleness must be an integer, not '3'   [E-plan-config]"),
    ("backup_trainers", None, "plan: backup_trainers must be an integer, not None   [E-plan-config]"),
    ("backup_trainers", 2**31, "plan: backup_trainers must be at most 2147483647, not 2147483648   [E-plan-config]"),
    ("compression", None, "plan: compression must be a text, such as 'two_bit 0.5', not None   [E-plan-config]"),
    ("clip", "never", "plan: clip is 'never'; it must be one of local, global   [E-plan-clip]"),
    (
        "exchange",
        {"dense": "gossip"},
        "plan: exchange must be 'auto' or a dict of 'dense' ('pserver', 'allreduce' or 'auto') and 'sparse' "
        "('pserver'), not {'dense': 'gossip'}   [E-plan-exchange]",
    ),
    ("exchange_gbit", "fast", "plan: exchange_gbit must be a number, not 'fast'   [E-plan-config]"),
    ("exchange_message_us", [], "plan: exchange_message_us must be a number, not []   [E-plan-config]"),
    ("chunk_bytes", 0, "plan: chunk_bytes must be at least 1, not 0   [E-plan-config]"),
    ("big_array_bound", 0, "plan: big_array_bound must be at least 1, not 0   [E-plan-config]"),
    ("nccl_comm_num", 2**31, "plan: nccl_comm_num must be at most 2147483647, not 2147483648   [E-plan-config]"),
    ("dc_asgd_lambda", 10**400, "plan: dc_asgd_lambda is larger than any float   [E-plan-config]"),
    ("enable_dc_asgd", 2, "plan: enable_dc_asgd must be True or False, not 2   [E-plan-config]"),
    ("dc_asgd_lambda", "half", "plan: dc_asgd_lambda must be a number, not 'half'   [E-plan-config]"),
    ("mode", "mpi", "plan: mode is 'mpi'; it must be one of pserver, nccl2, collective   [E-plan-kind]"),
    ("mode", None, "plan: mode is None; it must be one of pserver, nccl2, collective   [E-plan-kind]"),
    ("print_log", "yes", "plan: print_log must be True or False, not 'yes'   [E-plan-config]"),
    ("wait_port", 3, "plan: wait_port must be True or False, not 3   [E-plan-config]"),
    ("half_async", "half", "plan: half_async must be True or False, not 'half'   [E-plan-config]"),
    ("completely_not_async", [], "plan: completely_not_async must be True or False, not []   [E-plan-config]"),
    ("geo_sgd_mode", "geo", "plan: geo_sgd_mode must be True or False, not 'geo'   [E-plan-config]"),
    ("geo_sgd_need_push_nums", 0, "plan: geo_sgd_need_push_nums must be at least 1, not 0   [E-plan-config]"),
    ("nccl_comm_num", 0, "plan: nccl_comm_num must be at least 1, not 0   [E-plan-config]"),
    ("nccl_comm_num", "2", "plan: nccl_comm_num must be an integer, not '2'   [E-plan-config]"),
    ("local_sgd_adaptive", 2, "plan: local_sgd_adaptive must be True or False, not 2   [E-plan-config]"),
    ("on_uneven", "wait", "plan: on_uneven is 'wait'; it must be one of '', join, pad, error   [E-plan-on-uneven]"),
    ("local_sgd_k_steps", 0, "plan: local_sgd_k_steps must be at least 1, not 0   [E-plan-config]"),
    (
        "use_hierarchical_allreduce",
        "on",
        "plan: use_hierarchical_allreduce must be True or False, not 'on'   [E-plan-config]",
    ),
    (
        "hierarchical_allreduce_inter_nranks",
        -1,
        "plan: hierarchical_allreduce_inter_nranks must be at least 0, not -1   [E-plan-config]",
    ),
    (
        "collective_mode",
        "allreduce",
        "plan: collective_mode is 'allreduce'; it must be one of grad_allreduce, local_sgd, single_process_multi_thread"
        "   [E-plan-collective-mode]",
    ),
]

# Changed arguments of transpile(), and its error.
ARGUMENTS = [
    (dict(trainer_id=2), "plan: trainer_id 2 is out of range; there are 2 trainers (0 and 1)   [E-plan-trainer-id]"),
    (dict(trainer_id=-1), "plan: trainer_id -1 is out of range; there are 2 trainers (0 and 1)   [E-plan-trainer-id]"),
    (dict(trainer_id="0"), "plan: trainer_id must be an integer, not '0'   [E-plan-config]"),
    (dict(trainer_id=None), "plan: trainer_id must be an integer, not None   [E-plan-config]"),
    (dict(trainer_id=2**31), "plan: trainer_id must be at most 2147483647, not 2147483648   [E-plan-config]"),
    (dict(trainers=2**31), "plan: trainers must be at most 2147483647, not 2147483648   [E-plan-config]"),
    (dict(trainers=0), "plan: there must be at least 1 trainer, not 0   [E-plan-trainers]"),
    (dict(trainers=-2), "plan: there must be at least 1 trainer, not -2   [E-plan-trainers]"),
    (dict(trainers=2.5), "plan: trainers must be an integer, not 2.5   [E-plan-config]"),
    (dict(pservers=""), "plan: pserver address 0 is empty   [E-plan-pserver-empty]"),
    (dict(pservers=[]), "plan: the list of pservers is empty   [E-plan-no-pserver]"),
    (dict(pservers="a:1,,b:1"), "plan: pserver address 1 is empty   [E-plan-pserver-empty]"),
    (
        dict(pservers="a:1,b:1, a:1"),
        'plan: pserver address "a:1" is listed twice (positions 0 and 2)   [E-plan-pserver-dup]',
    ),
    (
        dict(pservers="10.0.0.1"),
        'plan: pserver address "10.0.0.1" must be host:port with a port from 1 to 65535   [E-plan-pserver-address]',
    ),
    (
        dict(pservers="a:1;b:1"),
        'plan: pserver address "a:1;b:1" must be host:port with a port from 1 to 65535   [E-plan-pserver-address]',
    ),
    (dict(pservers=6174), "plan: pservers must be addresses, comma-separated or in a list, not 6174   [E-plan-config]"),
    (
        dict(pservers=["a:1", None]),
        "plan: pservers must be addresses, comma-separated or in a list, not ['a:1', None]   [E-plan-config]",
    ),
    (dict(sync_mode="async"), "plan: sync_mode must be True or False, not 'async'   [E-plan-config]"),
    (dict(slice_var_up="yes"), "plan: slice_var_up must be True or False, not 'yes'   [E-plan-config]"),
    (
        dict(split_method="HashName"),
        "plan: split_method must be a subclass of PSDispatcher, not 'HashName'   [E-plan-dispatcher]",
    ),
]

# Fields that contradict each other, or an argument of transpile().
CONTRADICTIONS = [
    (
        dict(sync_mode=True),
        dict(sync_mode=False),
        "plan: transpile() was given sync_mode=false and its config says sync_mode=true; give one of them, or the "
        "same value twice   [E-plan-sync-mode]",
    ),
    (
        dict(slice_var_up=True),
        dict(slice_var_up=False),
        "plan: transpile() was given slice_var_up=False and its config says slice_var_up=True; give one of them, "
        "or the same value twice   [E-plan-slice-var-up]",
    ),
    (
        dict(split_method=Mine),
        dict(split_method=RoundRobin),
        "plan: transpile() was given split_method=RoundRobin and its config says split_method=Mine; give one of them, "
        "or the same value twice   [E-plan-split-method]",
    ),
    (
        dict(slicing="even", slice_var_up=False),
        {},
        "plan: slicing even needs slice_var_up=true; it is false   [E-plan-slicing]",
    ),
    (
        dict(slicing="mxnet", split_method=Mine),
        {},
        "plan: slicing mxnet says who gets each slice, and split_method a dispatcher of your own does too; give one of "
        "them   [E-plan-slicing]",
    ),
    (dict(enable_dc_asgd=True), {}, "plan: enable_dc_asgd=true needs sync_mode=false; it is true   [E-plan-sync-mode]"),
]


def net(fluid):
    x = fluid.data("x", [None, 13])
    fluid.optimizer.SGD(0.01).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))


def config_of(fluid, fields):
    config = fluid.DistributeTranspilerConfig()
    for field, value in fields.items():
        setattr(config, field, value)
    return config


def said(call):
    """The first line of the ProgramError that the call raises, which must contain its id."""
    with pytest.raises(penstock.ProgramError) as error:
        call()
    first = str(error.value).split("\n")[0]
    assert first.endswith(f"[{error.value.id}]")
    return first


@pytest.mark.parametrize("field, value, text", FIELDS)
def test_invalid_config_fields_are_refused(fluid, field, value, text):
    config = config_of(fluid, {field: value})
    assert said(lambda: fluid.DistributeTranspiler(config)) == text


def test_every_config_field_is_checked(fluid):
    fields = {name for name in vars(fluid.DistributeTranspilerConfig) if not name.startswith("_")}
    methods = {"is_set", "validate"}
    properties = {"sync_mode", "runtime_split_send_recv"}  # when they are set
    assert fields - methods - properties == {field for field, _, _ in FIELDS}


@pytest.mark.parametrize("field", ["sync_mode", "runtime_split_send_recv"])
@pytest.mark.parametrize("value", [None, "async", 2])
def test_mode_flags_are_checked_on_assignment(fluid, field, value):
    config = fluid.DistributeTranspilerConfig()
    assert (
        said(lambda: setattr(config, field, value))
        == f"plan: {field} must be True or False, not {value!r}   [E-plan-config]"
    )


@pytest.mark.parametrize(
    "first, second", [("sync_mode", "runtime_split_send_recv"), ("runtime_split_send_recv", "sync_mode")]
)
def test_contradicting_mode_flags_are_refused(fluid, first, second):
    config = config_of(fluid, {first: True})
    assert (
        said(lambda: setattr(config, second, True))
        == "plan: runtime_split_send_recv=True needs sync_mode=False; it is True   [E-plan-sync-mode]"
    )


@pytest.mark.parametrize("arguments, text", ARGUMENTS)
def test_invalid_arguments_are_refused(fluid, arguments, text):
    net(fluid)
    startup = fluid.default_startup_program().desc.serialize_to_string()
    arguments = dict(dict(trainer_id=0, pservers=PSERVERS, trainers=2), **arguments)
    assert said(lambda: fluid.DistributeTranspiler().transpile(**arguments)) == text
    assert fluid.default_startup_program().desc.serialize_to_string() == startup, "nothing is changed"


@pytest.mark.parametrize("fields, arguments, text", CONTRADICTIONS)
def test_contradicting_options_are_refused(fluid, fields, arguments, text):
    net(fluid)
    t = fluid.DistributeTranspiler(config_of(fluid, fields))
    assert said(lambda: t.transpile(0, pservers=PSERVERS, trainers=2, **arguments)) == text


def test_min_block_size_may_be_reduced_after_construction(fluid):
    net(fluid)
    t = fluid.DistributeTranspiler()
    t.config.min_block_size = 5
    t.transpile(0, pservers=PSERVERS, trainers=2)
    assert "rows [0, 7) on pserver" in t.plan


def test_wrong_types_of_config_and_program_are_refused(fluid):
    with pytest.raises(TypeError, match="config must be a DistributeTranspilerConfig, not dict"):
        fluid.DistributeTranspiler({"mode": "pserver"})
    with pytest.raises(TypeError, match="transpile takes Programs, not str"):
        fluid.DistributeTranspiler().transpile(0, program="main", pservers=PSERVERS, trainers=2)


def test_a_program_that_trains_nothing_is_refused(fluid):
    fluid.layers.fc(fluid.data("x", [None, 13]), 1)
    assert (
        said(lambda: fluid.DistributeTranspiler().transpile(0, pservers=PSERVERS, trainers=2))
        == "plan: the program updates no parameter; call minimize before transpile   [E-plan-no-params]"
    )


def test_too_many_trainers_are_refused(fluid):
    net(fluid)
    programs = fluid.default_main_program(), fluid.default_startup_program()
    assert (
        said(lambda: penstock.transpile(*programs, PSERVERS, trainers=2**31 - 1))
        == "plan: there may be at most 65536 trainers, not 2147483647   [E-plan-trainers]"
    )


def test_an_unknown_pserver_is_refused(fluid):
    net(fluid)
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=PSERVERS, trainers=2)
    for getter in (t.get_pserver_program, t.get_pserver_programs, t.get_startup_program):
        assert (
            said(lambda: getter("10.0.0.3:6174"))
            == "plan: there is no pserver 10.0.0.3:6174; the plan has 10.0.0.1:6174, 10.0.0.2:6174   [E-plan-pserver]"
        )


def test_getters_before_transpile_are_refused(fluid):
    t = fluid.DistributeTranspiler()
    for getter in (
        t.get_trainer_program,
        lambda: t.get_pserver_program("a:1"),
        lambda: t.get_pserver_programs("a:1"),
        lambda: t.get_startup_program("a:1"),
    ):
        with pytest.raises(penstock.StateError, match="transpile\\(\\) has not been called yet"):
            getter()
