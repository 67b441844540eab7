"""OpSlots: the part of an OpDesc that is about the op's type and the variables that it reads and writes."""

from __future__ import annotations

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.op_texts import OF_AN_OP
from penstock._src.ir.var_desc import View, text, texts


class OpSlots(View):
    """A view of an op's type, inputs and outputs."""

    __slots__ = ()
    _at: tuple[int, int]

    def type(self) -> str:
        """Returns the type, such as 'mul'.

        Returns:
            str: the type.
        """
        return self._program.op_type(*self._at)

    def set_type(self, kind: str) -> None:
        """Changes the type.

        Args:
            kind (str): the new type.
        """
        _penstock.set_op_type(self._program, *self._at, kind)

    @with_texts(OF_AN_OP, does="reads")
    def inputs(self) -> dict[str, list[str]]:
        """{by_slot}"""
        return self._program.op_inputs(*self._at)

    @with_texts(OF_AN_OP, does="writes")
    def outputs(self) -> dict[str, list[str]]:
        """{by_slot}"""
        return self._program.op_outputs(*self._at)

    @with_texts(OF_AN_OP, way="input")
    def input(self, slot: str) -> list[str]:
        """{variables}"""
        return self.inputs().get(slot, [])

    @with_texts(OF_AN_OP, way="output")
    def output(self, slot: str) -> list[str]:
        """{variables}"""
        return self.outputs().get(slot, [])

    @with_texts(OF_AN_OP, way="input")
    def input_names(self) -> list[str]:
        """{slots}"""
        return list(self.inputs())

    @with_texts(OF_AN_OP, way="output")
    def output_names(self) -> list[str]:
        """{slots}"""
        return list(self.outputs())

    @with_texts(OF_AN_OP, does="reads")
    def input_arg_names(self) -> list[str]:
        """{all_variables}"""
        return [name for names in self.inputs().values() for name in names]

    @with_texts(OF_AN_OP, does="writes")
    def output_arg_names(self) -> list[str]:
        """{all_variables}"""
        return [name for names in self.outputs().values() for name in names]

    @with_texts(OF_AN_OP, way="input")
    def set_input(self, slot: str, names: list[str]) -> None:
        """{to_set}"""
        self._program.set_op_input(*self._at, slot, texts(names))

    @with_texts(OF_AN_OP, way="output")
    def set_output(self, slot: str, names: list[str]) -> None:
        """{to_set}"""
        self._program.set_op_output(*self._at, slot, texts(names))

    def _rename_input(self, old_name: str, new_name: str) -> None:
        self._program.rename_in_op(*self._at, text(old_name), text(new_name), True, False)

    def _rename_output(self, old_name: str, new_name: str) -> None:
        self._program.rename_in_op(*self._at, text(old_name), text(new_name), False, True)
