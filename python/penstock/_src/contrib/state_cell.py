"""The step of a decoder: named inputs, named states, and a function that computes the next states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.layers.creation import fill_constant_batch_size_like

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from penstock._src.contrib.beam_search_decoder import _Decoder, _Memory
    from penstock._src.ir.variable import Variable

    T = TypeVar("T")


class InitState:
    """The initial value of a state of a StateCell.

    Args:
        init (Variable | None): the value, shape [sequences, ...]; None: a constant.
        shape (list[int] | None): shape of the constant; its first extent is replaced by that of `init_boot`.
        value (float): value of the constant.
        init_boot (Variable | None): a variable with a row for each sequence, required for a constant.
        need_reorder (bool): whether a TrainingDecoder must sort the rows of the value like its input's sequences, by
            length. Set it for what an encoder computed; a constant does not need it.
        dtype (str): type of the constant.

    Raises:
        ValueError: neither `init` nor `init_boot` with `shape` is given.

    Example:
        encoded = fluid.data('encoded', [None, 32])
        hidden = fluid.contrib.decoder.InitState(init=encoded, need_reorder=True)
        cell = fluid.contrib.decoder.InitState(init_boot=encoded, shape=[-1, 32])
    """

    def __init__(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        init_boot: Variable | None = None,
        need_reorder: bool = False,
        dtype: str = "float32",
    ) -> None:
        if init is None:
            if init_boot is None:
                raise ValueError("InitState: give init, or init_boot, which says how many rows the constant has")
            if shape is None:
                raise ValueError("InitState: with init_boot, give the shape of the constant")
            init = fill_constant_batch_size_like(init_boot, list(shape), dtype, value)
        self._value = init
        self._need_reorder = need_reorder

    @property
    def value(self) -> Variable:
        """Variable: the initial value."""
        value: Variable = self._value
        return value

    @property
    def need_reorder(self) -> bool:
        """bool: whether a TrainingDecoder sorts the rows of the value."""
        return self._need_reorder


CELL = {
    "cell_of_words": """encoded = fluid.data('encoded', [None, 32])
cell = decoders.StateCell(inputs={'word': None}, out_state='h',
                          states={'h': decoders.InitState(init=encoded, need_reorder=True)})

{updates_h}""",
    "updates_h": """@cell.state_updater
def update(cell):
    h = fluid.layers.fc([cell.get_state('h'), cell.get_input('word')], 32, act='tanh')
    cell.set_state('h', h)""",
}


@with_texts(CELL)
class StateCell:
    """The step of a decoder, for a TrainingDecoder or a BeamSearchDecoder; one decoder uses it at a time.

    Args:
        inputs (dict): the names of the inputs of a step; the values are ignored, usually None.
        states (dict): InitState of each state by name.
        out_state (str): the name of the state from which a BeamSearchDecoder computes the scores of the next word.
        name (str | None): not used.

    Raises:
        ValueError: a state is not an InitState, or `out_state` is not one of `states`.

    Example:
        decoders = fluid.contrib.decoder
        {cell_of_words}
    """

    def __init__(
        self, inputs: Mapping[str, object], states: Mapping[str, InitState], out_state: str, name: str | None = None
    ) -> None:
        for state, init in states.items():
            if not isinstance(init, InitState):
                raise ValueError(f"StateCell: state {state} must be an InitState, not {type(init).__name__}")
        if out_state not in states:
            raise ValueError(f"StateCell: out_state {out_state!r} must be one of {', '.join(sorted(states))}")
        self._inputs: dict[str, Any] = dict(inputs)
        self._initial = dict(states)
        self._out_state = out_state
        self._updater: Callable[[StateCell], object] | None = None
        self._decoder: _Decoder | None = None
        self._memories: dict[str, _Memory] = {}  # of the decoder, by name; empty until its first step reads a state
        self._values: dict[str, Any] = dict(states)

    def _enter(self, decoder: _Decoder) -> None:
        if self._decoder is not None:
            raise program_error(
                "E-decoder-order", f"StateCell: {type(self._decoder).__name__} uses it until its block ends"
            )
        self._decoder, self._memories = decoder, {}

    def _leave(self) -> None:
        self._decoder = None

    # Not when the decoder enters: a DynamicRNN has memories only after its first step_input.
    def _read_states(self) -> None:
        if self._decoder is None or self._memories:
            return
        for name, init in self._initial.items():
            memory = self._decoder._memory_of(init)
            self._memories[name] = memory
            self._values[name] = memory.before

    @property
    def input_names(self) -> list[str]:
        """list[str]: the names of the inputs."""
        return list(self._inputs)

    @property
    def state_names(self) -> list[str]:
        """list[str]: the names of the states."""
        return list(self._initial)

    def get_state(self, state_name: str) -> Variable:
        """Returns a state in the current step.

        Args:
            state_name (str): its name.

        Returns:
            Variable: shape [sequences in the step, ...]. Before any decoder uses the cell: the InitState.

        Raises:
            ValueError: there is no state of this name.
        """
        self._read_states()
        self._require_state(state_name)
        value: Variable = self._values[state_name]
        return value

    def set_state(self, state_name: str, state_value: Variable) -> None:
        """Sets a state in the current step; `update_states` passes it to the next one.

        Args:
            state_name (str): its name.
            state_value (Variable): the new value.

        Raises:
            ValueError: there is no state of this name.
        """
        self._read_states()
        self._require_state(state_name)
        self._values[state_name] = state_value

    def get_input(self, input_name: str) -> Variable:
        """Returns an input of the current step.

        Args:
            input_name (str): its name.

        Returns:
            Variable: the value that `compute_state` was given.

        Raises:
            ValueError: there is no input of this name, or it has no value yet.
        """
        value = self._inputs.get(input_name)
        if value is None:
            raise ValueError(
                f"StateCell: no value for input {input_name!r}; compute_state gives values to "
                f"{', '.join(sorted(self._inputs))}"
            )
        given: Variable = value
        return given

    def state_updater(self, updater: Callable[[StateCell], T]) -> Callable[[StateCell], T]:
        """Decorates the function that computes a step.

        Args:
            updater (callable): takes the cell; reads inputs and states, and sets states.

        Returns:
            callable: `updater`.
        """
        self._updater = updater
        return updater

    def compute_state(self, inputs: Mapping[str, Variable | None]) -> None:
        """Computes a step: calls the function that `state_updater` decorated.

        Args:
            inputs (dict): Variables by the names of the cell's inputs.

        Raises:
            ValueError: there is no input of such a name, or no function was decorated.
        """
        self._read_states()
        for name, value in inputs.items():
            if name not in self._inputs:
                raise ValueError(f"StateCell: no input {name!r}; the inputs are {', '.join(sorted(self._inputs))}")
            self._inputs[name] = value
        if self._updater is None:
            raise program_error(
                "E-decoder-order", "StateCell: decorate a function with state_updater before compute_state"
            )
        self._updater(self)

    def update_states(self) -> None:
        """Passes the states to the next step.

        Raises:
            ValueError: no decoder uses the cell.
        """
        if self._decoder is None:
            raise program_error("E-decoder-order", "StateCell: update_states is for the block of a decoder")
        self._read_states()
        for name, memory in self._memories.items():
            memory.pass_on(self._values[name])

    def out_state(self) -> Variable:
        """Returns the state of the name `out_state` in the current step.

        Returns:
            Variable: shape [sequences in the step, ...].
        """
        value: Variable = self._values[self._out_state]
        return value

    def _require_state(self, name: str) -> None:
        if name not in self._initial:
            raise ValueError(f"StateCell: no state {name!r}; the states are {', '.join(sorted(self._initial))}")
