"""Generators of MultiSlot text, the output of a data set's pipe command.

    class Words(MultiSlotDataGenerator):
        def generate_sample(self, line):
            def samples():
                yield [('words', [int(word) for word in line.split()]), ('label', [1])]
            return samples

    Words().run_from_stdin()      # for each line of standard input, lines of "count number number ..." for each slot
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.generator import DataGenerator as DataGenerator, MultiSlotDataGenerator
    from penstock._src.data.generator import MultiSlotStringDataGenerator

__all__ = ['MultiSlotDataGenerator', 'MultiSlotStringDataGenerator']

facade.make(__name__)
