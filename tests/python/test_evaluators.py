"""fluid.evaluator: metrics that the program accumulates."""

import numpy
import pytest


def sequences(fluid, rows):
    flat = numpy.array([id for row in rows for id in row], "int64")[:, None]
    return fluid.create_lod_tensor(flat, [[len(row) for row in rows]], fluid.CPUPlace())


def test_edit_distance_accumulates_over_batches(fluid):
    found, right = (fluid.layers.data(name, [1], dtype="int64", lod_level=1) for name in ("found", "right"))
    with pytest.warns(UserWarning, match="fluid.evaluator.EditDistance is deprecated; fluid.metrics.EditDistance"):
        distance = fluid.evaluator.EditDistance(found, right)
    exe = fluid.Executor()
    distance.reset(exe)
    batches = [([[1, 2, 3], [4]], [[1, 5, 3, 7], [4]]), ([[2, 2]], [[2]])]
    of_batch = [
        exe.run(feed={"found": sequences(fluid, a), "right": sequences(fluid, b)}, fetch_list=distance.metrics)
        for a, b in batches
    ]
    # Distances over the length of the right sequence: 2/4 and 0, then 1/1.
    assert [(float(total[0]), int(errors[0])) for total, errors in of_batch] == [(0.5, 1), (1.0, 1)]
    mean, share = distance.eval(exe)
    numpy.testing.assert_allclose([mean[0], share[0]], [1.5 / 3, 2 / 3], rtol=1e-6)
    distance.reset(exe)
    exe.run(feed={"found": sequences(fluid, [[1]]), "right": sequences(fluid, [[1]])}, fetch_list=distance.metrics)
    assert [value[0] for value in distance.eval(exe)] == [0, 0]


def test_evaluators_must_be_created_in_block_0(fluid):
    flag = fluid.layers.fill_constant([1], "bool", True)
    with fluid.layers.While(flag).block(), pytest.raises(ValueError, match="create an evaluator in the first block"):
        with pytest.warns(UserWarning, match="deprecated"):
            fluid.evaluator.Evaluator("x")
