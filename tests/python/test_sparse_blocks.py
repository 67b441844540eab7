"""Ops with sparse gradients in jobs with pservers, in any block: lookups, pooled ones too, hsigmoid and nce, in the
main block, in loops, branches and recurrent layers. A job of two trainers ends with the parameters of one machine."""

import textwrap

import numpy as np
import pytest
from fleet_jobs import launch_well

# Builds NETS[kind](table arguments), a loss, from w (sequences of words), b (words) and y.
NETS = """
    import os
    import sys
    import numpy as np
    import penstock.fluid as fluid

    L = fluid.layers
    KIND, TABLE = sys.argv[1], dict(is_sparse=True, is_distributed=sys.argv[2] == 'distributed', param_attr='emb')


    def word(ids):
        return L.embedding(ids, [30, 4], **TABLE)


    def dynamic(w, b):
        rnn = L.DynamicRNN()
        with rnn.block():
            rows = word(rnn.step_input(w))
            memory = rnn.memory(shape=[6], value=0.0)
            h = L.fc([rows, memory], 6, act='tanh')
            rnn.update_memory(memory, h)
            rnn.output(h)
        return L.sequence_last_step(rnn())


    def dynamic_and_outside(w, b):    # one table for both
        return L.concat([dynamic(w, b), word(b)], 1)


    def static(w, b):
        steps = L.transpose(L.concat([b, b, b], 1), [1, 0])
        steps, batch = L.reshape(steps, [3, -1, 1]), L.cast(b, 'float32')
        rnn = L.StaticRNN()
        with rnn.step():
            rows = word(rnn.step_input(steps))
            memory = rnn.memory(shape=[-1, 6], batch_ref=batch, ref_batch_dim_idx=0, init_value=0.0)
            h = L.fc([rows, memory], 6, act='tanh')
            rnn.update_memory(memory, h)
            rnn.step_output(h)
        return L.reduce_sum(rnn(), 0)


    def loop(w, b):
        i, end = L.fill_constant([1], 'int64', 0), L.fill_constant([1], 'int64', 3)
        i.stop_gradient = end.stop_gradient = True
        rows = L.array_write(word(b), L.fill_constant([1], 'int64', 0))
        go = L.less_than(i, end)
        while_op = L.While(go)
        with while_op.block():
            before = L.array_read(rows, i)
            now = L.elementwise_add(L.scale(before, 0.5), word(b))
            L.increment(i, in_place=True)
            L.array_write(now, i, rows)
            L.less_than(i, end, cond=go)
        return L.array_read(rows, i)


    def branches(w, b):    # each example takes one
        chosen = L.IfElse(L.less_than(L.cast(b, 'float32'), L.fill_constant_batch_size_like(b, [-1, 1], 'float32', 9)))
        with chosen.true_block():
            chosen.output(word(chosen.input(b)))
        with chosen.false_block():
            chosen.output(L.scale(word(chosen.input(b)), 2.0))
        return chosen()[0]


    def rarely(w, b):    # only trainer 1 has a large word
        large = L.greater_than(L.reduce_max(L.cast(b, 'float32')), L.fill_constant([1], 'float32', 25.0))
        return L.cond(large, lambda: word(b),
                      lambda: L.fill_constant_batch_size_like(b, [-1, 4], 'float32', 0.5))


    def pooled(w, b):
        return fluid.contrib.layers.fused_embedding_seq_pool(w, [30, 4], is_sparse=True, param_attr='emb')


    def pooled_in_branches(w, b):
        few = L.less_than(L.reduce_max(L.cast(b, 'float32')), L.fill_constant([1], 'float32', 99.0))
        return L.cond(few, lambda: pooled(w, b), lambda: L.scale(pooled(w, b), 2.0))


    def hsigmoid(w, b):
        return L.hsigmoid(word(b), b, 30, is_sparse=True, param_attr='classes', bias_attr='class_bias')


    def hsigmoid_alone(w, b):
        return L.hsigmoid(L.fc(L.scale(L.cast(b, 'float32'), 0.03), 4), b, 30, is_sparse=True, param_attr='classes')


    def hsigmoid_in_branches(w, b):
        few = L.less_than(L.reduce_max(L.cast(b, 'float32')), L.fill_constant([1], 'float32', 99.0))
        return L.cond(few, lambda: hsigmoid(w, b), lambda: L.scale(hsigmoid(w, b), 2.0))


    def hsigmoid_in_steps(w, b):
        steps = L.reshape(L.transpose(L.concat([b, b], 1), [1, 0]), [2, -1, 1])
        rnn, batch = L.StaticRNN(), L.cast(b, 'float32')
        with rnn.step():
            now = rnn.step_input(steps)
            memory = rnn.memory(shape=[-1, 1], batch_ref=batch, ref_batch_dim_idx=0)
            cost = L.elementwise_add(hsigmoid(w, now), memory)
            rnn.update_memory(memory, cost)
            rnn.step_output(cost)
        return L.reduce_sum(rnn(), 0)


    def both(w, b):
        cost = L.nce(word(b), b, 30, num_neg_samples=4, seed=5, is_sparse=True, param_attr='nce.w', bias_attr='nce.b')
        return L.elementwise_add(hsigmoid(w, b), cost)


    def build(half=''):
        w, b = L.data('w' + half, [1], dtype='int64', lod_level=1), L.data('b' + half, [1], dtype='int64')
        hidden = globals()[KIND](w, b)
        end = L.fc(L.scale(hidden, 0.1), 1, param_attr='out.w', bias_attr='out.b')
        return L.mean(L.square_error_cost(end, L.data('y' + half, [1]))), hidden


    def feed(step, part, parts):
        r = np.random.RandomState(step)
        lengths = [3, 2, 4, 1]
        words = [r.randint(0, 30, (n, 1)).astype('int64') for n in lengths]
        b = np.array([[step], [20 - step], [step + 5], [29]], 'int64')
        y = r.rand(4, 1).astype('float32')
        mine = list(range(part * 4 // parts, (part + 1) * 4 // parts))
        sequences = fluid.create_lod_tensor(np.concatenate([words[i] for i in mine]), [[lengths[i] for i in mine]],
                                            fluid.CPUPlace())
        return {'w': sequences, 'b': b[mine], 'y': y[mine]}


    def feed_of(step, trainer):
        # The samples of nce depend on the position in the batch: both trainers have all examples.
        return feed(step, 0, 1) if KIND == 'both' else feed(step, trainer, 2)


    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 11
    test, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(test, start), fluid.unique_name.guard():
        test_loss, hidden = build()
    test = test.clone(for_test=True)
    if len(sys.argv) > 3:    # on one machine, each half of a batch by itself
        loss = L.scale(L.elementwise_add(build('0')[0], build('1')[0]), 0.5)
    else:
        loss, _ = build()
    fluid.optimizer.SGD(0.2).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
"""

