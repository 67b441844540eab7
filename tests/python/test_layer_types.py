"""The element types that layers accept: those of the op's declaration, or fewer where Fluid refuses some."""

import importlib
import inspect
import pkgutil
import re

import conftest
import penstock._src.layers
import pytest
from penstock._src.ir.argument_types import kernel_types
from penstock._src.ir.types import VarType, dtype_name

NAMES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
}
TYPES = sorted(NAMES.values())


def declared_types():
    """{op: {input slot: its element types; None: any, or those of another slot}} of operators/OPS.md."""
    text = (conftest.ROOT / "operators" / "OPS.md").read_text()
    ops = {}
    for section in re.split(r"(?m)^## ", text)[1:]:
        op, rows = section.split("\n", 1)
        ops[op] = {
            slot: frozenset(NAMES[one] for one in re.findall(r"\w+", types) if one in NAMES)
            if re.match(r"(f|i|u|bool)", types)
            else None
            for slot, types in re.findall(r"(?m)^\| input \| `(\w+)`[^|]* \| ([^|]+) \|", rows)
        }
    return ops


DECLARED = declared_types()


def typed_layers():
    """(name, layer, op, {argument: the element types that the layer accepts})."""
    found = {}
    for module in pkgutil.iter_modules(penstock._src.layers.__path__, "penstock._src.layers."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            if not (inspect.isfunction(thing) and hasattr(thing, "checked_types")):
                continue
            op, types = thing.checked_types
            found[name] = (thing, op, {arg: {dtype_name(one) for one in given} for arg, given in types.items()})
    return found


LAYERS = typed_layers()
OP_LAYERS = {name: one for name, one in LAYERS.items() if hasattr(one[0], "of_op")}


def taken(types):
    """The element types that an op takes: float16 is computed in float32."""
    return types | {"float16"} if "float32" in types else types


def test_there_are_layers_of_one_op():
    assert len(OP_LAYERS) >= 12 and len(DECLARED) > 300


@pytest.mark.parametrize("name", OP_LAYERS)
def test_a_layer_of_one_op_accepts_no_type_that_the_op_refuses(name):
    layer, op, types = OP_LAYERS[name]
    slots = {arg: slot for slot, arg in layer.of_op.inputs.items()}
    for arg, accepted in types.items():
        allowed = DECLARED[op][slots[arg]] if arg in slots else None
        assert allowed is None or accepted <= taken(allowed), arg


@pytest.mark.parametrize("name", OP_LAYERS)
def test_the_first_argument_takes_the_types_of_the_kernels(name):
    layer, op, types = OP_LAYERS[name]
    kernels = {dtype_name(one) for one in kernel_types(op)}
    first = layer.of_op.first
    if first in types:
        assert types[first] <= kernels
    declared = DECLARED[op].get(next(iter(layer.of_op.inputs), ""))
    if declared is not None and first in types:
        assert types[first] <= taken(declared)
    elif declared is not None:
        args = inspect.cleandoc(layer.__doc__).split("Args:\n", 1)[1]
        (entry,) = re.findall(rf"(?m)^    {first} \(.+?\): ((?:.|\n     )*)", args)
        assert set(re.findall(rf"\b({'|'.join(TYPES)})\b", entry)) in (taken(declared), set()), entry


@pytest.mark.parametrize("name", [name for name, one in LAYERS.items() if one[2]])
def test_documented_types_are_the_accepted_ones(name):
    layer, _, types = LAYERS[name]
    args = inspect.cleandoc(layer.__doc__).split("Args:\n", 1)[1].split("\n\n", 1)[0]
    entries = dict(re.findall(r"(?m)^    (\w+) \(.+?\): ((?:.|\n     )*)", args))
    for arg, accepted in types.items():
        documented = set(re.findall(rf"\b({'|'.join(TYPES)})\b", entries[arg]))
        assert documented == accepted or not documented and " type as " in entries[arg], arg


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, (layer, _, types) in OP_LAYERS.items()
        if list(types) == [layer.of_op.first]
        and sum(one.default is one.empty for one in inspect.signature(layer).parameters.values()) == 1
    ],
)
def test_a_layer_takes_the_types_that_it_documents(fluid, name):
    layer, _, types = OP_LAYERS[name]
    (accepted,) = types.values()
    for dtype in TYPES:
        x = fluid.data(f"x_{dtype}", [2, 3, 4, 4], dtype)
        if dtype in accepted:
            try:
                layer(x)
            except ValueError as error:  # of an op for other shapes, or about another argument
                assert "element type" not in str(error)
        else:
            with pytest.raises(TypeError, match=f"that of x_{dtype} is {dtype}"):
                layer(x)


@pytest.mark.parametrize("name", [name for name, one in LAYERS.items() if one[1] and one[2] and name not in OP_LAYERS])
def test_a_layer_around_an_op_accepts_types_of_its_slots(name):
    """An argument of a layer that adds its op itself may be any slot, so it takes types that some slot takes."""
    _, op, types = LAYERS[name]
    slots = [taken(one) for one in DECLARED[op].values() if one is not None]
    for arg, accepted in types.items():
        if arg != "dtype" and len(slots) == len(DECLARED[op]):
            assert any(accepted <= one for one in slots), arg


def test_a_narrower_entry_is_narrower():
    """`fluid_accepts` for the argument that decides the kernel lists fewer types than `typed` would."""
    for layer, op, types in OP_LAYERS.values():
        first = layer.of_op.first
        if first in layer.of_op.narrowed:
            assert types[first] < {dtype_name(one) for one in kernel_types(op)}, layer.__name__


def test_unknown_arguments_in_a_docstring_are_errors():
    from penstock._src.layers.decorators import layer

    with pytest.raises(TypeError, match="has y, which it does not take"):

        @layer()
        def one(x):
            """Does.

            Args:
                y (int): other.
            """

    with pytest.raises(TypeError, match="lacks size"):

        @layer()
        def two(x, size):
            """Does."""


def test_size_t_is_not_a_type_of_layers():
    assert VarType.SIZE_T not in kernel_types("concat") and VarType.FP16 in kernel_types("relu")
