"""contrib.mixed_precision: the rewriting with casts, the scaling of the loss, and runs of float16 on CPUs."""

import gzip
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from rank_processes import Ranks

LR = 0.1


def network(fluid, decorate=None, seed=3):
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = seed
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    hidden = fluid.layers.fc(x, 8, act="relu")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 3, act="softmax"), y))
    optimizer = fluid.optimizer.SGD(LR)
    if decorate is not None:
        optimizer = fluid.contrib.mixed_precision.decorate(optimizer, **decorate)
    optimizer.minimize(loss)
    return loss, optimizer


def feed(step):
    random = np.random.RandomState(step)
    return {"x": random.uniform(-1, 1, (6, 4)).astype("float32"), "y": random.randint(0, 3, (6, 1))}


def train(fluid, decorate=None, steps=5):
    """Returns the losses, and the parameters at the end."""
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        loss, _ = network(fluid, decorate)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        losses = [exe.run(feed=feed(step), fetch_list=[loss])[0][0] for step in range(steps)]
        scope = fluid.global_scope()
        return losses, {
            p.name: np.array(scope.find_var(p.name).get_tensor()) for p in fluid.default_main_program().all_parameters()
        }


def types(fluid):
    return [op.type for op in fluid.default_main_program().global_block().ops]


def test_matrix_products_are_in_float16_and_the_loss_in_float32(fluid):
    network(fluid, dict(init_loss_scaling=8.0, use_dynamic_loss_scaling=False))
    block = fluid.default_main_program().global_block()
    kinds = {
        op.type: {block.var(name).dtype for name in op.input_arg_names + op.output_arg_names}
        for op in block.ops
        if op.type in ("mul", "mul_grad", "relu", "softmax", "cross_entropy2", "mean", "sgd")
    }
    half, single = fluid.core.VarDesc.VarType.FP16, fluid.core.VarDesc.VarType.FP32
    assert {kind for kind, seen in kinds.items() if seen == {half}} == {"mul", "mul_grad", "relu"}
    assert kinds["softmax"] == kinds["mean"] == kinds["sgd"] == {single}
    assert {"fc_0.w_0.cast_fp16", "x.cast_fp16", "fc_1.tmp_1.cast_fp32"} <= set(block.vars)
    # Gradients of parameters are exchanged in float16: the casts to float32 come behind the backward pass.
    first_update = types(fluid).index("elementwise_div")
    assert types(fluid)[first_update - 4 : first_update] == ["cast"] * 4
    pairs = [op.attr("op_role_var") for op in block.ops if op.type == "mul_grad"]
    assert pairs == [["fc_1.w_0", "fc_1.w_0.cast_fp16@GRAD"], ["fc_0.w_0", "fc_0.w_0.cast_fp16@GRAD"]]


def mlp(fluid):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    hidden = fluid.layers.fc(x, 8, act="relu")
    return fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 3, act="softmax"), y))


def conv(fluid):
    x, y = fluid.data("x", [None, 1, 8, 8]), fluid.data("y", [None, 1], "int64")
    image = fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3, bias_attr=False), act="relu")
    dropped = fluid.layers.dropout(fluid.layers.pool2d(image, 2, "max", 2), 0.3)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(dropped, 3), y))


def emb(fluid):
    x, y = fluid.data("x", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1])
    words = fluid.layers.sequence_pool(fluid.layers.embedding(x, [20, 6]), "sum")
    both = fluid.layers.elementwise_add(fluid.layers.fc(words, 4, act="tanh"), fluid.layers.fc(words, 4, act="sigmoid"))
    square = fluid.layers.reshape(both, [-1, 2, 2])
    flat = fluid.layers.reshape(fluid.layers.matmul(square, square, transpose_y=True), [-1, 4])
    total = fluid.layers.scale(fluid.layers.reduce_sum(flat, dim=1, keep_dim=True), 0.5)
    return fluid.layers.mean(fluid.layers.square_error_cost(total, y))


DATA = pathlib.Path(__file__).parent.parent / "parity" / "data"
FLUIDS = gzip.decompress((DATA / "mixed_precision.txt.gz").read_bytes()).decode()


