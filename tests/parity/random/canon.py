"""The canonical form of a program, as lines: equal for programs that differ only in details which Fluid decides by
chance."""

import re

_SCOPE_NUMBER = re.compile(r"(_\d+)+(?=/)")
_CONTROL = re.compile(r"__control_var@[^' ]*")
# Fluid collects the variables that cross the border of a block in Python sets, in hash order. Per op type: the slots
# with such an order, each with the slot of its gradients.
_CROSSING = {
    "while": (("X", None), ("Out", None)),
    "while_grad": (("X", "X@GRAD"), ("Out", None), ("Out@GRAD", None)),
    "conditional_block": (("Input", None), ("Out", None)),
    "conditional_block_grad": (("Input", "Input@GRAD"), ("Out", None), ("Out@GRAD", None)),
    "recurrent": (("parameters", None),),
    "recurrent_grad": (("parameters", "parameters@GRAD"),),
}
_LEFT_OUT = ("op_callstack",)


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _value(name, value):
    if name == "op_namescope":
        return _SCOPE_NUMBER.sub("", value)
    if name == "grad_to_block_id":  # list(set(...))
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_number(one) for one in value)}]"
    return _number(value)


def _ordered(op_type, inputs, outputs):
    """Sorts both lists, which are in hash order; names and their gradients stay paired."""
    slots = dict(inputs)
    slots.update(outputs)
    for slot, grads in _CROSSING.get(op_type, ()):
        if grads in slots and slot in slots and len(slots[slot]) == len(slots[grads]):
            pairs = sorted(zip(slots[slot], slots[grads]))
            slots[slot], slots[grads] = [name for name, _ in pairs], [grad for _, grad in pairs]
        elif slot in slots:
            slots[slot] = sorted(slots[slot])
    return [
        " ".join(f"{slot}={list(slots[slot])}" for slot in sorted(side) if slots[slot]) for side in (inputs, outputs)
    ]


def _attrs(op_type, attrs):
    attrs = {name: value for name, value in attrs.items() if name not in _LEFT_OUT}
    if op_type in _CROSSING and attrs.get("op_role_var"):
        names = attrs["op_role_var"]
        attrs["op_role_var"] = [name for pair in sorted(zip(names[::2], names[1::2])) for name in pair]
    if op_type == "while_grad":
        attrs["original_output_grad"] = sorted(attrs.get("original_output_grad", ()))
    return " ".join(f"{name}={_value(name, value)}" for name, value in sorted(attrs.items()))


def op_lines(desc, block):
    lines = []
    for op in desc.ops(block):
        kind = desc.op_type(block, op)
        inputs, outputs = _ordered(kind, desc.op_inputs(block, op), desc.op_outputs(block, op))
        lines.append(f"{outputs} <- {kind}({inputs}) {{{_attrs(kind, desc.op_attrs(block, op))}}}")
    return lines


def var_lines(desc, block):
    lines = []
    for name in sorted(desc.vars(block)):
        kind = desc.var_kind(block, name)
        try:
            shape = [max(extent, -1) for extent in desc.var_shape(block, name)]
        except Exception:  # pylint: disable=broad-except
            shape = None
        lines.append(
            f"var {name} kind={kind} dtype={desc.var_dtype(block, name)} shape={shape} "
            f"lod={desc.var_lod_level(block, name)} persistable={desc.var_persistable(block, name)} "
            f"check={desc.var_need_check_feed(block, name)}"
        )
    return lines


def _in_any_order(lines):
    """Sorts adjacent fake_init ops, which are in hash order in Fluid."""
    made, run = [], []
    for line in lines + [""]:
        if "<- fake_init(" in line:
            run.append(line)
            continue
        made += sorted(run) + [line]
        run = []
    return made[:-1]


def lines_of(program):
    """One line per op and per variable, variables by name; control variables are numbered by first use."""
    desc, blocks, controls = program.desc, [], {}

    def called(match):
        return controls.setdefault(match.group(0), f"__control_var@{len(controls)}")

    for block in range(desc.num_blocks()):
        head = f"block {block} in {desc.parent(block)}, forward {desc.forward_block(block)}"
        blocks.append([head] + [_CONTROL.sub(called, line) for line in _in_any_order(op_lines(desc, block))])
    lines = []
    for block, made in enumerate(blocks):
        lines += made + sorted(_CONTROL.sub(called, line) for line in var_lines(desc, block))
    return lines
