"""Habits of scripts written for Fluid: the exceptions they catch, their fetches, branches and optimizer arguments."""

import numpy as np
import penstock
import pytest


def linear(fluid, name=None):
    x = fluid.data("x", [None, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=name, bias_attr=False))
    return x, loss


def started(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def value_of(fluid, name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


X = np.array([[1, 2], [3, 4]], "float32")


@pytest.mark.parametrize("kind", ["ValueError", "TypeError", "fluid.core.EnforceNotMet", "penstock.ProgramError"])
def test_program_errors_match_the_usual_exception_types(fluid, kind):
    with pytest.raises(eval(kind), match="width of X"):
        fluid.layers.mul(fluid.data("a", [2, 3]), fluid.data("b", [4, 5]))
    assert fluid.core.EnforceNotMet is penstock.ProgramError


class TestFetches:
    @pytest.mark.parametrize("form", ["ops", "all", "beside names"])
    def test_fetching_the_result_of_minimize_runs_it(self, fluid, form):
        x, loss = linear(fluid, "w")
        ops, pairs = fluid.optimizer.SGD(0.5).minimize(loss)
        exe = started(fluid)
        before = value_of(fluid, "w")
        fetches = {"ops": [loss, ops], "all": [loss, (ops, pairs)], "beside names": [loss.name, ops, loss]}[form]
        got = exe.run(feed={"x": X}, fetch_list=fetches)
        assert len(got) == (2 if form == "beside names" else 1)
        np.testing.assert_allclose(value_of(fluid, "w"), before - 0.5 * X.mean(0)[:, None], rtol=1e-6)

    def test_one_of_two_optimizers_runs_alone(self, fluid):
        x, loss = linear(fluid, "w")
        other = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="v", bias_attr=False))
        ops, _ = fluid.optimizer.SGD(0.5).minimize(loss)
        fluid.optimizer.SGD(0.5).minimize(other)
        exe = started(fluid)
        w, v = value_of(fluid, "w"), value_of(fluid, "v")
        for _ in range(2):
            exe.run(feed={"x": X}, fetch_list=[ops])
        np.testing.assert_allclose(value_of(fluid, "w"), w - X.mean(0)[:, None], rtol=1e-6)
        np.testing.assert_array_equal(value_of(fluid, "v"), v)

    def test_pruning_keeps_unfetched_updates(self, fluid):
        x, loss = linear(fluid, "w")
        fluid.optimizer.SGD(0.5).minimize(loss)
        exe = started(fluid)
        before = value_of(fluid, "w")
        exe.run(feed={"x": X}, fetch_list=[loss], use_prune=True)
        np.testing.assert_allclose(value_of(fluid, "w"), before - 0.5 * X.mean(0)[:, None], rtol=1e-6)

    def test_fetching_other_ops_is_refused(self, fluid):
        x, loss = linear(fluid)
        exe = started(fluid)
        with pytest.raises(TypeError, match="fetch_list holds the op mean, which is not the update of an optimizer"):
            exe.run(feed={"x": X}, fetch_list=[loss.op])
        with pytest.raises(TypeError, match="or results of minimize, not 3"):
            exe.run(feed={"x": X}, fetch_list=[[3]])


class TestMinimizeInBranches:
    @pytest.mark.parametrize("layer", ["cond", "case", "switch_case"])
    @pytest.mark.parametrize("loss_inside", [True, False])
    @pytest.mark.parametrize("kind", ["SGD", "Adam", "clipped"])
    def test_only_the_taken_branch_updates(self, fluid, layer, loss_inside, kind):
        x, number = fluid.data("x", [None, 2]), fluid.data("number", [1], "int32")
        hidden = fluid.layers.fc(x, 3, param_attr="w", bias_attr=False)
        outside = None if loss_inside else fluid.layers.mean(fluid.layers.square(hidden))

        def branch(rate):
            def train():
                loss = fluid.layers.mean(fluid.layers.square(hidden)) if outside is None else outside
                clip = fluid.clip.GradientClipByGlobalNorm(0.01) if kind == "clipped" else None
                make = fluid.optimizer.Adam if kind == "Adam" else fluid.optimizer.SGD
                make(rate, grad_clip=clip).minimize(loss)
                return loss

            return train

        pred = fluid.layers.equal(number, fluid.layers.fill_constant([1], "int32", 1))
        if layer == "cond":
            loss = fluid.layers.cond(pred, branch(0.1), branch(0.2))
        elif layer == "case":
            loss = fluid.layers.case([(pred, branch(0.1))], branch(0.2))
        else:
            loss = fluid.layers.switch_case(number, {1: branch(0.1), 0: branch(0.2)})
        exe = started(fluid)
        for taken, rate in ((1, 0.1), (0, 0.2)):
            w = value_of(fluid, "w").astype("float64")
            (got,) = exe.run(feed={"x": X, "number": np.array([taken], "int32")}, fetch_list=[loss])
            np.testing.assert_allclose(got, [((X @ w) ** 2).mean()], rtol=1e-5)
            grad = X.T @ (X @ w) * 2 / (X @ w).size
            step = rate * grad
            if kind == "clipped":
                step = rate * grad * 0.01 / max(np.sqrt((grad**2).sum()), 0.01)
            elif kind == "Adam":  # the first step of either optimizer: of the rate's size, but for epsilon
                step = rate * grad / (np.abs(grad) + 1e-8 / np.sqrt(1 - 0.999))
            np.testing.assert_allclose(value_of(fluid, "w"), w - step, rtol=1e-3, atol=1e-6)


