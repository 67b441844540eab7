"""Jobs in which several ops update a parameter train as on one machine: decoupled weight decay, clipping after the
update, updates that a script writes itself."""

import textwrap

import numpy as np
import penstock
import pytest
from test_jobs import Job

NET = textwrap.dedent('''
    import numpy as np
    import penstock.fluid as fluid

    L = fluid.layers
    SPARSE = ('sparse_decay', 'lookahead_of_rows')    # trainers do not hold the table

    def updating(p, g):
        return fluid.default_main_program()._optimized_guard([p, g])

    def cost(sparse=False):
        x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1], 'int64')
        ids = fluid.data('ids', [None, 1], 'int64')
        row = L.reshape(fluid.embedding(ids, [6, 4], is_sparse=sparse, param_attr='table'), [-1, 4])
        hidden = L.fc([x, row], 2400, act='tanh', param_attr=['wide', 'wide_row'], bias_attr='b')
        return L.mean(L.cross_entropy(L.fc(hidden, 4, act='softmax', param_attr='last', bias_attr=False), y))

    def adamw(loss):
        """AdamW of contrib, beside a clip by the norm over all gradients and a regularizer."""
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(0.5))
        adamw = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
        adamw(learning_rate=0.01, weight_decay=0.1, regularization=fluid.regularizer.L2Decay(0.01)).minimize(loss)

    def bert(loss):
        """As BERT's and ERNIE's scripts: a rate with warmup, copies from before the update, no decay of biases."""
        rate = L.linear_lr_warmup(L.noam_decay(64, 20, 0.5), 3, 0.0, 0.05)
        before = {p.name: p * 1.0 for p in fluid.default_main_program().all_parameters()}
        for value in before.values():
            value.stop_gradient = True
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
        pairs = fluid.optimizer.Adam(rate).minimize(loss)[1]
        for p, g in pairs:
            if p.name != 'b':
                with updating(p, g), fluid.name_scope('weight_decay'):
                    L.assign(p - before[p.name] * 0.1 * rate, p)

    def constant_rate(loss):
        """Reads a constant rate, a constant of another op, and a mask that the startup program makes."""
        rate = L.create_global_var([1], 0.2, 'float32', persistable=True, name='the_rate')
        tenth = L.fill_constant([1], 'float32', 0.1)
        pairs = fluid.optimizer.Momentum(rate, 0.9).minimize(loss)[1]
        for p, g in pairs:
            mask = L.create_global_var(p.shape, 0.75, 'float32', persistable=True, name=p.name + '_mask')
            with updating(p, g):
                L.assign(p - p * mask * rate * tenth, p)

    def clipped(loss):
        """As WGAN: every parameter stays in a range."""
        for p, g in fluid.optimizer.RMSProp(0.05, epsilon=1e-2).minimize(loss)[1]:
            with updating(p, g):
                L.assign(L.clip(p, -0.02, 0.02), p)

    def max_norm(loss):
        """Limits the norm of each column, for which a pserver needs the whole parameter."""
        for p, g in fluid.optimizer.SGD(0.5).minimize(loss)[1]:
            if len(p.shape) == 2:
                with updating(p, g):
                    norm = L.sqrt(L.reduce_sum(L.square(p), dim=0, keep_dim=True))
                    L.assign(L.elementwise_mul(p, L.elementwise_div(L.clip(norm, 0.0, 0.5), norm + 1e-6)), p)

    def lars(loss):
        """Layer-wise rates, written by hand: norms of parameter and gradient."""
        optimizer = fluid.optimizer.SGD(0.5)
        pairs = optimizer.backward(loss)
        for p, g in pairs:
            with updating(p, g):
                of_p, of_g = (L.sqrt(L.reduce_sum(L.square(v))) for v in (p, g))
                p.optimize_attr['learning_rate'] = 0.5 * of_p / (of_g + 0.01 * of_p)
        optimizer.apply_gradients(pairs)

    def by_hand(loss):
        """No optimizer at all: momentum written with assign after append_backward."""
        for p, g in fluid.backward.append_backward(loss):
            speed = L.create_global_var(p.shape, 0.0, 'float32', persistable=True, name=p.name + '_speed')
            with updating(p, g):
                L.assign(speed * 0.9 + g, speed)
            L.assign(p - 0.1 * speed, p)

    def sgd_op(loss):
        """The update as an op that the script appends without a role."""
        rate = L.create_global_var([1], 0.3, 'float32', persistable=True, name='the_rate')
        for p, g in fluid.backward.append_backward(loss):
            p.block.append_op('sgd', {'Param': p, 'Grad': g, 'LearningRate': rate}, {'ParamOut': p})

    def sparse_decay(loss):
        """A table whose gradient has rows decays as a whole."""
        before = {p.name: p * 1.0 for p in fluid.default_main_program().all_parameters()}
        for p, g in fluid.optimizer.SGD(0.3).minimize(loss)[1]:
            with updating(p, g):
                L.assign(p - before[p.name] * 0.02, p)

    def build(kind):
        fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
        loss = cost(sparse=kind in SPARSE)
        globals()[kind](loss)
        return loss
''')

