"""Updates of parameters under a condition train with pservers as on one machine: LookaheadOptimizer, Switch and cond
after minimize."""

import textwrap

import numpy as np
import penstock
import pytest
from test_updates import NET as PLAIN_NET
from test_updates import require_one_machines, train

NET = PLAIN_NET + textwrap.dedent('''
    def lookahead(loss):
        fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.5), alpha=0.5, k=2).minimize(loss)

    def lookahead_of_adam(loss):
        rate = L.exponential_decay(0.02, 2, 0.5, staircase=True)
        fluid.optimizer.LookaheadOptimizer(fluid.optimizer.Adam(rate), alpha=0.25, k=3).minimize(loss)

    def lookahead_of_rows(loss):
        """The gradient of the table has rows."""
        fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.3), k=2).minimize(loss)

    def fluids_lookahead(loss):
        """The ops that Fluid 1.8.5 appends, which have no role."""
        startup, main = fluid.default_startup_program(), fluid.default_main_program()
        pairs = fluid.optimizer.Momentum(0.2, 0.9).minimize(loss)[1]
        slow = {}
        for p, _ in pairs:
            name = p.name + '@SLOW'
            slow[p.name] = main.global_block().create_var(name=name, shape=p.shape, dtype=p.dtype, persistable=True)
            kept = startup.global_block().create_var(name=name, shape=p.shape, dtype=p.dtype, persistable=True)
            startup.global_block().append_op('assign', {'X': startup.global_block().var(p.name)}, {'Out': kept})
        k = L.create_global_var(name='lookahead_k', shape=[1], value=2, dtype='int32', persistable=True)
        alpha = L.create_global_var(name='lookahead_alpha', shape=[1], value=0.5, dtype='float32', persistable=True)
        step = L.create_global_var(name='lookahead_step', shape=[1], value=0, dtype='int32', persistable=True)
        L.increment(x=step, value=1.0, in_place=True)
        zero = L.fill_constant(shape=[1], dtype='int32', value=0)
        one = L.fill_constant(shape=[1], dtype='float32', value=1.0)
        mod = L.elementwise_mod(step, k)
        with L.control_flow.Switch() as switch:
            with switch.case(mod == zero):
                for p, _ in pairs:
                    moved = L.elementwise_add(L.elementwise_mul(p, alpha),
                                              L.elementwise_mul(slow[p.name], L.elementwise_sub(one, alpha)))
                    L.assign(input=moved, output=slow[p.name])
                    L.assign(input=moved, output=p)
            with switch.default():
                pass

    def counted(name='counter'):
        count = L.create_global_var([1], 0.0, 'float32', persistable=True, name=name)
        L.increment(count)
        return count

    def cases(loss):
        """Three cases, of which one sets the counter back."""
        pairs = fluid.optimizer.SGD(0.3).minimize(loss)[1]
        with fluid.default_main_program()._optimized_guard([]):
            count = counted()
            with L.Switch() as switch:
                with switch.case(count < L.fill_constant([1], 'float32', 1.5)):
                    for p, _ in pairs:
                        L.assign(p * 0.9, p)
                with switch.case(count < L.fill_constant([1], 'float32', 2.5)):
                    for p, _ in pairs:
                        L.assign(p + 0.01, p)
                with switch.default():
                    L.assign(L.fill_constant([1], 'float32', 0.0), count)
                    for p, _ in pairs:
                        L.assign(L.clip(p, -0.02, 0.02), p)

    def functions(loss):
        """cond with a function for each case, one of them with a condition of its own."""
        pairs = fluid.optimizer.SGD(0.3).minimize(loss)[1]
        count = counted()
        two, three = (L.fill_constant([1], 'float32', value) for value in (2.0, 3.0))
        for p, g in pairs:
            scaled = lambda factor, p=p: lambda: L.assign(p * factor, p) and None
            inner = lambda p=p, scaled=scaled: L.cond(count < three, scaled(0.5), scaled(1.5)) and None
            with updating(p, g):
                L.cond(count < two, scaled(0.9), inner)

    def returned(loss):
        """A value that cond returns, by the number of steps that autoincreased_step_counter counts."""
        step = L.cast(L.autoincreased_step_counter(), 'int32')
        pairs = fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)[1]
        even = L.equal(L.elementwise_mod(step, L.fill_constant([1], 'int32', 2)), L.fill_constant([1], 'int32', 0))
        for p, g in pairs:
            with updating(p, g):
                L.assign(L.cond(even, lambda: p * 0.5, lambda: p + g * 0.1), p)

    def by_its_norm(loss):
        """A condition that depends on the parameter, which is then not sliced."""
        for p, g in fluid.optimizer.SGD(0.5).minimize(loss)[1]:
            with updating(p, g):
                norm = L.sqrt(L.reduce_sum(L.square(p)))
                limit = L.fill_constant([1], 'float32', 0.5)
                with L.Switch() as switch:
                    with switch.case(norm > limit):
                        L.assign(L.elementwise_mul(p, limit / norm), p)

    def state_alone(loss):
        """The block writes state of the parameter, which a plain op then reads."""
        pairs = fluid.optimizer.SGD(0.3).minimize(loss)[1]
        count = counted()
        due = L.equal(L.elementwise_mod(L.cast(count, 'int32'), L.fill_constant([1], 'int32', 2)),
                      L.fill_constant([1], 'int32', 0))
        for p, g in pairs:
            far = L.create_global_var(p.shape, 0.0, 'float32', persistable=True, name=p.name + '_far')
            with updating(p, g):
                with L.Switch() as switch:
                    with switch.case(due):
                        L.assign(far * 0.5 + p * 0.5, far)
                L.assign(p * 0.75 + far * 0.25, p)

    def decay_without_role(loss):
        """Not conditional: a decay after minimize that has no role."""
        for p, g in fluid.optimizer.SGD(0.3).minimize(loss)[1]:
            L.assign(p - p * p * 0.1, p)
''')

