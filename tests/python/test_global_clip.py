"""config.clip = 'global': pservers clip the mean of all trainers' gradients, with both spellings of clipping."""

import pytest

PSERVERS = ["10.0.0.1:6174", "10.0.0.2:6174"]

CLIPS = [
    ("GradientClipByValue", dict(max=1.0), "clip", False),
    ("GradientClipByNorm", dict(clip_norm=1.0), "clip_by_norm", False),
    ("GradientClipByGlobalNorm", dict(clip_norm=1.0), "reduce_sum", True),
]


def transpiled(fluid, clip, spelling, where):
    x = fluid.data("x", [None, 100])
    loss = fluid.layers.mean(fluid.layers.fc(x, 200))
    if spelling == "grad_clip":
        fluid.optimizer.SGD(0.01, grad_clip=clip).minimize(loss)
    else:
        fluid.clip.set_gradient_clip(clip)
        fluid.optimizer.SGD(0.01).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.clip = where
    t = fluid.DistributeTranspiler(config)
    t.transpile(0, pservers=",".join(PSERVERS), trainers=2)
    return t


def types(program):
    return [op.type for block in program.blocks for op in block.ops]


@pytest.mark.parametrize("spelling", ["grad_clip", "set_gradient_clip"])
@pytest.mark.parametrize("name, arguments, op, exchanged", CLIPS)
def test_ops_of_clipping_move_to_the_pservers(fluid, name, arguments, op, exchanged, spelling):
    t = transpiled(fluid, getattr(fluid.clip, name)(**arguments), spelling, "global")
    assert op not in types(t.get_trainer_program())
    pservers = [types(t.get_pserver_program(address)) for address in PSERVERS]
    assert any(op in made for made in pservers)
    assert all(("exchange_sums" in made) == exchanged for made in pservers)


@pytest.mark.parametrize("name, arguments, op, exchanged", CLIPS)
def test_by_default_trainers_clip_their_own_gradients(fluid, name, arguments, op, exchanged):
    t = transpiled(fluid, getattr(fluid.clip, name)(**arguments), "grad_clip", "local")
    assert op in types(t.get_trainer_program())
    for address in PSERVERS:
        assert op not in types(t.get_pserver_program(address))