@pytest.mark.parametrize("part", FLUIDS.split("# ")[1:], ids=lambda part: part.splitlines()[0].replace(" ", "_"))
def test_mixed_precision_programs_match_fluid(fluid, part):
    title, *ops = part.splitlines()
    lists = {"custom_black_list": {"relu", "tanh"}, "custom_white_list": {"softmax", "square"}}
    precision = fluid.contrib.mixed_precision
    chosen = precision.AutoMixedPrecisionLists(**{name: lists[name] for name in lists if name in title})
    loss = {"mlp": mlp, "conv": conv, "emb": emb}[title.split()[0]](fluid)
    precision.decorate(fluid.optimizer.Adam(0.01), chosen, 128.0, use_dynamic_loss_scaling=False).minimize(loss)
    made = []
    for op in fluid.default_main_program().global_block().ops:
        inputs = [name for slot in sorted(op.input_names) for name in op.input(slot)]
        outputs = [name for slot in sorted(op.output_names) for name in op.output(slot)]
        pair = ",".join(op.attr("op_role_var")) if op.has_attr("op_role_var") else ""
        made.append(
            (f"{op.type} ({' '.join(inputs)}) -> ({' '.join(outputs)}) role={op.attr('op_role')} {pair}").rstrip()
        )
    assert made == ops


def test_a_run_uses_float16_products_with_float32_sums(fluid):
    """One product and its gradient, against NumPy."""
    x = fluid.data("x", [None, 4])
    out = fluid.layers.fc(x, 3, bias_attr=False, param_attr=fluid.ParamAttr("w"))
    loss = fluid.layers.mean(out)
    optimizer = fluid.contrib.mixed_precision.decorate(
        fluid.optimizer.SGD(LR), init_loss_scaling=1024.0, use_dynamic_loss_scaling=False
    )
    _, pairs = optimizer.minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    w = np.array(fluid.global_scope().find_var("w").get_tensor())
    xs = np.random.RandomState(1).uniform(-1, 1, (5, 4)).astype("float32")
    product, scaled, grad = exe.run(feed={"x": xs}, fetch_list=[out, optimizer.get_scaled_loss(), pairs[0][1]])
    half = (xs.astype("f2").astype("f4") @ w.astype("f2").astype("f4")).astype("f2")
    assert product.dtype == np.float16
    np.testing.assert_allclose(product.astype("f4"), half.astype("f4"), rtol=2e-3)
    np.testing.assert_allclose(scaled, [half.astype("f4").mean() * 1024], rtol=1e-3)
    d_out = np.full((5, 3), 1024 / 15, "f4").astype("f2").astype("f4")
    right = (xs.astype("f2").astype("f4").T @ d_out).astype("f2").astype("f4") / 1024
    np.testing.assert_allclose(grad, right, rtol=2e-3)
    np.testing.assert_allclose(
        np.array(fluid.global_scope().find_var("w").get_tensor()), w - LR * right, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    "decorate", [dict(init_loss_scaling=8.0, use_dynamic_loss_scaling=False), dict(init_loss_scaling=2.0**10), dict()]
)
def test_training_is_close_to_float32(fluid, decorate):
    losses, params = train(fluid)
    halved, half_params = train(fluid, decorate)
    np.testing.assert_allclose(halved, losses, rtol=5e-3)
    assert halved != losses
    for name, value in params.items():
        np.testing.assert_allclose(half_params[name], value, rtol=0, atol=2e-3)


def scaling(fluid, values, **decorate):
    """Returns the factor after each step; a step whose value is not finite has such gradients."""
    x = fluid.data("x", [None, 1])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False, param_attr=fluid.ParamAttr("w")))
    optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(LR), **decorate)
    optimizer.minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    factors, weights = [], []
    for value in values:
        exe.run(feed={"x": np.array([[value]], "float32")})
        for name, values in ((optimizer.get_loss_scaling().name, factors), ("w", weights)):
            values.append(float(np.array(fluid.global_scope().find_var(name).get_tensor()).reshape(-1)[0]))
    return factors, weights


def test_loss_scaling_grows_after_finite_steps_and_shrinks_otherwise(fluid):
    values = [1, 1, 1, 1, np.inf, np.inf, 1, np.inf, np.inf, np.inf]
    factors, weights = scaling(
        fluid,
        values,
        init_loss_scaling=8.0,
        incr_every_n_steps=2,
        decr_every_n_nan_or_inf=2,
        incr_ratio=2.0,
        decr_ratio=0.5,
    )
    # The 3rd finite step in a row exceeds incr_every_n_steps; so does the 3rd step of others in a row.
    assert factors == [8, 8, 16, 16, 16, 16, 16, 16, 16, 8]
    assert weights[4] == weights[5] == weights[3] and weights[6] != weights[5]  # no update from infinite gradients
    assert np.isfinite(weights).all()