def test_branches_of_switch_case_may_have_different_ranks(fluid):
    number = fluid.data("number", [1], "int32")
    fill = fluid.layers.fill_constant
    out = fluid.layers.switch_case(
        number,
        {0: lambda: fill([4, 2], "int32", 1), 1: lambda: fill([3], "int32", 2), 2: lambda: fill([1, 2, 3], "int32", 3)},
    )
    exe = started(fluid)
    for i, right in enumerate((np.full([4, 2], 1), np.full([3], 2), np.full([1, 2, 3], 3))):
        (got,) = exe.run(feed={"number": np.array([i], "int32")}, fetch_list=[out])
        np.testing.assert_array_equal(got, right)


class TestCallbacks:
    def test_callbacks_run_after_each_gradient_op(self, fluid):
        x, loss = linear(fluid, "w")
        seen = []

        def callback(block, context):
            op = block.ops[-1]
            seen.append((op.type, {name: context[name] for name in op.output_arg_names if name in context}))
            if op.type == "mul_grad":
                grad = op.output("Y@GRAD")[0]
                block.append_op("scale", {"X": grad}, {"Out": grad}, {"scale": 2.0})

        pairs = fluid.backward.append_backward(loss, callbacks=[callback])
        kinds = [op.type for op in loss.block.ops]
        assert [kind for kind, _ in seen] == ["mean_grad", "mul_grad"]
        assert kinds[kinds.index("mul_grad") + 1 :] == ["scale"]
        assert seen[1][1]["w@GRAD"] == "w"
        (got,) = started(fluid).run(feed={"x": X}, fetch_list=[pairs[0][1]])
        np.testing.assert_allclose(got, 2 * X.mean(0)[:, None], rtol=1e-6)

    def test_optimizer_backward_runs_callbacks(self, fluid):
        x, loss = linear(fluid, "w")
        seen = []
        optimizer = fluid.optimizer.SGD(0.5)
        optimizer.backward(loss, callbacks=[lambda block, context: seen.append(block.ops[-1].type)])
        assert seen == ["mean_grad", "mul_grad"]

    @pytest.mark.parametrize("callbacks, says", [(print, "must be a list of functions"), ([3], "not 3")])
    def test_callbacks_must_be_functions(self, fluid, callbacks, says):
        x, loss = linear(fluid)
        with pytest.raises(TypeError, match=says):
            fluid.backward.append_backward(loss, callbacks=callbacks)


def test_adam_accepts_betas_as_variables(fluid):
    x, loss = linear(fluid, "w")
    beta1 = fluid.layers.create_global_var([1], 0.8, "float32", persistable=True)
    beta2 = fluid.layers.create_global_var([1], 0.95, "float32", persistable=True)
    fluid.optimizer.Adam(0.1, beta1=beta1, beta2=beta2).minimize(loss)
    op = next(op for op in loss.block.ops if op.type == "adam")
    assert op.input("Beta1Tensor") == [beta1.name] and op.input("Beta2Tensor") == [beta2.name]
    exe = started(fluid)
    w, grad = value_of(fluid, "w"), X.mean(0)[:, None]
    m1 = m2 = 0
    power1, power2 = 0.9, 0.999  # where Fluid's start, whatever the betas are
    for _ in range(3):
        exe.run(feed={"x": X})
        m1, m2 = 0.8 * m1 + 0.2 * grad, 0.95 * m2 + 0.05 * grad**2
        w = w - 0.1 * np.sqrt(1 - power2) / (1 - power1) * m1 / (np.sqrt(m2) + 1e-8)
        power1, power2 = power1 * 0.8, power2 * 0.95
    np.testing.assert_allclose(value_of(fluid, "w"), w, rtol=1e-5, atol=1e-6)


