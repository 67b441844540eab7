"""The steps of a beam search are assembled to sentences."""

import numpy as np
import penstock
import pytest


def run(fluid, fetch, feed):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch, return_numpy=False)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather_tree_follows_parents(fluid, dtype):
    random = np.random.RandomState(0)
    ids = random.randint(0, 99, (5, 2, 3)).astype(dtype)
    parents = random.randint(0, 3, (5, 2, 3)).astype(dtype)
    out = fluid.layers.gather_tree(fluid.data("ids", [None, 2, 3], dtype), fluid.data("parents", [None, 2, 3], dtype))
    got = np.array(run(fluid, [out], {"ids": ids, "parents": parents})[0])
    assert got.dtype == dtype
    for source in range(2):
        for branch in range(3):
            at, sentence = branch, []
            for step in reversed(range(5)):
                sentence.insert(0, ids[step, source, at])
                at = parents[step, source, at]
            assert list(got[:, source, branch]) == sentence


def test_gather_tree_refuses_an_unknown_parent(fluid):
    ids = fluid.data("ids", [2, 1, 2], "int64")
    out = fluid.layers.gather_tree(ids, fluid.data("parents", [2, 1, 2], "int64"))
    with pytest.raises(penstock.ProgramError, match=r"names branch 2 of step 0; it must be in \[0, 2\)"):
        run(fluid, [out], {"ids": np.zeros((2, 1, 2), "int64"), "parents": np.full((2, 1, 2), 2, "int64")})


# Two sources. Per step and source, the (token, score) pairs of each branch.
STEPS = [
    [[[(4, 0.9), (5, 0.5)]], [[(6, 0.7), (7, 0.6)]]],
    [[[(8, 0.8)], [(9, 0.4)]], [[(1, 0.7)], [(2, 0.3)]]],
    [[[(1, 0.7), (3, 0.2)], []], [[], []]],
]


def level(lengths):
    return [int(n) for n in np.concatenate([[0], np.cumsum(lengths)])]


def arrays(fluid, steps, dtype="float32"):
    """The arrays of tokens and scores after all steps, and their feeds."""
    feed, made = {}, []
    for kind, (name, of_kind) in enumerate((("ids", "int64"), ("scores", dtype))):
        array = None
        for t, step in enumerate(steps):
            rows = [pair[kind] for source in step for branch in source for pair in branch]
            tensor = fluid.LoDTensor()
            tensor.set(np.array(rows, of_kind).reshape(-1, 1), fluid.CPUPlace())
            tensor.set_lod(
                [level([len(source) for source in step]), level([len(branch) for source in step for branch in source])]
            )
            feed[f"{name}_{t}"] = tensor
            var = fluid.data(f"{name}_{t}", [None, 1], of_kind, lod_level=2)
            array = fluid.layers.array_write(var, fluid.layers.fill_constant([1], "int64", t), array)
        made.append(array)
    return made, feed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_beam_search_decode_reads_sentences_backwards(fluid, dtype):
    made, feed = arrays(fluid, STEPS, dtype)
    ids, scores = run(fluid, list(fluid.layers.beam_search_decode(*made, beam_size=2, end_id=1)), feed)
    # The second source has ended a step before the first one.
    sentences = [[4, 8, 1], [4, 8, 3], [6, 1], [7, 2]]
    assert ids.recursive_sequence_lengths() == scores.recursive_sequence_lengths() == [[2, 2], [3, 3, 2, 2]]
    assert list(np.array(ids)) == sum(sentences, [])
    np.testing.assert_allclose(np.array(scores), [0.9, 0.8, 0.7, 0.9, 0.8, 0.2, 0.7, 0.7, 0.6, 0.3], rtol=1e-6)


def test_sentences_are_sorted_by_score_and_end_once(fluid):
    steps = [[[[(4, 0.1), (1, 0.5)]]], [[[(5, 0.2)], [(1, 0.5)]]], [[[(6, 0.3)], [(1, 0.5)]]]]
    made, feed = arrays(fluid, steps)
    ids, scores = run(fluid, list(fluid.layers.beam_search_decode(*made, beam_size=2, end_id=1)), feed)
    assert ids.recursive_sequence_lengths() == [[2], [1, 3]]
    assert list(np.array(ids)) == [1, 4, 5, 6]
    np.testing.assert_allclose(np.array(scores), [0.5, 0.1, 0.2, 0.3], rtol=1e-6)


def test_inconsistent_beam_steps_are_reported(fluid):
    made, feed = arrays(fluid, [STEPS[0], STEPS[0]])
    outputs = list(fluid.layers.beam_search_decode(*made, beam_size=2, end_id=1))
    with pytest.raises(
        penstock.ProgramError,
        match="step 1 has 2 sources and 2 branches; the step before it has 2 sources and 4 tokens",
    ):
        run(fluid, outputs, feed)


def test_more_branches_than_the_beam_size_are_refused(fluid):
    made, feed = arrays(fluid, STEPS[:1])
    outputs = list(fluid.layers.beam_search_decode(*made, beam_size=1, end_id=1))
    with pytest.raises(penstock.ProgramError, match="source 0 ends with 2 branches; beam_size is 1"):
        run(fluid, outputs, feed)