def test_loss_scaling_does_not_fall_below_1(fluid):
    factors, _ = scaling(fluid, [np.nan] * 4, init_loss_scaling=1.5, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
    assert factors == [1.5, 1.0, 1.0, 1.0]


def test_custom_lists_change_the_type_of_ops(fluid):
    precision = fluid.contrib.mixed_precision
    lists = precision.AutoMixedPrecisionLists(custom_white_list={"softmax"}, custom_black_list={"mul", "relu"})
    assert "mul" in lists.black_list and "mul" not in lists.white_list and "softmax" in lists.white_list
    assert "relu" not in lists.gray_list and "relu" in precision.fp16_lists.gray_list  # Fluid's own stay
    network(fluid, dict(amp_lists=lists, use_dynamic_loss_scaling=False))
    block = fluid.default_main_program().global_block()
    assert block.var("fc_0.tmp_0").dtype == fluid.core.VarDesc.VarType.FP32
    assert block.var("fc_1.tmp_2").dtype == fluid.core.VarDesc.VarType.FP16
    with pytest.raises(ValueError, match="mul is in the custom white list and in the custom black list"):
        precision.AutoMixedPrecisionLists({"mul"}, {"mul"})


def test_ops_of_black_variables_stay_in_float32(fluid):
    lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_varnames={"fc_0.w_0"})
    network(fluid, dict(amp_lists=lists, use_dynamic_loss_scaling=False))
    block = fluid.default_main_program().global_block()
    assert block.var("fc_0.tmp_0").dtype == fluid.core.VarDesc.VarType.FP32
    assert block.var("fc_1.tmp_0").dtype == fluid.core.VarDesc.VarType.FP16


def test_images_with_batch_norm_train(fluid):
    image, y = fluid.data("image", [None, 1, 8, 8]), fluid.data("y", [None, 1], "int64")
    conv = fluid.layers.conv2d(image, 4, 3, bias_attr=False)
    pooled = fluid.layers.pool2d(fluid.layers.batch_norm(conv, act="relu"), 2, "max", 2)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(pooled, 3), y))
    optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.Adam(0.01), init_loss_scaling=128.0)
    optimizer.minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    images = np.random.RandomState(2).uniform(-1, 1, (6, 1, 8, 8)).astype("float32")
    labels = np.arange(6).reshape(6, 1) % 3
    losses = [exe.run(feed={"image": images, "y": labels}, fetch_list=[loss])[0][0] for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("dynamic", [False, True])
def test_places_train_like_one_place(fluid, dynamic):
    """Dynamic scaling depends on the gradients of all examples, so such a program runs on one place."""
    ends = []
    for places in (1, 2):
        with (
            fluid.unique_name.guard(),
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
        ):
            loss, _ = network(fluid, dict(init_loss_scaling=8.0, use_dynamic_loss_scaling=dynamic))
            exe = fluid.Executor()
            exe.run(fluid.default_startup_program())
            program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
                loss_name=loss.name, places=[fluid.CPUPlace()] * places
            )
            for step in range(4):
                exe.run(program, feed=feed(step), fetch_list=[loss])
            ends.append(np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor()))
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=2e-3)


def test_decorate_requires_an_optimizer(fluid):
    with pytest.raises(TypeError, match="decorate takes an optimizer, not NoneType"):
        fluid.contrib.mixed_precision.decorate(None)


def test_dynamic_scaling_with_pservers_is_refused(fluid):
    network(fluid, dict(init_loss_scaling=8.0))
    with pytest.raises(ValueError, match="use_dynamic_loss_scaling=False, or train on ranks.*E-plan-loss-scaling"):
        fluid.DistributeTranspiler().transpile(0, pservers="127.0.0.1:6174", trainers=2)


def test_a_merged_batch_works_with_static_scaling_only(fluid):
    for dynamic in (False, True):
        with (
            fluid.unique_name.guard(),
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
        ):
            loss, _ = network(fluid, dict(init_loss_scaling=8.0, use_dynamic_loss_scaling=dynamic))
            strategy = fluid.BuildStrategy()
            strategy._finalize_strategy_and_create_passes().append_pass("multi_batch_merge_pass").set("num_repeats", 2)
            program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
                loss_name=loss.name, build_strategy=strategy
            )
            exe = fluid.Executor()
            exe.run(fluid.default_startup_program())
            if dynamic:
                with pytest.raises(ValueError, match="dynamic loss scaling.*E-batch-merge"):
                    exe.run(program, feed=feed(0))
            else:
                merged = [exe.run(program, feed=feed(step), fetch_list=[loss])[0][0] for step in range(4)]
    np.testing.assert_allclose(
        merged, train(fluid, dict(init_loss_scaling=8.0, use_dynamic_loss_scaling=False), steps=4)[0], rtol=5e-3
    )


