"""The assignment of slices to pservers: the placements, the user's own dispatcher, and the manual's keywords."""

import json
import os
import pathlib
import random
import subprocess
import sys

import conftest
import numpy
import penstock
import programs
import pytest
from penstock.fluid.transpiler import HashName, PSDispatcher, RoundRobin, SizeBalanced
from siphash import python37_hash, siphash24

PSERVERS = ["10.0.0.1:6174", "10.0.0.2:6174"]


def net(fluid, optimizer=None, size=200):
    x = fluid.data("x", [None, 100])
    y = fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, size, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    (optimizer or fluid.optimizer.SGD(0.01)).minimize(loss)


def transpiled(fluid, config=None, **arguments):
    arguments = dict(dict(trainer_id=0, pservers=",".join(PSERVERS), trainers=2), **arguments)
    t = fluid.DistributeTranspiler(config)
    t.transpile(**arguments)
    return t


def placed(t):
    """{slice: its pserver}"""
    return {one.slice.name: one.endpoint for one in t.vars_overview.distributed_vars}


class ByCall(PSDispatcher):
    """Records its calls; puts everything on the last pserver."""

    calls = []

    def __init__(self, pserver_endpoints):
        super().__init__(pserver_endpoints)
        self.calls.append(("made", list(self.eps)))

    def reset(self):
        super().reset()
        self.calls.append(("reset",))

    def dispatch(self, varlist):
        self.calls.append(("dispatch", [(var.name, var.shape) for var in varlist]))
        return [self.eps[-1]] * len(varlist)


class Grandchild(ByCall):
    calls = []


class SizedGrandchild(SizeBalanced):
    """Our placement, reversed."""

    def dispatch(self, varlist):
        return [self.eps[-1 - self.eps.index(endpoint)] for endpoint in super().dispatch(varlist)]


class HashNameFixed(PSDispatcher):
    """The corpus's: Python's own hash of the name."""

    def dispatch(self, varlist):
        return [self.eps[python37_hash(var.name) % len(self.eps)] for var in varlist]


def test_siphash_matches_the_published_vectors():
    # Their first test vectors: key 00..0f, messages of 0, 1 and 8 bytes.
    key = [int.from_bytes(bytes(range(i, i + 8)), "little") for i in (0, 8)]
    expected = {0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 8: "6224939a79f5f593", 15: "e545be4961ca29a1"}
    for length, digest in expected.items():
        assert siphash24(bytes(range(length)), *key).to_bytes(8, "little").hex() == digest


@pytest.mark.filterwarnings("ignore::penstock.ProgramWarning")  # pservers without a parameter
def test_dispatchers_are_called_as_in_fluid(fluid):
    net(fluid)
    Grandchild.calls = []
    config = fluid.DistributeTranspilerConfig()
    config.split_method = Grandchild
    t = transpiled(fluid, config)
    grads = (
        ["fc_0.b_0@GRAD.trainer_0"],
        ["fc_0.w_0@GRAD.block0.trainer_0", "fc_0.w_0@GRAD.block1.trainer_0"],
        ["fc_1.b_0@GRAD.trainer_0"],
        ["fc_1.w_0@GRAD.trainer_0"],
    )
    calls = Grandchild.calls
    assert calls[0] == ("made", PSERVERS)
    assert [[name for name, _ in call[1]] for call in calls[1:5]] == list(grads)
    assert calls[2][1][0][1] == (50, 200), "a slice has its own shape"
    assert calls[5] == ("reset",)
    assert [name for name, _ in calls[6][1]] == [
        "fc_0.b_0",
        "fc_0.w_0.block0",
        "fc_0.w_0.block1",
        "fc_1.b_0",
        "fc_1.w_0",
    ]
    assert len(calls) == 7
    assert set(placed(t).values()) == {PSERVERS[-1]}


@pytest.mark.filterwarnings("ignore::penstock.ProgramWarning")  # pservers without a parameter
def test_two_slices_on_one_pserver_have_separate_optimizer_state(fluid):
    net(fluid, fluid.optimizer.Adam(0.01))
    config = fluid.DistributeTranspilerConfig()
    config.split_method = ByCall
    main, startup = transpiled(fluid, config).get_pserver_programs(PSERVERS[1])
    adams = [op for block in main.blocks[1:] for op in block.ops if op.type == "adam"]
    assert [op.input("Param")[0] for op in adams if op.input("Param")[0].startswith("fc_0.w_0")] == [
        "fc_0.w_0.block0",
        "fc_0.w_0.block1",
    ]
    written = [name for op in adams for name in op.output_arg_names]
    assert len(set(written)) == len(written), "no two updates write one variable"
    initialized = {name for op in startup.global_block().ops for name in op.output_arg_names}
    assert set(written) <= initialized


