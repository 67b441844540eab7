"""minimize on the forward part of Fluid's own programs, loaded from their files, makes the rest of the programs."""

import json

import conftest
import programs
import pytest

OPTIMIZE, LOSS = 2, 256

# By the op of the update: the optimizer, and its arguments by the op's attributes.
OPTIMIZERS = {
    "adadelta": ("Adadelta", {"epsilon": "epsilon", "rho": "rho"}),
    "adagrad": ("Adagrad", {"epsilon": "epsilon"}),
    "adam": ("Adam", {"beta1": "beta1", "beta2": "beta2", "epsilon": "epsilon", "lazy_mode": "lazy_mode"}),
    "adamax": ("Adamax", {"beta1": "beta1", "beta2": "beta2", "epsilon": "epsilon"}),
    "decayed_adagrad": ("DecayedAdagrad", {"decay": "decay", "epsilon": "epsilon"}),
    "dpsgd": ("Dpsgd", {"clip": "clip", "batch_size": "batch_size", "sigma": "sigma"}),
    "ftrl": ("Ftrl", {"l1": "l1", "l2": "l2", "lr_power": "lr_power"}),
    "lamb": ("Lamb", {"lamb_weight_decay": "weight_decay", "beta1": "beta1", "beta2": "beta2", "epsilon": "epsilon"}),
    "lars_momentum": (
        "LarsMomentum",
        {"momentum": "mu", "lars_coeff": "lars_coeff", "lars_weight_decay": "lars_weight_decay"},
    ),
    "momentum": ("Momentum", {"momentum": "mu", "use_nesterov": "use_nesterov"}),
    "rmsprop": ("RMSProp", {"rho": "decay", "epsilon": "epsilon", "momentum": "momentum", "centered": "centered"}),
    "sgd": ("SGD", {}),
}


def role(op):
    return op["attrs"]["op_role"][1]


def names_in(ops):
    slots = [slot for op in ops for side in (op["inputs"], op["outputs"]) for slot in side.values()]
    return {name for slot in slots for name in slot}


def keep_forward_part(program, whole):
    """Removes the additions of minimize from a loaded program; variables without gradient get stop_gradient."""
    block, ops, variables = program.global_block(), whole["blocks"][0]["ops"], whole["blocks"][0]["vars"]
    count = next(i for i, op in enumerate(ops) if role(op) & 1)
    for index in reversed(range(count, len(ops))):
        block._remove_op(index)
    for name in names_in(ops[count:]) - names_in(ops[:count]):
        block._remove_var(name)
    for op in block.ops:
        if op.attr("op_role") == LOSS:
            op._set_attr("op_role", 0)
    for name, variable in list(block.vars.items()):
        variable.stop_gradient = name + "@GRAD" not in variables


def advance_names(fluid, program):
    """Names continue after the forward part: `fc_0.tmp_1` uses the counters fc and fc_0.tmp."""
    last = {}
    for block in program.blocks:
        for name in block.vars:
            for part in (name, name.split(".")[0]):
                key, _, number = part.rpartition("_")
                if number.isdigit():
                    last[key] = max(last.get(key, -1), int(number))
    for key, number in last.items():
        for _ in range(number + 1):
            fluid.unique_name.generate(key)


def decays_of(fluid, ops, parameters):
    """The regularization in the program's ops, by parameter."""
    signs = {op["outputs"]["Out"][0]: op["inputs"]["X"][0] for op in ops if op["type"] == "sign"}
    decays = {}
    for op in ops:
        if role(op) == OPTIMIZE and op["type"] == "scale":
            of, coefficient = op["inputs"]["X"][0], op["attrs"]["scale"][1]
            if of in parameters:
                decays[of] = fluid.regularizer.L2Decay(coefficient)
            elif of in signs:
                decays[signs[of]] = fluid.regularizer.L1Decay(coefficient)
    return decays


def clip_of(fluid, ops):
    """The gradient clip in the program's ops."""
    clips = [op for op in ops if op["attrs"].get("op_namescope", ("", ""))[1].startswith("/gradient_clip")]
    if not clips:
        return None
    attrs = {op["type"]: {name: value for name, (_, value) in op["attrs"].items()} for op in clips}
    if "clip" in attrs:
        return fluid.clip.GradientClipByValue(attrs["clip"]["max"], attrs["clip"]["min"])
    if "clip_by_norm" in attrs:
        return fluid.clip.GradientClipByNorm(attrs["clip_by_norm"]["max_norm"])
    return fluid.clip.GradientClipByGlobalNorm(attrs["fill_constant"]["value"])


def optimizer_of(fluid, program, ops):
    """An optimizer with the hyperparameters that the program's own ops have."""
    update = next(op for op in ops if role(op) == OPTIMIZE and "Param" in op["inputs"])
    attrs = {name: value for name, (_, value) in update["attrs"].items()}
    rate = update["inputs"].get("LearningRate", ["learning_rate_0"])[0]  # Adadelta's op reads none
    rate = program.global_block().var(rate) if program.global_block().has_var(rate) else 0.01
    clip = clip_of(fluid, ops)
    common = {"grad_clip": clip} if clip else {}
    maker, arguments = OPTIMIZERS[update["type"]]
    return getattr(fluid.optimizer, maker)(rate, **{key: attrs[name] for key, name in arguments.items()}, **common)


PROGRAMS = sorted(path.name for path in (conftest.FLUIDS / "programs").iterdir())


def test_all_program_cases_exist():
    assert len(PROGRAMS) >= (52 if conftest.CORPUS.is_dir() else 10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_forward_part_of_a_loaded_program_is_minimized_as_by_fluid(fluids, fluid, name):
    folder = fluids("programs", name)
    facts = json.loads((folder / "program.json").read_text())
    data = programs.load(folder / "main.pb")
    whole = programs.read(data)
    program = fluid.Program.parse_from_string(data)
    keep_forward_part(program, whole)
    advance_names(fluid, program)
    loss = program.global_block().var(facts["loss"])
    ops = whole["blocks"][0]["ops"]
    decays = decays_of(fluid, ops, {param["name"] for param in facts["params"]})
    for param in facts["params"]:
        program.global_block().var(param["name"])._set_fact("learning_rate", param["learning_rate"])
        program._parameter_attrs[param["name"]] = {"regularizer": decays.get(param["name"])}
    optimizer = optimizer_of(fluid, program, ops)
    optimizer.minimize(
        loss,
        startup_program=fluid.default_startup_program(),
        parameter_list=[param["name"] for param in facts["params"]],
    )
    programs.assert_same(programs.of(program), whole)
