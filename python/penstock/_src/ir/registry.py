"""Functions of fluid.core for ops: declarations, gradients and kernels; and the places and flags that op tests use."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, cast

from penstock import _penstock
from penstock._src.base import flags
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.descs import OpDesc
from penstock._src.ir.op_protos import all_types, proto_of
from penstock._src.ir.op_texts import OF_A_REGISTRY
from penstock._src.ir.types import VAR_TYPES, CPUPlace, _Place
from penstock._src.ir.var_desc import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock._penstock import LoDTensor
    from penstock._src.ir.descs import AttrValue, BlockDesc
    from penstock._src.ir.op_protos import OpProto


EMPTY_VAR_NAME, GRAD_VAR_SUFFIX = "@EMPTY@", "@GRAD"


@with_texts(OF_A_REGISTRY, module="core")
def get_all_op_protos() -> list[OpProto]:
    """{protos}"""
    return [proto_of(kind) for kind in all_types()]


def get_grad_op_desc(
    op_desc: OpDesc, no_grad_set: set[str], grad_sub_block: Sequence[BlockDesc]
) -> tuple[list[OpDesc], dict[str, str]]:
    """Creates the gradient ops of an op, outside its program.

    Args:
        op_desc (OpDesc): the op.
        no_grad_set (set[str]): names of gradients that are not needed, such as 'x@GRAD'.
        grad_sub_block (list): the gradient block of the block that the op runs; empty if it runs none.

    Returns:
        tuple: the list of OpDescs, and {name of a gradient: name of its forward variable}.

    Raises:
        penstock.ProgramError: the op has no gradient.

    Example:
        y = fluid.layers.relu(fluid.data('x', [2]))
        op = fluid.default_main_program().global_block().ops[0]
        grads, belongs_to = fluid.core.get_grad_op_desc(op.desc, set(), [])
        assert grads[0].type() == 'relu_grad' and belongs_to['x@GRAD'] == 'x'
    """
    program, forward_of = _penstock.grad_ops_of(
        op_desc._program, *op_desc._at, sorted(texts(no_grad_set)), grad_sub_block[0].id if grad_sub_block else -1
    )
    return [OpDesc(program, 0, op_id) for op_id in program.ops(0)], forward_of


def has_grad_op_maker(type: str) -> bool:
    """Returns whether an op has a gradient.

    Args:
        type (str): its type.

    Returns:
        bool: whether the op has a gradient.

    Example:
        assert fluid.core.has_grad_op_maker('relu')
    """
    return _penstock.op_has_gradient(type)


def get_op_attrs_default_value(type: bytes | str) -> dict[str, AttrValue]:
    """Returns the defaults of an op's attributes.

    Args:
        type (str | bytes): its type.

    Returns:
        dict: values by name, for the attributes that have a default.

    Raises:
        ValueError: the op is unknown.

    Example:
        assert fluid.core.get_op_attrs_default_value('fill_constant')['value'] == 0.0
    """
    type = type.decode() if isinstance(type, bytes) else type
    if type not in all_types():
        raise ValueError(f"there is no op {type}")
    op = OpDesc()
    op.set_type(type)
    op.check_attrs()
    return {name: op.attr(name) for name in op.attr_names()}


def has_infer_inplace(type: str) -> bool:
    """Returns whether an op declares which output may reuse the memory of which input.

    Args:
        type (str): its type.

    Returns:
        bool: False, because the memory plan decides this for a whole program.

    Example:
        assert not fluid.core.has_infer_inplace('relu')
    """
    return False


def op_support_gpu(type: str) -> bool:
    """Returns whether an op runs on GPUs through this API.

    Args:
        type (str): its type.

    Returns:
        bool: False, like is_compiled_with_cuda().

    Example:
        assert not fluid.core.op_support_gpu('relu')
    """
    return False


def _get_all_register_op_kernels() -> dict[str, list[str]]:
    """Returns {op type: its kernels as text}, without ops that have no kernels."""
    kernels = {
        kind: [f"data_type[{VAR_TYPES[number].name}]:place[CPUPlace]" for number in _penstock.op_kernel_types(kind)]
        for kind in all_types()
    }
    return {kind: texts for kind, texts in kernels.items() if texts}


def empty_var_name() -> str:
    """Returns the name that stands for a missing variable.

    Returns:
        str: '@EMPTY@'.

    Example:
        assert fluid.core.empty_var_name() == '@EMPTY@'
    """
    return EMPTY_VAR_NAME


def grad_var_suffix() -> str:
    """Returns the suffix of names of gradients.

    Returns:
        str: '@GRAD'.

    Example:
        assert fluid.core.grad_var_suffix() == '@GRAD'
    """
    return GRAD_VAR_SUFFIX


class _Flags(MutableMapping[str, object]):
    """Flags by name, which begins with FLAGS_. The initial values are Fluid's defaults."""

    _defaults = {
        "FLAGS_use_mkldnn": False,
        "FLAGS_use_system_allocator": False,
        "FLAGS_cudnn_deterministic": False,
        "FLAGS_eager_delete_tensor_gb": 0.0,
        "FLAGS_benchmark": False,
    }

    def __getitem__(self, name: str) -> object:
        known = self._known()
        if name not in known:
            raise KeyError(name)
        return known[name]

    def _known(self) -> dict[str, object]:
        return {**self._defaults, **flags._remembered, **flags.get_flags("FLAGS_check_nan_inf")}

    def __setitem__(self, name: str, value: object) -> None:
        if self._known().get(name) != value:
            flags.set_flags({name: value})

    def __delitem__(self, name: str) -> None:
        raise TypeError("a flag cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())


def globals() -> MutableMapping[str, object]:
    """Returns the flags by name.

    Returns:
        MutableMapping: setting an item is set_flags().

    Example:
        assert fluid.core.globals()['FLAGS_use_mkldnn'] is False
    """
    return _Flags()


class Place:
    """A place whose kind is set later.

    Example:
        place = fluid.core.Place()
        place.set_place(fluid.CPUPlace())
        assert place.is_cpu_place()
    """

    def __init__(self) -> None:
        self._place: _Place | None = None

    def set_place(self, place: _Place) -> None:
        """Sets the place.

        Args:
            place (CPUPlace): the place.

        Raises:
            TypeError: `place` is not a place.
        """
        if not isinstance(place, _Place):
            raise TypeError(f"set_place: the place must be one such as CPUPlace(), not {place!r}")
        self._place = place

    def is_cpu_place(self) -> bool:
        """Returns whether it is the CPU.

        Returns:
            bool: whether it is.
        """
        return type(self._place).__name__ == "CPUPlace"

    def is_gpu_place(self) -> bool:
        """Returns whether it is a GPU.

        Returns:
            bool: whether it is.
        """
        return type(self._place).__name__ == "CUDAPlace"

    def is_cuda_pinned_place(self) -> bool:
        """Returns whether it is pinned memory.

        Returns:
            bool: whether it is.
        """
        return type(self._place).__name__ == "CUDAPinnedPlace"

    def gpu_device_id(self) -> int:
        """Returns the number of the GPU.

        Returns:
            int: its number; -1 if it is not a GPU.
        """
        return getattr(self._place, "device", -1)

    def _type(self) -> str:
        return cast(str, cast(_Place, self._place)._type())

    def _equals(self, other: object) -> bool:
        return self._place == getattr(other, "_place", other)

    def __repr__(self) -> str:
        return f"Place({self._place!r})"


def place_of(tensor: LoDTensor) -> Place:
    """Returns the place of a tensor: the CPU."""
    place = Place()
    place.set_place(CPUPlace())
    return place
