"""Converts programs to plain values for comparison with Fluid's, sorted where Fluid's order is arbitrary."""

import gzip
import re

import wire

# Fluid numbers name scopes by the number of earlier uses in the process; the corpus's processes made many programs.
SCOPE_NUMBER = re.compile(r"_\d+(?=/)")


def read(data):
    """A program, from serialized bytes."""
    return wire.read(data)


def of(program):
    """A Program of the API."""
    return wire.read(program.desc.serialize_to_string())


def read_file(path):
    """A program in a file, gzipped or not."""
    return wire.read(load(path))


def load(path):
    """The bytes of a file, or of its gzipped version."""
    data = path.read_bytes() if path.exists() else path.with_name(path.name + ".gz").read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def canonical_ops(program, block=0):
    """[(type, inputs, outputs, attrs)] with sorted slots and attributes."""
    out = []
    for op in program["blocks"][block]["ops"]:
        attrs = {name: value for name, value in op["attrs"].items() if name != "op_callstack"}
        if "op_namescope" in attrs:
            kind, scope = attrs["op_namescope"]
            attrs["op_namescope"] = (kind, SCOPE_NUMBER.sub("", scope))
        out.append((op["type"], sorted(op["inputs"].items()), sorted(op["outputs"].items()), sorted(attrs.items())))
    return out


def canonical_vars(program, block=0):
    return {name: dict(var) for name, var in program["blocks"][block]["vars"].items()}


def rename_controls(program):
    """Renames control variables, whose names are random in Fluid, by order of first use; in place."""
    names = {}

    def renamed(name):
        return names.setdefault(name, f"control {len(names)}") if "@0." in name else name

    for block in program["blocks"]:
        for op in block["ops"]:
            for side in ("outputs", "inputs"):
                op[side] = {slot: [renamed(name) for name in op[side][slot]] for slot in sorted(op[side])}
            if "grad_to_block_id" in op["attrs"]:  # in the order of a set
                kind, value = op["attrs"]["grad_to_block_id"]
                op["attrs"]["grad_to_block_id"] = kind, sorted(value)
        block["vars"] = {renamed(name): {**var, "name": renamed(name)} for name, var in block["vars"].items()}
    return program


def assert_same(made, expected, variables=True):
    """Compares block by block and op by op, including attributes; then variable by variable."""
    assert [block["parent"] for block in made["blocks"]] == [block["parent"] for block in expected["blocks"]]
    for block in range(len(expected["blocks"])):
        ours, theirs = canonical_ops(made, block), canonical_ops(expected, block)
        for position, (a, b) in enumerate(zip(ours, theirs)):
            assert a == b, f"op {position} ({b[0]}) differs: {[(x, y) for x, y in zip(a, b) if x != y]}"
        assert len(ours) == len(theirs)
        if variables:
            assert canonical_vars(made, block) == canonical_vars(expected, block)