KINDS = [
    "lookahead",
    "lookahead_of_adam",
    "lookahead_of_rows",
    "fluids_lookahead",
    "cases",
    "functions",
    "returned",
    "by_its_norm",
    "state_alone",
    "decay_without_role",
]
JOBS = [(kind, 1 << 20) for kind in KINDS] + [("fluids_lookahead", 10000)]


@pytest.mark.parametrize("kind, chunk_bytes", JOBS)
def test_two_trainers_and_two_pservers_equal_one_machine(tmp_path, kind, chunk_bytes):
    saved, local = train(tmp_path, kind, net=NET, CHUNK_BYTES=str(chunk_bytes))
    require_one_machines(saved, {name: value for name, value in local.items() if name in saved[0]}, loss_rtol=1e-3)


@pytest.mark.parametrize("kind", ["by_its_norm", "decay_without_role"])
def test_one_trainer_of_an_asynchronous_job_equals_one_machine(tmp_path, kind):
    (saved,), local = train(tmp_path, kind, trainers=1, net=NET, MODE="async")
    for name, value in local.items():
        np.testing.assert_allclose(saved[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["lookahead", "fluids_lookahead"])
def test_geo_trainers_update_slow_weights_themselves(tmp_path, kind):
    (saved,), local = train(tmp_path, kind, trainers=1, net=NET, MODE="geo")
    assert set(saved) == set(local)


def transpiled(fluid, kind, **options):
    names = {}
    exec(compile(NET, "net", "exec"), names)
    names["build"](kind)
    return penstock.transpile(
        fluid.default_main_program(), fluid.default_startup_program(), "a:1,b:1", trainers=2, **options
    )


def test_slow_weights_are_sliced_and_moved_to_the_pservers(fluid):
    roles = transpiled(fluid, "lookahead")
    for program in (roles.trainers[0].main, roles.trainers[0].startup):
        assert not any("@SLOW" in name for name in program.global_block().vars)
    shapes = [role.main.global_block().var("wide@SLOW").shape for role in roles.pservers.values()]
    assert shapes == [(4, 2400), (4, 2400)]


@pytest.mark.parametrize("kind", ["lookahead", "cases", "state_alone"])
@pytest.mark.parametrize("options", [{"sync": False}, {"sync": False, "runtime_split_send_recv": True}])
def test_conditions_on_the_step_number_require_sync_mode(fluid, kind, options):
    with pytest.raises(penstock.ProgramError) as error:
        transpiled(fluid, kind, **options)
    assert error.value.id == "E-plan-update-op" and "use a synchronous mode or geo mode" in str(error.value)


def test_global_clipping_works_with_conditional_updates(fluid):
    names = {}
    exec(compile(NET, "net", "exec"), names)
    loss = names["cost"]()
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    fluid.optimizer.LookaheadOptimizer(fluid.optimizer.Adam(0.1), k=2).minimize(loss)
    roles = penstock.transpile(
        fluid.default_main_program(), fluid.default_startup_program(), "a:1,b:1", trainers=2, clip="global"
    )
    assert "increment" not in [op.type for op in roles.trainers[0].main.global_block().ops]


def test_random_numbers_under_a_condition_are_refused(fluid):
    layers = fluid.layers
    loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 1, param_attr="w", bias_attr=False))
    ((p, g),) = fluid.optimizer.SGD(0.1).minimize(loss)[1]
    due = layers.reduce_sum(p) > layers.fill_constant([1], "float32", 0.0)
    with fluid.default_main_program()._optimized_guard([p, g]):
        with layers.Switch() as switch:
            with switch.case(due):
                layers.assign(p * layers.uniform_random([1], "float32"), p)
    with pytest.raises(penstock.ProgramError) as error:
        penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(), "a:1", trainers=2)
    assert error.value.id == "E-plan-update-op"