@pytest.mark.parametrize(
    "answer, says",
    [
        (lambda varlist, eps: eps[:1] * (len(varlist) + 1), r"as many addresses as variables, 1, not 2"),
        (lambda varlist, eps: [], r"as many addresses as variables, 1, not 0"),
        (lambda varlist, eps: ["c:1"] * len(varlist), r'puts fc_0.b_0@GRAD.trainer_0 on "c:1"; the pservers are'),
        (lambda varlist, eps: None, r"Wrong.dispatch must return a list of endpoints, not None"),
        (lambda varlist, eps: [0] * len(varlist), r"Wrong.dispatch returned 0 for fc_0.b_0@GRAD.trainer_0; it must be"),
    ],
)
def test_invalid_dispatcher_results_are_reported(fluid, answer, says):
    net(fluid)

    class Wrong(PSDispatcher):
        def dispatch(self, varlist):
            return answer(varlist, self.eps)

    with pytest.raises(penstock.ProgramError, match=says) as error:
        transpiled(fluid, split_method=Wrong)
    assert error.value.id == "E-plan-dispatcher"


def test_dispatcher_exceptions_propagate(fluid):
    net(fluid)

    class Raises(PSDispatcher):
        def dispatch(self, varlist):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        transpiled(fluid, split_method=Raises)

    class Forgotten(PSDispatcher):
        pass

    with pytest.raises(NotImplementedError, match="Forgotten has no dispatch"):
        transpiled(fluid, split_method=Forgotten)
    assert set(placed(transpiled(fluid)).values()) == set(PSERVERS), "the next transpile works"


@pytest.mark.parametrize("method", [RoundRobin, HashName, SizeBalanced])
def test_builtin_dispatchers_place_as_their_dispatch_method(fluid, method):
    net(fluid)
    t = transpiled(fluid, split_method=method)
    variables = [one.slice for one in t.vars_overview.distributed_vars]
    by_hand = method(PSERVERS).dispatch(variables)
    assert placed(t) == {var.name: endpoint for var, endpoint in zip(variables, by_hand)}
    again = penstock.transpile(t.source_main, t.source_startup, PSERVERS, trainers=2, placement=method.__name__)
    assert again.plan == t.plan


def test_subclasses_of_builtin_dispatchers_are_called(fluid):
    net(fluid)
    ours, theirs = (placed(transpiled(fluid, split_method=method)) for method in (SizeBalanced, SizedGrandchild))
    assert all(ours[name] != theirs[name] for name in ours)


def test_round_robin_continues_until_reset():
    robin = RoundRobin(["a:1", "b:1", "c:1"])
    assert robin.eps == ["a:1", "b:1", "c:1"]
    assert robin.dispatch([1, 2]) + robin.dispatch([3, 4]) == ["a:1", "b:1", "c:1", "a:1"]
    robin.reset()
    assert robin.dispatch([1]) == ["a:1"]


def test_transpile_accepts_the_manuals_keywords(fluid):
    net(fluid)
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    config.split_method = HashName
    asked = transpiled(fluid, config).plan
    assert transpiled(fluid, slice_var_up=False, split_method=HashName).plan == asked
    assert transpiled(fluid, config, slice_var_up=False, split_method=HashName).plan == asked
    assert transpiled(fluid).plan != asked
    with pytest.raises(penstock.ProgramError, match="slice_var_up=True and its config says slice_var_up=False"):
        transpiled(fluid, config, slice_var_up=True)
    with pytest.raises(penstock.ProgramError, match="split_method"):
        transpiled(fluid, config, split_method=RoundRobin)


def test_slicing_options_select_the_slices(fluid):
    net(fluid)
    config = fluid.DistributeTranspilerConfig()
    config.slicing = "mxnet"
    config.big_array_bound = 200
    t = transpiled(fluid, config)
    assert {one.origin.name: one.is_slice for one in t.vars_overview.distributed_vars} == {
        "fc_0.b_0": True,
        "fc_0.w_0": True,
        "fc_1.b_0": False,
        "fc_1.w_0": True,
    }
    even = penstock.transpile(t.source_main, t.source_startup, PSERVERS, trainers=2, slicing="even")
    assert "rows [0, 50) on pserver" in even.plan


