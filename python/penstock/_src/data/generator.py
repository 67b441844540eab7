"""Generators of MultiSlot text, the output of a data set's pipe command.

Users import penstock.fluid.incubate.data_generator, whose docstring has an example.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Union

    _Slot = tuple[str, Any]  # a name and a list of numbers
    Sample = Union[Sequence[_Slot], zip[_Slot]]


from penstock._src.base.errors import program_error


class DataGenerator:
    """Reads lines, converts them to samples, and writes each sample as a line. A subclass overrides generate_sample(),
    and generate_batch() to process the samples of a batch together."""

    def __init__(self) -> None:
        self._proto_info: list[tuple[str, str]] | None = None
        self.batch_size_ = 32

    def _set_line_limit(self, line_limit: int) -> None:
        if not isinstance(line_limit, int):
            raise ValueError(f"line_limit must be an int, not {line_limit!r}")
        if line_limit < 1:
            raise ValueError(f"line_limit must be at least 1, not {line_limit}")
        self._line_limit = line_limit

    def set_batch(self, batch_size: int) -> None:
        """Sets the number of samples that generate_batch() receives.

        Args:
            batch_size (int): the number; the default is 32.
        """
        self.batch_size_ = batch_size

    def run_from_memory(self) -> None:
        """Writes the samples of generate_sample(None) to standard output."""
        self._write([None])

    def run_from_stdin(self) -> None:
        """Writes the samples of generate_sample(line), for each line of standard input, to standard output."""
        self._write(sys.stdin)

    def _write(self, lines: Iterable[str | None]) -> None:
        samples = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                samples.append(sample)
                if len(samples) == self.batch_size_:
                    self._write_batch(samples)
                    samples = []
        if samples:
            self._write_batch(samples)

    def _write_batch(self, samples: list[Sample]) -> None:
        for sample in self.generate_batch(samples)():
            sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line: Sample) -> str:
        raise NotImplementedError(
            f"{type(self).__name__} does not define how a sample is written; use MultiSlotDataGenerator"
        )

    def generate_sample(self, line: str | None) -> Callable[[], Iterable[Sample | None]]:
        """Converts a line to samples; a subclass overrides it.

        Args:
            line (str): a line with its line end; None in run_from_memory().

        Returns:
            callable: a function without arguments that yields samples; each is [(name of a slot, [number, ...]), ...],
            or None, which is skipped.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define generate_sample(line), which returns a function that yields "
            "[(name, [number, ...]), ...]"
        )

    def generate_batch(self, samples: Sequence[Sample]) -> Callable[[], Iterable[Sample]]:
        """Changes the samples of a batch; a subclass may override it.

        Args:
            samples (list): samples of generate_sample().

        Returns:
            callable: a function without arguments that yields samples.
        """

        def unchanged() -> Iterator[Sample]:
            yield from samples

        return unchanged


def _slots_of(line: Sample) -> Sequence[_Slot]:
    """Returns a sample's slots as a list; scripts also yield zip(names, values)."""
    if isinstance(line, zip):
        return list(line)
    if not isinstance(line, (list, tuple)):
        raise ValueError(f"a sample must be a list [(name, [number, ...]), ...], not {line!r}")
    return line


class MultiSlotStringDataGenerator(DataGenerator):
    """Writes numbers that are already text, without checks, which is faster.

    Example:
        from penstock.fluid.incubate.data_generator import MultiSlotStringDataGenerator
        assert MultiSlotStringDataGenerator()._gen_str([('words', ['19', '26']), ('label', ['1'])]) == '2 19 26 1 1\\n'
    """

    def _gen_str(self, line: Sample) -> str:
        slots = _slots_of(line)
        return " ".join(" ".join([str(len(elements)), *elements]) for _, elements in slots) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """Writes ints and floats, and checks that all samples have the same slots.

    Example:
        from penstock.fluid.incubate.data_generator import MultiSlotDataGenerator
        assert MultiSlotDataGenerator()._gen_str([('words', [19, 26]), ('price', [0.5])]) == '2 19 26 1 0.5\\n'
    """

    def _gen_str(self, line: Sample) -> str:
        slots = _slots_of(line)
        if self._proto_info is None:
            self._proto_info = [(name, "uint64") for name, _ in slots]
        elif len(slots) != len(self._proto_info):
            raise program_error(
                "E-dataset-sample", f"a sample has {len(slots)} slots, but the first one had {len(self._proto_info)}"
            )
        known = self._proto_info
        return " ".join(self._slot(known, i, *one) for i, one in enumerate(slots)) + "\n"

    def _slot(self, slots: list[tuple[str, str]], index: int, name: str, elements: Any) -> str:
        known, kind = slots[index]
        if not isinstance(name, str):
            raise ValueError(f"the name of a slot must be a str, not {name!r}")
        if name != known:
            raise program_error(
                "E-dataset-sample", f"slot {index} of a sample is {name}, but that of the first one was {known}"
            )
        if not isinstance(elements, list):
            raise ValueError(f"slot {name} must have a list of numbers, not {elements!r}")
        if not elements:
            raise ValueError(f"slot {name} has no numbers; give at least one")
        if kind != "float":
            for element in elements:
                if isinstance(element, float):
                    slots[index] = name, "float"
                elif not isinstance(element, int):
                    raise ValueError(f"slot {name} must have ints or floats, not {element!r}")
        return " ".join([str(len(elements)), *map(str, elements)])
