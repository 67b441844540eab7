"""Images and volumes: arguments with a value for each spatial axis, data formats, and the words of docstrings."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.variable import Variable


class Spatial(NamedTuple):
    """What layers with a variant for images and one for volumes need to know about the variant."""

    axes: int
    numbers: str  # how errors call that number
    formats: tuple[str, str]  # the channels first, or last
    words: dict[str, str]  # of docstrings, which are templates

    @property
    def variant(self) -> dict[str, Any]:
        """What a variant of a layer (variants.py) is given."""
        return {"_kind": self, "data_format": self.formats[0], "axes": self.axes, **self.words}

    def per_axis(self, value: Any, what: str) -> list[int]:
        """Returns a number for each spatial axis; the value is one number for all, or a list."""
        if isinstance(value, int):
            return [value] * self.axes
        if not isinstance(value, (list, tuple)) or len(value) != self.axes:
            raise ValueError(f"{what} takes one number or {self.numbers}, not {value!r}")
        return list(value)

    def require_format(self, data_format: object) -> None:
        if data_format not in self.formats:
            raise ValueError(f"data_format must be {' or '.join(self.formats)}, not {data_format!r}")

    def channel_axis(self, data_format: str) -> int:
        return 1 if data_format == self.formats[0] else self.axes + 1

    def extents(self, input: Variable, data_format: str) -> list[int]:
        """Returns the extents of the spatial axes."""
        first = 2 if data_format == self.formats[0] else 1
        return list(input.shape[first : first + self.axes])

    def channels(self, input: Variable, groups: int | None, data_format: str) -> tuple[int, int]:
        """Returns (channels of the input, groups). The groups must divide the channels; None means one group."""
        self.require_format(data_format)
        rank = self.axes + 2
        if len(input.shape) != rank:
            raise ValueError(f"the input must be {self.words['data']} of {rank} axes, but its shape is {input.shape}")
        channels = input.shape[self.channel_axis(data_format)]
        if channels < 0:
            raise ValueError(f"the number of channels of the input must be known, but its shape is {input.shape}")
        groups = 1 if groups is None else groups
        if groups < 1 or channels % groups != 0:
            raise ValueError(f"the number of input channels ({channels}) must be divisible by groups ({groups})")
        return channels, groups

    def paddings(self, padding: Any, data_format: str) -> tuple[list[int], str]:
        """Returns (two numbers for each spatial axis, algorithm).

        The padding is 'SAME', 'VALID', one number, one for each spatial axis, two for each, or a pair for every axis.
        """
        if isinstance(padding, str):
            algorithm = padding.upper()
            if algorithm not in ("SAME", "VALID"):
                raise ValueError(f"padding must be SAME, VALID or numbers, not {padding!r}")
            return [0] * (2 * self.axes), algorithm
        if isinstance(padding, (list, tuple)):
            if len(padding) == self.axes + 2 and isinstance(padding[0], (list, tuple)):
                first = 2 if data_format == self.formats[0] else 1
                pairs, others = padding[first : first + self.axes], [*padding[:first], *padding[first + self.axes :]]
                if any(extent for pair in others for extent in pair):
                    raise ValueError(f"padding {padding}: only the axes of the {self.words['one']} are padded")
                padding = [extent for pair in pairs for extent in pair]
            if len(padding) == 2 * self.axes:
                return list(padding), "EXPLICIT"
        return [extent for one in self.per_axis(padding, "padding") for extent in (one, one)], "EXPLICIT"


IMAGES = Spatial(
    2,
    "two",
    ("NCHW", "NHWC"),
    {
        "data": "images",
        "one": "image",
        "shape": "[N, C, H, W], or [N, H, W, C] for NHWC",
        "formats": "'NCHW' or 'NHWC'",
        "extents": "height and width",
        "per_axis": "height, width",
        "per_side": "top, bottom, left, right",
        "rank": "four",
        "example": "32, 32",
        "half": "16, 16",
    },
)
VOLUMES = Spatial(
    3,
    "three",
    ("NCDHW", "NDHWC"),
    {
        "data": "volumes",
        "one": "volume",
        "shape": "[N, C, D, H, W], or [N, D, H, W, C] for NDHWC",
        "formats": "'NCDHW' or 'NDHWC'",
        "extents": "depth, height and width",
        "per_axis": "depth, height, width",
        "per_side": "front, back, top, bottom, left, right",
        "rank": "five",
        "example": "8, 16, 16",
        "half": "4, 8, 8",
    },
)


def shortened(paddings: list[int]) -> list[int]:
    """Returns one number per axis if both sides of every axis have equal padding, else all paddings."""
    return paddings[::2] if paddings[::2] == paddings[1::2] else paddings


def require_bool(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} must be True or False, not {value!r}")
