"""num_parts, part_index and work_load_list: every example is in one part, by the rules of MXNet's iterators."""

import itertools
import json

import numpy as np
import penstock.fluid as fluid
import pytest
from penstock._src.data.parts import RULES, bounds_by_load

RULE_OF = {"MNISTIter": "floor", "gluon Dataset.shard": "even"}


def parts_of(case, folder):
    """The parts that ours makes of a case of the corpus."""
    count = case["parts"]
    if case["iterator"] in RULE_OF:
        return [
            list(fluid.io.part_of(case["examples"], count, part, RULE_OF[case["iterator"]])) for part in range(count)
        ]
    if case["iterator"] == "LibSVMIter":
        path = folder / "lines"
        path.write_bytes(b"".join((b"%d" % at).ljust(size - 1) + b"\n" for at, size in enumerate(case["line_bytes"])))
        return [[int(line) for line in fluid.io.lines(str(path), count, part)()] for part in range(count)]
    sizes = case["record_bytes"]
    if case["indexed"]:
        return [list(fluid.io.part_of(len(sizes), count, part, "ceil")) for part in range(count)]
    return [list(fluid.io.records_of_part(sizes, count, part)) for part in range(count)]


def test_parts_are_those_that_mxnet_made(corpus, tmp_path):
    cases = [case for case in json.loads((corpus / "kvstore/open/parts.json").read_text()) if "iterator" in case]
    assert [case for case in cases if parts_of(case, tmp_path) != case["got"]] == [] and len(cases) >= 19
    assert len({case["iterator"] for case in cases}) == 4


def test_slices_are_those_that_mxnet_made(corpus):
    cases = [case for case in json.loads((corpus / "kvstore/open/parts.json").read_text()) if "slices" in case]
    for case in cases:
        if case["slices"] == "ValueError":
            with pytest.raises(ValueError):
                bounds_by_load(case["batch"], case["work_load_list"])
        else:
            assert [list(one) for one in bounds_by_load(case["batch"], case["work_load_list"])] == case["slices"]
    assert len(cases) >= 9


@pytest.mark.parametrize("rule", RULES)
def test_each_example_is_in_one_part(rule):
    for count, parts in itertools.product(range(40), range(1, 9)):
        joined = [at for part in range(parts) for at in fluid.io.part_of(count, parts, part, rule)]
        assert joined == list(range(count))


def test_each_line_is_in_one_part(tmp_path):
    random = np.random.RandomState(0)
    for case in range(30):
        texts = [
            [b"x" * random.randint(0, 9) for _ in range(random.randint(0, 6))] for _ in range(random.randint(1, 4))
        ]
        paths = []
        for at, one in enumerate(texts):
            paths.append(str(tmp_path / f"{case}.{at}"))
            end = b"\n" if random.randint(2) or at + 1 < len(texts) else b""
            with open(paths[-1], "wb") as file:
                file.write(b"\n".join(one) + end if one else b"")
        wanted = [line for one in texts for line in one]
        if wanted and end == b"" and wanted[-1] == b"" and texts[-1]:
            wanted.pop()  # the file ends before it
        for parts in (1, 2, 3, 7, 50):
            joined = [line for part in range(parts) for line in fluid.io.lines(paths, parts, part)()]
            assert joined == wanted, (case, parts)


def test_each_record_is_in_one_part():
    random = np.random.RandomState(1)
    for _ in range(50):
        sizes = (4 * random.randint(1, 60, random.randint(0, 20))).tolist()
        for parts in (1, 2, 3, 9):
            joined = [at for part in range(parts) for at in fluid.io.records_of_part(sizes, parts, part)]
            assert joined == list(range(len(sizes)))


def test_the_parts_of_a_trainer_are_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    (tmp_path / "lines").write_text("1\n2\n3\n4\n")
    assert list(fluid.io.part_of(5)) == [3, 4]
    assert list(fluid.io.lines(tmp_path / "lines")()) == [b"4"] and list(fluid.io.records_of_part([4, 4])) == [1]


@pytest.mark.parametrize("rule", RULES)
def test_a_sampler_with_a_rule_uses_each_example_once(rule):
    orders = []
    for epoch in range(2):
        found = []
        for rank in range(3):
            sampler = fluid.io.DistributedSampler(10, 3, rank, seed=4, rule=rule)
            sampler.set_epoch(epoch)
            indices = list(sampler)
            assert len(indices) == len(sampler) == len(fluid.io.part_of(10, 3, rank, rule))
            found += indices
        assert sorted(found) == list(range(10))
        orders.append(found)
    assert orders[0] != orders[1]


def test_a_batch_is_split_by_the_load_of_places():
    feed = {"x": np.arange(20).reshape(10, 2), "y": np.arange(10)}
    parts = fluid.io.split_by_load(feed, [3, 1])
    assert [len(part["y"]) for part in parts] == [8, 2]
    for name, value in feed.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), value)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: fluid.io.part_of(3, 2, 2), r"part_index must be in \[0, num_parts\)"),
        (lambda: fluid.io.part_of(-1), "count must be an integer of at least 0, not -1"),
        (lambda: fluid.io.part_of(3, rule="odd"), "rule must be one of even, floor, ceil, not 'odd'"),
        (lambda: fluid.io.DistributedSampler(3, rule="odd"), "rule must be one of strided"),
        (lambda: fluid.io.DistributedSampler(3, rule="even", drop_last=True), "drop_last is of 'strided'"),
        (lambda: fluid.io.lines("x", 0), "part_index must be in"),
        (lambda: fluid.io.split_by_load({"x": np.zeros(2), "y": np.zeros(3)}, [1]), "the same number of rows"),
        (lambda: fluid.io.split_by_load({"x": np.zeros(2)}, []), "numbers above 0"),
        (lambda: fluid.io.split_by_load({"x": np.zeros(2)}, [3, 1]), "too small for work_load_list"),
    ],
)
def test_wrong_arguments_are_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_sequences_are_not_split_by_load():
    value = fluid.create_lod_tensor(np.zeros((3, 1), "float32"), [[1, 2]], fluid.CPUPlace())
    with pytest.raises(ValueError, match="x has sequences"):
        fluid.io.split_by_load({"x": value}, [1, 1])
