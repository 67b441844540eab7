"""Whole networks, built in Python, compared with the programs that Fluid 1.8.5 made of the same networks."""

import programs
import pytest


def fit_a_line(fluid):
    x = fluid.layers.data("x", [13])
    y = fluid.layers.data("y", [1])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def wide_linear(fluid):
    x = fluid.layers.data("x", [1000])
    y = fluid.layers.data("y", [1])
    hidden = fluid.layers.fc(x, 1000, param_attr="fc_w", bias_attr=fluid.ParamAttr(name="fc_b"))
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def classifier(fluid, prediction, label):
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.layers.accuracy(prediction, label)
    return loss


def lenet(fluid):
    pixel = fluid.layers.data("pixel", [1, 28, 28])
    label = fluid.layers.data("label", [1], dtype="int64")
    hidden = fluid.nets.simple_img_conv_pool(pixel, 20, 5, 2, 2, act="relu")
    hidden = fluid.nets.simple_img_conv_pool(hidden, 50, 5, 2, 2, act="relu")
    weight = fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 0.05, seed=90))
    return classifier(fluid, fluid.layers.fc(hidden, 10, act="softmax", param_attr=weight), label)


def vgg11(fluid):
    pixel = fluid.layers.data("pixel", [3, 32, 32])
    label = fluid.layers.data("label", [1], dtype="int64")
    hidden = pixel
    for filters in ([64], [128], [256, 256], [512, 512], [512, 512]):
        drops = [0.3] * (len(filters) - 1) + [0.0]
        hidden = fluid.nets.img_conv_group(
            hidden, filters, 2, conv_act="relu", conv_with_batchnorm=True, conv_batchnorm_drop_rate=drops, pool_stride=2
        )
    hidden = fluid.layers.fc(fluid.layers.dropout(hidden, 0.5), 4096)
    hidden = fluid.layers.dropout(fluid.layers.batch_norm(hidden, act="relu"), 0.5)
    return classifier(fluid, fluid.layers.fc(fluid.layers.fc(hidden, 4096), 10, act="softmax"), label)


NETS = {
    "fit_a_line.sgd": (fit_a_line, lambda f: f.optimizer.SGD(0.01)),
    "wide_linear.sgd": (wide_linear, lambda f: f.optimizer.SGD(0.01)),
    "wide_linear.momentum": (wide_linear, lambda f: f.optimizer.Momentum(0.01, 0.9)),
    "wide_linear.adam": (wide_linear, lambda f: f.optimizer.Adam(0.01)),
    "lenet.momentum": (lenet, lambda f: f.optimizer.Momentum(0.01, 0.9)),
    "vgg11.momentum.reg_l2": (
        vgg11,
        lambda f: f.optimizer.Momentum(0.01, 0.9, regularization=f.regularizer.L2Decay(5e-4)),
    ),
}


@pytest.mark.parametrize("name", sorted(NETS))
def test_a_network_built_in_python_equals_fluids_op_for_op(fluids, fluid, name):
    folder = fluids("programs", name)
    build, optimizer = NETS[name]
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = startup.random_seed = 1
    loss = build(fluid)
    programs.assert_same(programs.of(main.clone(for_test=True)), programs.read_file(folder / "forward_test.pb"))
    optimizer(fluid).minimize(loss)
    programs.assert_same(programs.of(main), programs.read_file(folder / "main.pb"))
    programs.assert_same(programs.of(startup), programs.read_file(folder / "startup.pb"))