def test_slices_are_cut_into_chunks_of_the_given_bytes(fluid):
    net(fluid)
    assert "in chunks" not in transpiled(fluid).plan
    config = fluid.DistributeTranspilerConfig()
    config.chunk_bytes = 2000  # rows of fc_0.w_0 have 800
    t = transpiled(fluid, config)
    assert t.plan.count("in chunks of 2\n") == 2
    asked = penstock.transpile(t.source_main, t.source_startup, PSERVERS, trainers=2, chunk_bytes=2000)
    assert asked.plan == t.plan


@pytest.mark.parametrize("slice_params", [True, False])
def test_transpile_does_not_change_global_random_state(fluid, slice_params):
    net(fluid)
    fluid.default_main_program().random_seed = 7
    numpy.random.seed(3)
    random.seed(3)
    before = numpy.random.get_state()[1].tolist(), random.getstate()
    transpiled(fluid, slice_var_up=slice_params)
    assert (numpy.random.get_state()[1].tolist(), random.getstate()) == before


@pytest.mark.parametrize("seed", [0, 1, 90, 2**31 - 1])
def test_unsliced_jobs_are_shuffled_like_numpy(fluid, seed):
    x = fluid.data("x", [None, 8])
    for _ in range(6):
        x = fluid.layers.fc(x, 8)
    fluid.optimizer.SGD(0.01).minimize(fluid.layers.mean(x))
    fluid.default_main_program().random_seed = seed
    order = sorted(f"fc_{i}.{kind}" for i in range(6) for kind in ("b_0", "w_0"))
    numpy.random.RandomState(seed).shuffle(order)
    expected = {name: PSERVERS[i % 2] for i, name in enumerate(order)}
    assert placed(transpiled(fluid, slice_var_up=False)) == expected


def test_the_overview_lists_every_slice(fluid):
    net(fluid)
    t = transpiled(fluid)
    overview = t.vars_overview
    second = overview.get_distributed_var_by_slice("fc_0.w_0.block1")
    assert (second.origin.name, second.origin.shape, second.slice.shape) == ("fc_0.w_0", (100, 200), (50, 200))
    assert (second.is_slice, second.block_id, second.offset, second.vtype) == (True, 1, 50 * 200, "Param")
    assert overview.get_distributed_var_by_origin_and_ep("fc_0.w_0", second.endpoint) is second
    assert second in overview.get_distributed_vars_by_ep(second.endpoint)
    assert [one.slice.name for one in overview.get_distributed_vars_by_vtypes(["Param"], groupby=True)["fc_0.w_0"]] == [
        "fc_0.w_0.block0",
        "fc_0.w_0.block1",
    ]
    assert overview.equal(second.origin, second.origin) and not overview.equal(second.origin, second.slice)
    assert len(overview.overview().splitlines()) == 5
    assert fluid.default_main_program()._parameters_on_pservers is overview


def test_names_imported_by_fluid_scripts_exist(fluid):
    from penstock.fluid.transpiler.distribute_transpiler import DistributedMode, DistributeTranspiler  # noqa: F401
    from penstock.fluid.transpiler.ps_dispatcher import HashName, PSDispatcher, RoundRobin  # noqa: F401

    mode = DistributedMode
    assert (mode.SYNC, mode.ASYNC, mode.HALF_ASYNC, mode.GEO) == (0, 1, 2, 3)


def test_slice_variable_follows_the_plan(fluid):
    net(fluid)
    block = fluid.default_main_program().global_block()
    from penstock.fluid.transpiler.distribute_transpiler import slice_variable

    assert slice_variable([block.var("fc_0.w_0"), block.var("fc_0.b_0")], 4, 8192) == [
        "fc_0.w_0:0:10000",
        "fc_0.w_0:1:10000",
        "fc_0.b_0:0:200",
    ]


@pytest.mark.parametrize(
    "arguments, says",
    [((0, 8192), "slice_count must be at least 1, not 0"), ((2, 0), "min_block_size must be at least 1, not 0")],
)
def test_slice_variable_refuses_invalid_arguments(fluid, arguments, says):
    from penstock.fluid.transpiler.distribute_transpiler import slice_variable

    with pytest.raises(penstock.ProgramError, match=says):
        slice_variable([fluid.data("x", [100, 200])], *arguments)


