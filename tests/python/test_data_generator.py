"""incubate.data_generator: the lines that a pipe command writes."""

import io
import sys

import pytest
from penstock.fluid.incubate.data_generator import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator


class Words(MultiSlotDataGenerator):
    def generate_sample(self, line):

        def samples():
            for word in (line or "1 2").split():
                yield None if word == "none" else [("word", [int(word)]), ("price", [0.5, int(word)])]

        return samples


def run(monkeypatch, capsys, generator, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    generator.run_from_stdin()
    return capsys.readouterr().out


def test_lines_come_from_standard_input(monkeypatch, capsys):
    assert run(monkeypatch, capsys, Words(), "7 none 8\n\n9") == "1 7 2 0.5 7\n1 8 2 0.5 8\n1 9 2 0.5 9\n"


def test_lines_come_from_memory(capsys):
    Words().run_from_memory()
    assert capsys.readouterr().out == "1 1 2 0.5 1\n1 2 2 0.5 2\n"


def test_batches_have_the_given_number_of_samples(monkeypatch, capsys):

    class Padded(Words):
        def generate_batch(self, samples):

            def batch():
                for word, price in samples:
                    yield [word, ("price", price[1] + [len(samples)])]

            return batch

    generator = Padded()
    generator.set_batch(2)
    assert run(monkeypatch, capsys, generator, "1 2 3") == "1 1 3 0.5 1 2\n1 2 3 0.5 2 2\n1 3 3 0.5 3 1\n"


def test_text_is_written_as_it_is(capsys):

    class Text(MultiSlotStringDataGenerator):
        def generate_sample(self, line):
            return lambda: iter([(("a", ["1926", "08"]), ("b", ["x"]))])

    Text().run_from_memory()
    assert capsys.readouterr().out == "2 1926 08 1 x\n"


@pytest.mark.parametrize(
    "samples, message",
    [
        ([[("a", [1])], [("b", [1])]], "slot 0 of a sample is b, but that of the first one was a"),
        ([[("a", [1])], [("a", [1]), ("b", [1])]], "a sample has 2 slots, but the first one had 1"),
        ([[("a", [])]], "slot a has no number"),
        ([[("a", 1)]], "slot a must have a list of numbers, not 1"),
        ([[("a", ["x"])]], "slot a must have ints or floats, not 'x'"),
        ([[(5, [1])]], "the name of a slot must be a str, not 5"),
        (["a"], "a sample must be a list .*, not 'a'"),
    ],
)
def test_invalid_samples_are_refused(samples, message):
    generator = MultiSlotDataGenerator()
    with pytest.raises(ValueError, match=message):
        for sample in samples:
            generator._gen_str(sample)


def test_a_float_turns_its_slot_into_floats():
    generator = MultiSlotDataGenerator()
    generator._gen_str([("a", [1]), ("b", [1])])
    generator._gen_str([("a", [1.5]), ("b", [2])])
    assert generator._proto_info == [("a", "float"), ("b", "uint64")]


def test_a_generator_without_its_functions_is_refused():
    with pytest.raises(NotImplementedError, match="Generator must define generate_sample"):
        MultiSlotDataGenerator().run_from_memory()
    with pytest.raises(NotImplementedError, match="use MultiSlotDataGenerator"):
        DataGenerator()._gen_str([])
    with pytest.raises(ValueError, match="line_limit must be at least 1, not 0"):
        MultiSlotDataGenerator()._set_line_limit(0)


def test_a_sample_may_be_a_zip_of_names_and_values(capsys):

    class Zipped(MultiSlotDataGenerator):
        def generate_sample(self, line):
            return lambda: iter([zip(["a", "b"], [[1, 2], [0.5]])])

    Zipped().run_from_memory()
    assert capsys.readouterr().out == "2 1 2 1 0.5\n"