PSERVERS = """
    import os
    import numpy as np
    import penstock.fluid as fluid
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 1], 'int64')
    hidden = fluid.layers.fc(x, 8, act='relu')
    loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 3, act='softmax'), y))
    fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1), init_loss_scaling=8.0,
                                           use_dynamic_loss_scaling=False).minimize(loss)
    rank = int(os.environ.get('PADDLE_TRAINER_ID', 0))
    t = fluid.DistributeTranspiler()
    t.transpile(rank, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
    exe = fluid.Executor()
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        exe.run(main)
    else:
        main = t.get_trainer_program()
        exe.run(fluid.default_startup_program())
        for step in range(4):
            random = np.random.RandomState(step)
            xs, ys = random.uniform(-1, 1, (6, 4)).astype('float32'), random.randint(0, 3, (6, 1))
            mine = slice(3 * rank, 3 * rank + 3)
            exe.run(main, feed={'x': xs[mine], 'y': ys[mine]}, fetch_list=[loss])
        np.savez('trainer.%d.npz' % rank, **{p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor())
                                             for p in fluid.default_main_program().all_parameters()})
        exe.close()
"""


def test_static_scaling_trains_with_pservers(fluid, tmp_path):
    _, params = train(fluid, dict(init_loss_scaling=8.0, use_dynamic_loss_scaling=False), steps=4)
    (tmp_path / "train.py").write_text(textwrap.dedent(PSERVERS))
    done = subprocess.run(
        [sys.executable, "-m", "penstock.distributed.launch", "--server_num", "2", "--worker_num", "2", "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        got = np.load(tmp_path / (f"trainer.{rank}.npz"))
        for name, value in params.items():
            np.testing.assert_allclose(got[name], value, rtol=0, atol=2e-3)


RANKS = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    import penstock.hvd as hvd
    hvd.init()
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 1], 'int64')
    hidden = fluid.layers.fc(x, 8, act='relu')
    loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 3, act='softmax'), y))
    main = fluid.default_main_program()
    if sys.argv[1] == 'fleet':
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.collective import DistributedStrategy, fleet
        fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
        strategy = DistributedStrategy()
        strategy.use_amp, strategy.amp_loss_scaling = True, 8.0
        strategy.mode, strategy.collective_mode = 'collective', 'grad_allreduce'
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
        main = fleet.main_program
    else:
        optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1), init_loss_scaling=8.0)
        if sys.argv[1] == 'hvd':
            optimizer = hvd.DistributedOptimizer(optimizer)
        optimizer.minimize(loss)
    exe = fluid.Executor()
    if sys.argv[1] == 'data_parallel':
        strategy = fluid.BuildStrategy()
        strategy.num_trainers, strategy.trainer_id = hvd.size(), hvd.rank()
        main = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=strategy)
    exe.run(fluid.default_startup_program())
    for step in range(4):
        random = np.random.RandomState(step)
        xs, ys = random.uniform(-1, 1, (6, 4)).astype('float32'), random.randint(0, 3, (6, 1))
        mine = slice(3 * hvd.rank(), 3 * hvd.rank() + 3)
        exe.run(main, feed={'x': xs[mine], 'y': ys[mine]}, fetch_list=[loss])
    for p in sorted(fluid.default_main_program().all_parameters(), key=lambda p: p.name):
        print(p.name, ' '.join('%.5f' % value for value in np.array(
            fluid.global_scope().find_var(p.name).get_tensor()).reshape(-1)))
"""


@pytest.mark.parametrize("way", ["data_parallel", "hvd", "fleet"])
def test_ranks_train_equally_and_like_one_process(fluid, tmp_path, way):
    _, params = train(fluid, dict(init_loss_scaling=8.0), steps=4)
    with Ranks(tmp_path, RANKS, 2, way) as job:
        first, second = job.end_well()
    assert first == second
    for line in first.splitlines():
        name, *values = line.split()
        np.testing.assert_allclose([float(value) for value in values], params[name].reshape(-1), rtol=0, atol=2e-3)
