"""InMemoryDataset: slots_shuffle, merge_by_lineid, and lines with an id and a content."""

import collections

import numpy as np
import penstock
import pytest


def write(folder, lines):
    path = folder / "part-0"
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def variables(fluid):
    return [
        fluid.data("words", [None, 1], "int64", lod_level=1),
        fluid.data("tags", [None, 1], "int64", lod_level=1),
        fluid.data("price", [None, 2]),
    ]


def loaded(fluid, folder, lines, **settings):
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var(variables(fluid))
    dataset.set_batch_size(100)
    dataset.set_filelist([write(folder, lines)])
    for name, value in settings.items():
        getattr(dataset, "set_" + name)(value)
    dataset.load_into_memory()
    return dataset


def instances(fluid, dataset):
    """Returns [(words, tags, price)] of a data set."""
    batches = list(fluid.io.DataLoader.from_dataset(dataset, [fluid.CPUPlace()], drop_last=False))
    out = []
    for (batch,) in batches:
        words, tags, price = (batch[name] for name in ("words", "tags", "price"))
        flat = [np.array(each).reshape(-1).tolist() for each in (words, tags)]
        for i, row in enumerate(np.array(price).tolist()):
            parts = [numbers[slice(*each.lod()[0][i : i + 2])] for numbers, each in zip(flat, (words, tags))]
            out.append((parts[0], parts[1], row))
    return out


def line(words, tags, price, *before):
    return " ".join(map(str, [*before, len(words), *words, len(tags), *tags, len(price), *price]))


ROWS = [([i + 1, 100 + i], [200 + i] * (1 + i % 3), [i, i / 2]) for i in range(60)]


def test_a_shuffle_of_slots_exchanges_only_their_numbers(fluid, tmp_path):
    dataset = loaded(fluid, tmp_path, [line(*row) for row in ROWS])
    dataset.slots_shuffle(["tags"])  # no effect before set_fea_eval, as in Fluid
    assert instances(fluid, dataset) == ROWS
    dataset.set_fea_eval(1000, True)
    dataset.slots_shuffle(["tags"])
    shuffled = instances(fluid, dataset)
    assert [(words, price) for words, _, price in shuffled] == [(words, price) for words, _, price in ROWS]
    tags = [tags for _, tags, _ in shuffled]
    assert tags != [row[1] for row in ROWS]
    assert all(one in [row[1] for row in ROWS[: i + 1]] for i, one in enumerate(tags))  # of those before it
    dataset.slots_shuffle(["words"])  # from the instances before the first call
    again = instances(fluid, dataset)
    assert [tags for _, tags, _ in again] == [row[1] for row in ROWS]
    assert [words for words, _, _ in again] != [row[0] for row in ROWS]


def test_slots_shuffle_uses_one_candidate_until_it_is_replaced(fluid, tmp_path):
    dataset = loaded(fluid, tmp_path, [line(*row) for row in ROWS])
    dataset.set_fea_eval(1)
    dataset.slots_shuffle(["words", "tags"])
    firsts = [words[0] for words, _, _ in instances(fluid, dataset)]
    assert firsts == sorted(firsts) and len(set(firsts)) < 15
    assert all(tags[0] - 199 == words[0] for words, tags, _ in instances(fluid, dataset))


def test_shuffling_a_dense_slot_is_refused(fluid, tmp_path):
    dataset = loaded(fluid, tmp_path, [line(*ROWS[0])], fea_eval=3)
    with pytest.raises(penstock.ProgramError, match="price is not a slot with a sequence; those are words, tags"):
        dataset.slots_shuffle(["price"])
    queue = fluid.DatasetFactory().create_dataset("QueueDataset")
    queue.set_use_var(dataset._variables)
    queue.set_fea_eval(3)
    with pytest.raises(NotImplementedError, match="use an InMemoryDataset"):
        queue.slots_shuffle(["words"])


def test_instances_of_an_id_are_merged(fluid, tmp_path, capfd):
    lines = [
        line([1], [0], [0, 0], 1, "b"),
        line([7], [8], [5, 6], 1, "a"),
        line([0], [2, 3], [0.5, 0], 1, "b"),
        line([0], [0], [0, 0], 1, "a"),
        line([1], [1], [1, 1], 1, "alone"),
        line([1], [4], [0, 0], 1, "twice"),
        line([2], [0], [0, 0], 1, "twice"),
        line([1], [0], [3, 0], 1, "dense"),
        line([0], [2], [0, 4], 1, "dense"),
    ]
    dataset = loaded(fluid, tmp_path, lines, merge_by_lineid=2)
    assert dataset.parse_ins_id and dataset.get_memory_data_size() == 9
    dataset.local_shuffle()
    assert dataset.get_memory_data_size() == 9  # as in Fluid, global_shuffle merges
    dataset.global_shuffle()
    assert instances(fluid, dataset) == [([7], [8], [5, 6]), ([1], [2, 3], [0.5, 0])]
    warned = capfd.readouterr().err
    assert "1 instances of the id alone are dropped: merge_size is 2" in warned
    assert "2 instances of the id twice are dropped: two of them have numbers in the slot words" in warned
    assert "id dense are dropped: two of them have numbers in the slot price" in warned


def test_any_number_of_instances_can_be_merged(fluid, tmp_path):
    lines = [
        line(
            [i + 1] if i % 3 == 0 else [0],
            [i + 1] if i % 3 == 1 else [0],
            [i + 1, 0] if i % 3 == 2 else [0, 0],
            1,
            f"id{i // 3}",
        )
        for i in range(9)
    ]
    dataset = loaded(fluid, tmp_path, lines + [line([5], [0], [0, 0], 1, "short")], merge_by_lineid=0)
    dataset.global_shuffle()
    assert instances(fluid, dataset) == [([1], [2], [3, 0]), ([4], [5], [6, 0]), ([7], [8], [9, 0]), ([5], [0], [0, 0])]
    with pytest.raises(ValueError, match="merge_size must be an integer of at least 0"):
        dataset.set_merge_by_lineid(-1)


def test_the_content_of_an_instance_is_skipped(fluid, tmp_path):
    lines = [line([1], [2], [3, 4], 1, "id", 1, "some-text"), line([5], [6], [7, 8], 1, "id", 1, "other")]
    dataset = loaded(fluid, tmp_path, lines, parse_ins_id=True, parse_content=True)
    assert instances(fluid, dataset) == [([1], [2], [3, 4]), ([5], [6], [7, 8])]
    with pytest.raises(penstock.ProgramError, match="the content of the instance: the line must begin with 1 and"):
        loaded(fluid, tmp_path, [line([1, 2], [2], [3, 4], 1, "id")], parse_ins_id=True, parse_content=True)


def test_global_shuffle_keeps_each_instance_once(fluid, tmp_path):
    dataset = loaded(fluid, tmp_path, [line(*row) for row in ROWS], fea_eval=10)
    dataset.slots_shuffle(["words", "tags"])
    dataset.local_shuffle()
    prices = collections.Counter(price[0] for _, _, price in instances(fluid, dataset))
    assert prices == collections.Counter(range(60))
