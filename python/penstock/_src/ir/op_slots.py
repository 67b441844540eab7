"""What OpDesc tells of an op's type and of its slots, with the variables that it reads and writes."""

from penstock import _penstock
from penstock._src.ir.var_desc import View, text, texts


class OpSlots(View):
    """A view of the type and the slots of one op."""

    __slots__ = ()

    def type(self):
        """Returns the type, such as 'mul'.

        Returns:
            str: the type.
        """
        return self._program.op_type(*self._at)

    def set_type(self, kind):
        """Changes the type.

        Args:
            kind (str): the new type.
        """
        _penstock.set_op_type(self._program, *self._at, kind)

    def inputs(self):
        """Returns the variables that the op reads.

        Returns:
            dict: {slot: [name]}.
        """
        return self._program.op_inputs(*self._at)

    def outputs(self):
        """Returns the variables that the op writes.

        Returns:
            dict: {slot: [name]}.
        """
        return self._program.op_outputs(*self._at)

    def input(self, slot):
        """Returns the variables of an input slot.

        Args:
            slot (str): the slot.

        Returns:
            list[str]: their names; empty if the op has no such slot.
        """
        return self.inputs().get(slot, [])

    def output(self, slot):
        """Returns the variables of an output slot.

        Args:
            slot (str): the slot.

        Returns:
            list[str]: their names; empty if the op has no such slot.
        """
        return self.outputs().get(slot, [])

    def input_names(self):
        """Lists the input slots.

        Returns:
            list[str]: the slots.
        """
        return list(self.inputs())

    def output_names(self):
        """Lists the output slots.

        Returns:
            list[str]: the slots.
        """
        return list(self.outputs())

    def input_arg_names(self):
        """Lists all variables that the op reads.

        Returns:
            list[str]: their names.
        """
        return [name for names in self.inputs().values() for name in names]

    def output_arg_names(self):
        """Lists all variables that the op writes.

        Returns:
            list[str]: their names.
        """
        return [name for names in self.outputs().values() for name in names]

    def set_input(self, slot, names):
        """Sets the variables of an input slot.

        Args:
            slot (str): the slot.
            names (list[str]): the names.
        """
        self._program.set_op_input(*self._at, slot, texts(names))

    def set_output(self, slot, names):
        """Sets the variables of an output slot.

        Args:
            slot (str): the slot.
            names (list[str]): the names.
        """
        self._program.set_op_output(*self._at, slot, texts(names))

    def _rename_input(self, old_name, new_name):
        self._program.rename_in_op(*self._at, text(old_name), text(new_name), True, False)

    def _rename_output(self, old_name, new_name):
        self._program.rename_in_op(*self._at, text(old_name), text(new_name), False, True)