@pytest.mark.parametrize("method", [RoundRobin, HashName, SizeBalanced])
def test_a_dispatcher_requires_a_pserver(method):
    with pytest.raises(penstock.ProgramError, match="the list of pservers is empty"):
        method([])


class TestHashFixCases:
    """Cases that the corpus made with its own dispatcher."""

    def cases(self):
        found = sorted((conftest.FLUIDS / "cases").glob("*@hashfix_*"))
        assert found
        return found

    def roles(self, folder, compat):
        from penstock.fluid.framework import Program

        case = json.loads((folder / "case.json").read_text())
        source = folder.parents[1] / "programs" / case["program"]
        main, startup = (Program.parse_from_string(programs.load(source / name)) for name in ("main.pb", "startup.pb"))
        main.random_seed = startup.random_seed = json.loads((source / "program.json").read_text())["random_seed"]
        config = case["config"]
        return case, penstock.transpile(
            main,
            startup,
            case["pserver_endpoints"],
            trainers=config["trainers"],
            trainer_ids=config["trainer_ids"],
            sync=config["sync_mode"],
            slice_params=config["slice_var_up"],
            min_block_size=config["min_block_size"],
            placement=HashNameFixed,
            compat=compat,
        )

    @pytest.mark.filterwarnings("ignore::penstock.ProgramWarning")  # Fluid's own defects
    def test_compat_programs_equal_fluids(self):
        for folder in self.cases():
            case, roles = self.roles(folder, "fluid-1.8")
            made = {"trainer.pb": roles.trainers[0].main, "trainer_startup.pb": roles.trainers[0].startup}
            for i, role in enumerate(roles.pservers.values()):
                made[f"pserver_{i}.pb"], made[f"pserver_startup_{i}.pb"] = role.main, role.startup
            for name, entry in case["files"].items():
                ours, theirs = programs.of(made[name]), programs.read_file(folder / entry["file"])
                programs.assert_same(programs.rename_controls(ours), programs.rename_controls(theirs))

    def test_gradients_go_to_the_pserver_of_their_parameter(self):
        for folder in self.cases():
            _, roles = self.roles(folder, None)
            ops = roles.trainers[0].main.global_block().ops
            sent = {op.attr("op_role_var")[0]: op.attr("epmap") for op in ops if op.type == "send"}
            received = {op.attr("op_role_var")[0]: op.attr("epmap") for op in ops if op.type == "recv"}
            assert sent == received and sent
            updated = [
                op.input("Param")[0]
                for role in roles.pservers.values()
                for block in role.main.blocks[1:]
                for op in block.ops
                if "Param" in op.input_names
            ]
            pieces = [name for op in ops if op.type == "recv" for name in op.output("Out")]
            assert sorted(updated) == sorted(pieces), "each slice is updated once"


# Prints a hash of all programs of a job.
SCRIPT = """
import hashlib, sys
import penstock, penstock.fluid as fluid
x = fluid.data('x', [None, 100])
hidden = fluid.layers.fc(x, 200, param_attr=fluid.ParamAttr(name='enc.block1.w'))
y = fluid.layers.fc(hidden, 100, param_attr=fluid.ParamAttr(name='a:b'),
                    bias_attr=fluid.ParamAttr(name='w.trainer_embed'))
fluid.optimizer.Adam(0.01).minimize(fluid.layers.mean(y))
digest = hashlib.sha256()
for placement in ('RoundRobin', 'HashName', 'SizeBalanced'):
    for slice_params in (True, False):
        roles = penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(), 'a:1,b:1,c:1',
                                   trainers=3, placement=placement, slice_params=slice_params)
        for role in list(roles.trainers.values()) + list(roles.pservers.values()):
            digest.update(role.main.desc.serialize_to_string() + role.startup.desc.serialize_to_string())
print(digest.hexdigest())
"""


def test_transpiling_is_deterministic_across_processes():
    digests = set()
    for seed in ("0", "1", "4242", "random"):
        environment = dict(os.environ, PYTHONHASHSEED=seed)
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            cwd=str(pathlib.Path(__file__).parent),
        )
        digests.add(made.stdout.strip())
    assert len(digests) == 1 and digests != {b""}