JOB = (
    NETS
    + """
    from job_script import launched_program_of
    trainer = int(os.environ.get('PADDLE_TRAINER_ID', '0'))
    t = fluid.DistributeTranspiler()
    t.transpile(trainer, pservers=os.environ['PADDLE_PSERVERS_IP_PORT_LIST'], trainers=2)
    program = launched_program_of(exe, t)
    exe.run(fluid.default_startup_program())
    read = {name for block in test._prune([hidden]).blocks for op in block.ops for name in op.input_arg_names}
    losses = [float(np.ravel(exe.run(program, feed=feed_of(step, trainer), fetch_list=[loss])[0])[0])
              for step in range(4)]
    after = float(np.ravel(exe.run(test, feed=feed(9, 0, 1), fetch_list=[test_loss])[0])[0])
    np.savez('worker%d.npz' % trainer, losses=losses, after=after)
    if trainer == 0:
        fluid.io.save_params(exe, 'params', program)
        fluid.io.save_inference_model('model', [name for name in ('w', 'b') if name in read], [hidden], exe)
    exe.close()
"""
)


def alone(fluid, kind, table, monkeypatch):
    """Trains on one machine; returns (losses, the loss of the test program afterwards, parameters, names of NETS)."""
    halves = ["halves"] if kind == "rarely" else []
    monkeypatch.setattr("sys.argv", ["net", kind, table] + halves)
    names = {}
    exec(textwrap.dedent(NETS), names)
    exe, feed = names["exe"], names["feed"]
    exe.run(fluid.default_startup_program())

    def of_step(step):
        if not halves:
            return feed(step, 0, 1)
        return {name + str(half): value for half in (0, 1) for name, value in feed(step, half, 2).items()}

    losses = [exe.run(feed=of_step(step), fetch_list=[names["loss"]])[0].item() for step in range(4)]
    after = exe.run(names["test"], feed=feed(9, 0, 1), fetch_list=[names["test_loss"]])[0].item()
    params = {
        p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor())
        for p in fluid.default_main_program().all_parameters()
    }
    return losses, after, params, names


def close(got, want, name=""):
    np.testing.assert_allclose(got, want, rtol=5e-5, atol=5e-6, err_msg=name)


CASES = [
    (kind, "sparse")
    for kind in (
        "dynamic",
        "dynamic_and_outside",
        "static",
        "loop",
        "branches",
        "rarely",
        "pooled",
        "pooled_in_branches",
        "hsigmoid",
        "hsigmoid_alone",
        "hsigmoid_in_branches",
        "hsigmoid_in_steps",
        "both",
    )
]
CASES += [(kind, "distributed") for kind in ("dynamic", "dynamic_and_outside", "rarely", "both")]


@pytest.mark.parametrize("kind, table", CASES)
def test_a_job_trains_the_parameters_of_one_machine(tmp_path, fluid, monkeypatch, kind, table):
    workers, _ = launch_well(tmp_path, JOB, kind, table)
    losses, after, params, names = alone(fluid, kind, table, monkeypatch)
    close(np.mean([worker["losses"] for worker in workers], 0), losses, "losses")
    for worker in workers:
        close(worker["after"], after, "the test program after training")
    saved = fluid.io.load_program_state(str(tmp_path / "params"))
    assert saved.keys() == params.keys()
    for name, value in params.items():
        close(saved[name], value, name)
    with fluid.scope_guard(fluid.Scope()):
        exe, feed = names["exe"], names["feed"](9, 0, 1)
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
        got = exe.run(program, feed={name: feed[name] for name in feeds}, fetch_list=fetches, return_numpy=False)[0]
    want = exe.run(names["test"], feed=feed, fetch_list=[names["hidden"]], return_numpy=False)[0]
    close(np.array(got), np.array(want), "the saved model")
