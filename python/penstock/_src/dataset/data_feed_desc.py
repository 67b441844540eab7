"""DataFeedDesc: a description of MultiSlot text in a file, in protobuf's text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.dataset.text_format import parse, print_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.dataset.text_format import Message


_SLOT = {"name": str, "type": str, "is_dense": bool, "is_used": bool, "shape": [int]}
_FIELDS = {
    "name": str,
    "batch_size": int,
    "multi_slot_desc": {"slots": [_SLOT], "uid_slot": str},
    "pipe_command": str,
    "thread_num": int,
    "rank_offset": str,
    "pv_batch_size": int,
    "input_type": int,
}


class DataFeedDesc:
    """Describes the slots of a file, and which of them are used.

    Args:
        proto_file (str): path of a file with a DataFeedDesc message as text.

    Raises:
        ValueError: the text cannot be parsed, or a field is unknown or has the wrong type.

    Example:
        with open('data.proto', 'w') as file:
            file.write('name: "MultiSlotDataFeed" batch_size: 2 multi_slot_desc { slots { name: "w" type: "uint64" } }')
        feed = fluid.DataFeedDesc('data.proto')
        feed.set_batch_size(128)
        assert 'batch_size: 128' in feed.desc()
    """

    def __init__(self, proto_file: str) -> None:
        with open(proto_file) as file:
            self._message = parse(file.read(), _FIELDS, proto_file)
        self._message.setdefault("pipe_command", "cat")

    def _slots(self, function: str) -> dict[str, Message]:
        if self._message.get("name") != "MultiSlotDataFeed":
            raise ValueError(f"{function} is for a MultiSlotDataFeed, not for {self._message.get('name')!r}")
        return {slot.get("name"): slot for slot in self._message.get("multi_slot_desc", {}).get("slots", [])}

    def _mark(self, function: str, names: Sequence[str], field: str) -> None:
        slots = self._slots(function)
        for name in names:
            if name not in slots:
                raise ValueError(f"{function}: there is no slot {name}; there are {', '.join(map(str, slots))}")
            slots[name][field] = True

    def set_batch_size(self, batch_size: int) -> None:
        """Sets the number of instances of a batch.

        Args:
            batch_size (int): at least 1.
        """
        self._message["batch_size"] = batch_size

    def set_dense_slots(self, dense_slots_name: Sequence[str]) -> None:
        """Makes slots dense: they have the same number of values in each instance. All other slots are sequences.

        Args:
            dense_slots_name (list of str): names of slots.
        """
        self._mark("set_dense_slots", dense_slots_name, "is_dense")

    def set_use_slots(self, use_slots_name: Sequence[str]) -> None:
        """Marks slots as used, so that batches contain them.

        Args:
            use_slots_name (list of str): names of slots.
        """
        self._mark("set_use_slots", use_slots_name, "is_used")

    def desc(self) -> str:
        """Returns the message as text.

        Returns:
            str: protobuf's text format.
        """
        return print_message(self._message, _FIELDS)
