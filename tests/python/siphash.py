"""The hash of a str in Python 3.7 with PYTHONHASHSEED=0: SipHash-2-4 with a zero key. It determines the placement in
the corpus's hashfix cases."""

_MASK = (1 << 64) - 1


def _rotated(x, bits):
    return (x << bits | x >> (64 - bits)) & _MASK


def _rounds(v, count):
    for _ in range(count):
        v[0] = (v[0] + v[1]) & _MASK
        v[1] = _rotated(v[1], 13) ^ v[0]
        v[0] = _rotated(v[0], 32)
        v[2] = (v[2] + v[3]) & _MASK
        v[3] = _rotated(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & _MASK
        v[3] = _rotated(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & _MASK
        v[1] = _rotated(v[1], 17) ^ v[2]
        v[2] = _rotated(v[2], 32)


def siphash24(data, k0=0, k1=0):
    """An unsigned 64-bit number."""
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)]
    words.append(len(data) % 256 << 56 | int.from_bytes(data[len(data) // 8 * 8 :], "little"))
    for word in words:
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def python37_hash(text):
    """The hash of an ASCII str."""
    value = siphash24(text.encode("ascii"))
    value -= (value >> 63) << 64
    return -2 if value == -1 else value