JOB = textwrap.dedent("""
    import os, sys
    from job_script import program_of

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    trainers = 1 if role == 'local' else int(os.environ['TRAINERS'])
    loss = build(os.environ['KIND'])
    exe = fluid.Executor(fluid.CPUPlace())

    def feed(step):
        random = np.random.RandomState(step)
        whole = {'x': random.rand(8, 8).astype('float32'), 'y': random.randint(0, 4, (8, 1)),
                 'ids': random.randint(0, 6, (8, 1))}
        part = slice(index * 8 // trainers, (index + 1) * 8 // trainers)
        return {name: value[part] for name, value in whole.items()}

    program = fluid.default_main_program()
    names = [p.name for p in program.all_parameters()]
    if role != 'local':
        config = fluid.DistributeTranspilerConfig()
        config.chunk_bytes = int(os.environ.get('CHUNK_BYTES', config.chunk_bytes))
        mode = os.environ.get('MODE', 'sync')
        if mode == 'half_async':
            config.sync_mode, config.runtime_split_send_recv, config.half_async = False, True, True
        if mode == 'geo':
            config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, 1
        t = (fluid.transpiler.GeoSgdTranspiler if mode == 'geo' else fluid.DistributeTranspiler)(config)
        t.transpile(index if role == 'trainer' else 0, pservers=os.environ['ENDPOINTS'], trainers=trainers,
                    **({'sync_mode': False} if mode in ('async', 'half_async') else {}))
        program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    communicator = None
    if role != 'local' and mode in ('geo', 'half_async'):
        from penstock.fluid.communicator import Communicator, DistributedMode
        communicator = Communicator(program, getattr(DistributedMode, mode.upper()))
        communicator.start()
    losses = [exe.run(program, feed=feed(step), fetch_list=[loss])[0][0] for step in range(steps)]
    if communicator is not None:
        communicator.stop()
    scope = fluid.global_scope()
    held = [name for name in names if role == 'local' or name != 'table' or os.environ['KIND'] not in SPARSE]
    values = {name: np.array(scope.find_var(name).get_tensor()) for name in held}
    np.savez(os.path.join(out, role + str(index)), losses=losses, **values)
    exe.close()
""")

KINDS = ["adamw", "bert", "constant_rate", "clipped", "max_norm", "lars", "by_hand", "sgd_op", "sparse_decay"]


def train(folder, kind, trainers=2, net=NET, **environment):
    """Returns (what each trainer saved, what one machine saved)."""
    return Job(folder, net + JOB).train_and_compare(trainers, KIND=kind, **environment)


def require_one_machines(saved, local, loss_rtol):
    """Fails unless two trainers have saved equal values, those of one machine, and the mean of their losses is its."""
    np.testing.assert_allclose(np.mean([one["losses"] for one in saved], axis=0), local["losses"], rtol=loss_rtol)
    for name in set(local) - {"losses"}:
        np.testing.assert_array_equal(saved[0][name], saved[1][name])
        np.testing.assert_allclose(saved[0][name], local[name], rtol=1e-4, atol=1e-6, err_msg=name)


# Each trainer clips by the norm of its own gradients.
OF_EACH_TRAINER = ("adamw", "bert")


