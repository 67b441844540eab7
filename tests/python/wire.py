"""Reads programs in Fluid's wire format as plain values, from the format's rules alone, so that tests do not judge our
reader and writer by their own results.

    wire.read(data)['blocks'][0]['ops'][3]['inputs']['X']        names, in order
"""

import struct

# Message -> field number -> (key, kind). A kind is a message, or 'int', 'float', 'text', 'bytes'; '*' repeats.
FORM = {
    'program': {1: ('blocks', 'block*'), 4: ('version', 'version')},
    'version': {1: ('version', 'int')},
    'block': {1: ('idx', 'int'), 2: ('parent', 'int'), 3: ('vars', 'var*'), 4: ('ops', 'op*'), 5: ('forward', 'int')},
    'op': {1: ('inputs', 'slot*'), 2: ('outputs', 'slot*'), 3: ('type', 'text'), 4: ('attrs', 'attr*'),
           5: ('is_target', 'int')},
    'slot': {1: ('name', 'text'), 2: ('names', 'text*')},
    'attr': {1: ('name', 'text'), 2: ('kind', 'int'), 3: ('INT', 'int'), 4: ('FLOAT', 'float'), 5: ('STRING', 'bytes'),
             6: ('INTS', 'int*'), 7: ('FLOATS', 'float*'), 8: ('STRINGS', 'bytes*'), 10: ('BOOLEAN', 'int'),
             11: ('BOOLEANS', 'int*'), 12: ('BLOCK', 'int'), 13: ('LONG', 'int'), 14: ('BLOCKS', 'int*'),
             15: ('LONGS', 'int*')},
    'var': {1: ('name', 'text'), 2: ('type', 'type'), 3: ('persistable', 'int'), 4: ('need_check_feed', 'int')},
    'type': {1: ('kind', 'int'), 2: ('rows', 'tensor'), 3: ('lod_tensor', 'leveled'), 4: ('array', 'leveled'),
             5: ('reader', 'reader'), 7: ('tuple', 'tuple')},
    'reader': {1: ('parts', 'leveled*')},
    'tuple': {1: ('kinds', 'int*')},
    'leveled': {1: ('tensor', 'tensor'), 2: ('lod_level', 'int')},
    'tensor': {1: ('dtype', 'int'), 2: ('dims', 'int*')},
}  # yapf: disable
ABSENT = {
    "block": {"forward": -1},
    "op": {"is_target": 0},
    "var": {"persistable": 0, "need_check_feed": 0},
    "leveled": {"lod_level": 0},
}
ATTR_KINDS = (
    "INT",
    "FLOAT",
    "STRING",
    "INTS",
    "FLOATS",
    "STRINGS",
    "BOOLEAN",
    "BOOLEANS",
    "BLOCK",
    "LONG",
    "BLOCKS",
    "LONGS",
)
VARINT, EIGHT, COUNTED, FOUR = 0, 1, 2, 5


def read(data):
    """A program of serialized bytes: variables and attributes by name, an attribute as (kind, value). What
    Fluid's form does not know is passed over."""
    program = _message("program", data)
    program["blocks"] = [_block(block) for block in program["blocks"]]
    program["version"] = program.get("version", {}).get("version", 0)
    return program


def _block(block):
    block["vars"] = {var["name"]: var for var in block["vars"]}
    for op in block["ops"]:
        op["attrs"] = {attr["name"]: _value(attr) for attr in op["attrs"]}
        for side in ("inputs", "outputs"):
            op[side] = {slot["name"]: slot["names"] for slot in op[side]}
    return block


def _value(attr):
    kind = ATTR_KINDS[attr["kind"]]
    return kind, attr.get(kind)


def _message(kind, data):
    form = FORM[kind]
    out = {key: [] for key, what in form.values() if what.endswith("*")}
    out.update(ABSENT.get(kind, {}))
    for number, encoding, value in _fields(data):
        if number not in form:
            continue
        key, what = form[number]
        values = _decode(what.rstrip("*"), encoding, value)
        if what.endswith("*"):
            out[key] += values
        else:
            out[key] = values[-1]
    return out


def _decode(what, encoding, value):
    """The values of one field: several if numbers are packed."""
    if what in FORM:
        return [_message(what, value)]
    if what in ("text", "bytes"):
        return [value.decode(errors="strict" if what == "text" else "backslashreplace")]
    if what == "float":
        return [one for (one,) in struct.iter_unpack("<f", value)]
    if encoding == VARINT:
        return [_signed(value)]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(_signed(number))
    return numbers


def _fields(data):
    """(number, encoding, value): an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, encoding = key >> 3, key & 7
        if encoding == VARINT:
            value, at = _varint(data, at)
        else:
            size = {EIGHT: 8, FOUR: 4}.get(encoding)
            if encoding == COUNTED:
                size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        yield number, encoding, value


def _varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _signed(number):
    return number - (1 << 64) if number >> 63 else number
