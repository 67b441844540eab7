"""What the docstrings of descs and Operator say of blocks and ops (base/doc_texts.py)."""

OF_AN_OP = {
    "by_slot": """Returns the variables that the op {does}.

        Returns:
            dict: {slot: [name]}.
        """,
    "slots": """Lists the {way} slots.

        Returns:
            list[str]: the slots.
        """,
    "all_variables": """Lists all variables that the op {does}.

        Returns:
            list[str]: their names.
        """,
    "variables": """Returns the variables of an {way} slot.

        Args:
            slot (str): the slot.

        Returns:
            list[str]: their names; empty if the op has no such slot.
        """,
    "to_set": """Sets the variables of an {way} slot.

        Args:
            slot (str): the slot.
            names (list[str]): the names.
        """,
    "names_in": """Returns the names in an {way} slot.

        Args:
            name (str): the slot.

        Returns:
            list[str]: names of variables; empty for a slot that the op lacks.
        """,
    "inferred": """Infers shapes and types of the outputs, as if the op were in `block`, and declares them there.

        Args:
            block (BlockDesc): the block.
        """,
}

OF_A_BLOCK = {
    "declares": """Returns whether {who} declares a variable.

        Args:
            name (str | bytes): the name.

        Returns:
            bool: True if {end}.
        """
}

OF_A_REGISTRY = {
    "protos": """Returns the declarations of all ops.

    Returns:
        list: an object per op with type, inputs, outputs, attrs and comment, sorted by type.

    Example:
        assert 'relu' in [proto.type for proto in fluid.{module}.get_all_op_protos()]
    """
}