def test_the_step_of_an_exponential_moving_average_may_be_an_integer(fluid):
    x, loss = linear(fluid, "w")
    fluid.optimizer.SGD(0.5).minimize(loss)
    step = fluid.layers.autoincreased_step_counter()
    ema = fluid.optimizer.ExponentialMovingAverage(0.5, thres_steps=step)
    ema.update()
    exe = started(fluid)
    average = 0
    for t in range(1, 4):
        exe.run(feed={"x": X})
        decay = min(0.5, (t + 1) / (t + 10))
        average = decay * average + (1 - decay) * value_of(fluid, "w")
    with ema.apply(exe):
        np.testing.assert_allclose(value_of(fluid, "w"), average / (1 - decay**3), rtol=1e-5)


def test_a_fetched_array_of_tensors_is_a_list(fluid):
    x = fluid.data("x", [None, 2])
    at = fluid.layers.zeros([1], "int64")
    array = fluid.layers.array_write(x, at)
    fluid.layers.array_write(fluid.layers.scale(x, 2.0), fluid.layers.increment(at), array)
    exe = fluid.Executor(fluid.CPUPlace())
    ((first, second),) = exe.run(feed={"x": X}, fetch_list=[array])
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, 2 * X)
    (tensors,) = exe.run(feed={"x": X}, fetch_list=[array], return_numpy=False)
    assert isinstance(tensors, fluid.LoDTensorArray) and np.array(tensors[1]).tolist() == (2 * X).tolist()


def test_a_condition_read_by_its_block_has_a_gradient(fluid):
    x = fluid.data("x", [None, 2])
    x.stop_gradient = False
    out = fluid.layers.create_tensor("float32")
    with fluid.layers.control_flow.ConditionalBlock([x]).block():
        fluid.layers.assign(fluid.layers.square(x), out)
    fluid.backward.append_backward(fluid.layers.reduce_sum(out))
    (got,) = fluid.Executor(fluid.CPUPlace()).run(feed={"x": X}, fetch_list=["x@GRAD"])
    np.testing.assert_array_equal(got, 2 * X)


def test_programs_are_pruned_to_their_targets(fluid):
    x, loss = linear(fluid)
    fluid.layers.exp(loss)
    program = fluid.default_main_program()
    assert [op.type for op in program._prune_with_input([], [loss]).global_block().ops] == ["mul", "mean"]
    hidden = program.global_block().ops[0].output_arg_names[0]
    assert [op.type for op in program._prune_with_input([hidden], [loss]).global_block().ops] == ["mean"]
    with pytest.raises(ValueError, match="a fed variable is named by a str"):
        program._prune_with_input([x], [loss])
    with pytest.raises(ValueError, match="a target is a Variable"):
        program._prune_with_input([], [3])


def test_programs_print_and_draw(fluid, capsys, tmp_path):
    _, loss = linear(fluid, "w")
    details = fluid.transpiler.details
    main = fluid.default_main_program()
    details.program_to_code(main)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "block 0 {" and printed[-1] == "}"
    assert any("mean(" in line for line in printed) and any("param w" in line for line in printed)
    block = main.global_block()
    assert details.find_op_by_input_arg(block, "x") == 0 and details.find_op_by_output_arg(block, loss.name) == 1
    assert details.find_op_by_input_arg(block, "nothing") == -1
    fluid.debugger.draw_block_graphviz(block, highlights=["w"], path=str(tmp_path / "block.dot"))
    drawn = (tmp_path / "block.dot").read_text()
    assert '"w" [label="w", shape="oval", color="red", style="filled"];' in drawn and '"w" -> "op_0";' in drawn
    details.delete_ops(block, [block.ops[1]])
    assert [op.type for op in block.ops] == ["mul"]


def test_an_unknown_argument_of_create_var_is_ignored_with_a_warning(fluid):
    block = fluid.default_main_program().global_block()
    with pytest.warns(UserWarning, match="no argument psersistable, which is ignored; did you mean persist") as said:
        var = block.create_var(name="v", shape=[2], dtype="float32", psersistable=True)
    assert said[0].filename == __file__ and not var.persistable