@pytest.mark.parametrize("kind", KINDS)
def test_two_trainers_and_two_pservers_equal_one_machine(tmp_path, kind):
    saved, local = train(tmp_path, kind)
    losses = local.pop("losses")
    for name in saved[0]:
        if name != "losses":
            np.testing.assert_array_equal(saved[0][name], saved[1][name])
    if kind in OF_EACH_TRAINER:  # trainers clip before the mean: the job is compared with one trainer below
        return
    # The losses of the wide net differ by a few 1e-4; its parameters, below, by less than 1e-4.
    rtol = 1e-3 if kind == "clipped" else 1e-4
    np.testing.assert_allclose(np.mean([one["losses"] for one in saved], axis=0), losses, rtol=rtol)
    for name, value in local.items():
        if name in saved[0]:
            np.testing.assert_allclose(saved[0][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", OF_EACH_TRAINER)
def test_one_trainer_and_two_pservers_equal_one_machine(tmp_path, kind):
    (saved,), local = train(tmp_path, kind, trainers=1)
    for name, value in local.items():
        np.testing.assert_allclose(saved[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("mode", ["async", "half_async", "geo"])
@pytest.mark.parametrize("kind", ["bert", "constant_rate", "max_norm"])
def test_one_trainer_of_an_asynchronous_job_equals_one_machine(tmp_path, kind, mode):
    (saved,), local = train(tmp_path, kind, trainers=1, MODE=mode)
    if mode != "async":  # the communicator's thread decides when a step begins
        assert set(saved) == set(local)
        return
    for name, value in local.items():
        np.testing.assert_allclose(saved[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def built(fluid, kind):
    names = {}
    exec(compile(NET, "net", "exec"), names)
    names["build"](kind)
    return penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(), "a:1,b:1", trainers=2)


def op_types(program):
    return [op.type for block in program.blocks[1:] for op in block.ops]


def test_copies_read_only_by_updates_leave_the_trainer(fluid):
    roles = built(fluid, "bert")
    ops = roles.trainers[0].main.global_block().ops
    copied = [op.input("X") for op in ops if op.type == "scale" and op.attr("op_role") == 0 and op.attr("scale") == 1.0]
    assert copied == [["b"]], "the copy that no update reads"
    decays = sum(op_types(role.main).count("elementwise_mul") for role in roles.pservers.values())
    assert decays == 5, "four parameters, of which one has two slices"


@pytest.mark.parametrize("kind, slices", [("clipped", 2), ("max_norm", 1)])
def test_parameters_are_sliced_unless_updates_need_the_whole(fluid, kind, slices):
    lines = built(fluid, kind).plan.split("param ")
    wide = next(text for text in lines if text.startswith("wide :"))
    assert wide.count("rows [") == slices


@pytest.mark.parametrize(
    "what, id",
    [
        ("of the batch", "E-plan-update-source"),
        ("of another parameter", "E-plan-update-source"),
        ("random", "E-plan-update-op"),
        ("a sharded table", "E-plan-table-update"),
        ("a second optimizer", "E-plan-updated-twice"),
        ("lookahead in async mode", "E-plan-update-op"),
    ],
)
def test_updates_that_pservers_cannot_compute_are_refused(fluid, what, id):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    rows = fluid.layers.reshape(
        fluid.embedding(
            fluid.data("ids", [None, 1], "int64"),
            [6, 4],
            is_sparse=True,
            is_distributed=what == "a sharded table",
            param_attr="table",
        ),
        [-1, 4],
    )
    h = layers.fc(x + rows, 4, param_attr="first", bias_attr=False)
    loss = layers.mean(layers.fc(h, 1, param_attr="second", bias_attr=False))
    optimizer = fluid.optimizer.SGD(0.1)
    if what == "lookahead in async mode":
        optimizer = fluid.optimizer.LookaheadOptimizer(optimizer)
    pairs = {p.name: (p, g) for p, g in optimizer.minimize(loss)[1]}
    p, g = pairs["table" if what == "a sharded table" else "second"]
    if what == "a second optimizer":
        fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.square(h)))
    elif what != "lookahead in async mode":
        with fluid.default_main_program()._optimized_guard([p, g]):
            read = {
                "of the batch": lambda: layers.reduce_mean(h),
                "of another parameter": lambda: layers.reduce_mean(pairs["first"][0]),
                "random": lambda: p * layers.uniform_random([1], "float32"),
                "a sharded table": lambda: p * 0.1,
            }[what]()
            layers.assign(p - read, p)
    with pytest.raises((penstock.ProgramError, NotImplementedError)) as error:  # Lookahead trains in sync mode
        penstock.transpile(
            fluid.default_main_program(),
            fluid.default_startup_program(),
            "a:1,b:1",
            trainers=2,
            sync=what != "lookahead in async mode",
        )
    assert error.value.id == id, str(error.value)


def two_losses(fluid, first, second, early):
    """Two losses over the parameters a, w and b, minimized by two optimizers."""
    layers = fluid.layers
    h = layers.fc(fluid.data("x", [None, 4]), 4, param_attr="a", bias_attr=False)
    h = layers.fc(h, 4, param_attr="w", bias_attr=False)
    losses = layers.mean(h), layers.mean(layers.square(layers.fc(h, 4, param_attr="b", bias_attr=False)))
    optimizers = fluid.optimizer.SGD(0.1), fluid.optimizer.Adam(0.1)
    if not early:
        for optimizer, loss, names in zip(optimizers, losses, (first, second)):
            optimizer.minimize(loss, parameter_list=names)
        return
    pairs = [one.backward(loss, parameter_list=names) for one, loss, names in zip(optimizers, losses, (first, second))]
    for optimizer, gradients in zip(optimizers, pairs):
        optimizer.apply_gradients(gradients)


@pytest.mark.parametrize(
    "early, why",
    [(True, "pservers receive one gradient of a parameter"), (False, "is computed after the first update")],
)
def test_two_optimizers_of_one_parameter_are_refused_with_advice(fluid, early, why):
    def transpiled(first):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            two_losses(fluid, first, ["w", "b"], early)
            return penstock.transpile(
                fluid.default_main_program(), fluid.default_startup_program(), "a:1,b:1", trainers=2
            )

    with pytest.raises(penstock.ProgramError) as error:
        transpiled(["a", "w"])
    assert error.value.id == "E-plan-updated-twice"
    assert why in str(error.value) and "leave w out of the parameters of one of them" in str(error.value)
    transpiled(["a"])
