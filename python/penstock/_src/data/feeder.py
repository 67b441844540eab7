"""DataFeeder: converts rows of Python values to the feed of an executor."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from penstock._penstock import LoDTensor
from penstock._src.base.errors import program_error
from penstock._src.ir import framework
from penstock._src.ir.array_conversion import to_array
from penstock._src.ir.places import count_of_environment
from penstock._src.ir.types import dtype_name, to_dtype
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, NoReturn

    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Array, Dtype, Place


_ELEMENT_TYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")


def convert_dtype(dtype: Dtype) -> str:
    """Returns the name of an element type.

    Args:
        dtype (str | type | numpy.dtype | VarType): the type.

    Returns:
        str: such as 'float32'.

    Raises:
        ValueError: there is no such element type.

    Example:
        assert fluid.data_feeder.convert_dtype(fluid.core.VarDesc.VarType.FP32) == 'float32'
    """
    try:
        return dtype_name(to_dtype(dtype))
    except (KeyError, ValueError):  # a VarType that is no element type; no type at all
        raise ValueError(f"an element type is one of {', '.join(_ELEMENT_TYPES)}, not {dtype!r}") from None


def check_type(
    input: object, input_name: str, expected_type: tuple[type, ...] | type, op_name: str, extra_message: str = ""
) -> None:
    """Raises unless an argument of a layer is of a class.

    Args:
        input (object): the argument.
        input_name (str): its name.
        expected_type (type | tuple[type]): the class, or several.
        op_name (str): the layer.
        extra_message (str): text at the end of the error.

    Raises:
        TypeError: the argument is of another class; the error names the layer, the argument and the classes.

    Example:
        fluid.data_feeder.check_type(2, 'size', int, 'my_layer')
    """
    if not isinstance(input, expected_type):
        allowed = expected_type if isinstance(expected_type, tuple) else (expected_type,)
        _refuse(
            op_name,
            f"the type of {input_name}",
            [kind.__name__ for kind in allowed],
            type(input).__name__,
            extra_message,
        )


def check_dtype(
    input_dtype: Dtype, input_name: str, expected_dtype: Sequence[str] | str, op_name: str, extra_message: str = ""
) -> None:
    """Raises unless an element type is among those that a layer takes.

    Args:
        input_dtype (str | type | numpy.dtype | VarType): the element type.
        input_name (str): the argument that has it.
        expected_dtype (list[str] | str): the names of the element types that the layer takes.
        op_name (str): the layer.
        extra_message (str): text at the end of the error.

    Raises:
        TypeError: the layer does not take it; the error names the layer, the argument and the types.
        ValueError: there is no such element type.

    Example:
        fluid.data_feeder.check_dtype('float32', 'x', ['float32', 'float64'], 'my_layer')
    """
    allowed = [expected_dtype] if isinstance(expected_dtype, str) else list(expected_dtype)
    given = convert_dtype(input_dtype)
    if given not in allowed:
        _refuse(op_name, f"the element type of {input_name}", allowed, given, extra_message)


def check_variable_and_dtype(
    input: Variable, input_name: str, expected_dtype: Sequence[str] | str, op_name: str, extra_message: str = ""
) -> None:
    """Raises unless an argument of a layer is a Variable with an element type that the layer takes.

    Args:
        input (Variable): the argument.
        input_name (str): its name.
        expected_dtype (list[str] | str): the names of the element types that the layer takes.
        op_name (str): the layer.
        extra_message (str): text at the end of the error.

    Raises:
        TypeError: it is not a Variable, or has another element type; the error names the layer, the argument, and what
            the layer takes.

    Example:
        x = fluid.data('x', [None, 4])
        fluid.data_feeder.check_variable_and_dtype(x, 'x', ['float32', 'float64'], 'my_layer')
    """
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


def _refuse(layer: str, what: str, allowed: Any, given: Any, extra: str) -> NoReturn:
    raise TypeError(f"{layer}: {what} must be {' or '.join(allowed)}, not {given}{extra and '. ' + extra}")


class _Column:
    """Collects the values of one variable."""

    def __init__(self, var: Variable) -> None:
        self.name = var.name
        self.lod_level = var.lod_level
        self.dtype = dtype_name(var.dtype)
        self.shape = list(var.shape)
        self.data: list[Any] = []  # what NumPy takes
        self.lengths: list[list[int]] = [[] for _ in range(self.lod_level)]

    def add(self, value: Array | int | list[int]) -> None:
        self._add(value, 0)

    def _add(self, value: Any, level: int) -> None:
        if level == self.lod_level:
            self.data.append(value)
            return
        self.lengths[level].append(len(value))
        for one in value:
            self._add(one, level + 1)

    def tensor(self, place: Place) -> LoDTensor:
        array = to_array(self.data, self.dtype, self.name, "DataFeeder")
        if self.lod_level == 0 and array.ndim != len(self.shape):
            array = array.reshape([-1, *self.shape[1:]])
        elif self.lod_level > 0 and array.ndim < len(self.shape):
            array = array.reshape([-1] + self.shape[1:])
        tensor = LoDTensor()
        tensor.set(array, place)
        if self.lod_level > 0:
            tensor.set_recursive_sequence_lengths(self.lengths)
        return tensor


class DataFeeder:
    """Converts rows of Python values to the feed of an Executor.

    Args:
        feed_list (list[Variable | str]): the variables, in the order of the fields of a row.
        place (Place): where the tensors are.
        program (Program | None): the program that declares the names; None: the default main program.

    Example:
        x = fluid.data('x', [None, 2])
        y = fluid.data('y', [None, 1], 'int64')
        feed = fluid.DataFeeder([x, y], fluid.CPUPlace()).feed([([1.0, 2.0], [0]), ([3.0, 4.0], [1])])
        assert np.array(feed['x']).shape == (2, 2)
    """

    def __init__(self, feed_list: Sequence[Variable | str], place: Place, program: Program | None = None) -> None:
        program = program or framework.default_main_program()
        block = program.global_block()
        self.feed_vars = [var if isinstance(var, Variable) else block.var(var) for var in feed_list]
        self.feed_names = [var.name for var in self.feed_vars]
        self.place = place

    def feed(self, iterable: Iterable[Any]) -> dict[str, LoDTensor]:
        """Converts the rows of a batch to a feed.

        Args:
            iterable (Iterable): rows, with a value for each variable.

        Returns:
            dict[str, LoDTensor]: tensors by name.

        Raises:
            ValueError: a row does not have one field per variable.
        """
        columns = [_Column(var) for var in self.feed_vars]
        for row in iterable:
            if len(row) != len(columns):
                raise program_error("E-feed-fields", f"a sample has {len(row)} fields; feed_list has {len(columns)}")
            for column, value in zip(columns, row):
                column.add(value)
        return {name: column.tensor(self.place) for name, column in zip(self.feed_names, columns)}

    def feed_parallel(self, iterable: Iterable[Any], num_places: int | None = None) -> Iterator[dict[str, LoDTensor]]:
        """Yields a feed for each place.

        Args:
            iterable (Iterable): one batch for each place.
            num_places (int | None): number of places; None: the value of the environment variable CPU_NUM, or 1.

        Returns:
            Iterator[dict[str, LoDTensor]]: the feeds.

        Raises:
            ValueError: the number of batches differs from the number of places.
        """
        batches, places = list(iterable), num_places or count_of_environment()
        if len(batches) != places:
            raise program_error(
                "E-feed-places", f"feed_parallel takes one batch for each of the {places} places, not {len(batches)}"
            )
        for batch in batches:
            yield self.feed(batch)

    def decorate_reader(
        self, reader: Callable[..., Any], multi_devices: bool, num_places: int | None = None, drop_last: bool = True
    ) -> Callable[..., Any]:
        """Creates a reader of feeds from a reader of batches.

        Args:
            reader (callable): returns an iterator of batches.
            multi_devices (bool): whether the reader returns lists of feeds, one for each place.
            num_places (int | None): number of places; None: the value of the environment variable CPU_NUM, or 1.
            drop_last (bool): skip the last batches if there are not enough for all places.

        Returns:
            callable: returns an iterator of feeds.

        Raises:
            ValueError: during reading, without `drop_last`: the last batches are not enough for all places.
        """
        if not multi_devices:
            return lambda: (self.feed(batch) for batch in reader())
        places = num_places or count_of_environment()

        def groups() -> Iterator[list[dict[str, LoDTensor]]]:
            batches = iter(reader())
            while group := list(itertools.islice(batches, places)):
                if len(group) < places:
                    if not drop_last:
                        raise program_error(
                            "E-feed-places",
                            f"the batches are not enough for all {places} places; drop_last leaves them out",
                        )
                    return
                yield list(self.feed_parallel(group, places))

        return groups
