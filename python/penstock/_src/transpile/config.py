"""DistributeTranspilerConfig: the settings of the transpiler, and checks of their values."""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import program_error, suggestion
from penstock._src.transpile import ps_dispatcher

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from penstock._penstock import ProgramError, TranspileConfig


__all__ = ["DistributeTranspilerConfig", "DistributedMode"]

MODES = ("pserver", "nccl2", "collective")
COLLECTIVE_MODES = ("grad_allreduce", "local_sgd", "single_process_multi_thread")
SLICINGS = ("fluid", "even", "mxnet")
BN_SYNCS = ("none", "average")
CLIPS = ("local", "global")
ON_UNEVEN = ("", "join", "pad", "error")
EXCHANGES = {"dense": ("pserver", "allreduce", "auto"), "sparse": ("pserver",)}

_FLAGS = (
    "slice_var_up",
    "enable_dc_asgd",
    "print_log",
    "wait_port",
    "half_async",
    "completely_not_async",
    "geo_sgd_mode",
    "use_hierarchical_allreduce",
    "local_sgd_adaptive",
)
MOST_ELEMENTS = 2**63 - 1
MOST_TRAINERS = 2**16
_SIZES = ("min_block_size", "big_array_bound", "chunk_bytes")
# The minimum of each field.
_COUNTS = {
    "geo_sgd_need_push_nums": 1,
    "nccl_comm_num": 1,
    "local_sgd_k_steps": 1,
    "hierarchical_allreduce_inter_nranks": 0,
}


class DistributedMode:
    """Values of the attribute `distributed_mode` of listen_and_serv.

    Example:
        assert fluid.transpiler.distribute_transpiler.DistributedMode.GEO == 3
    """

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3


class DistributeTranspilerConfig:
    """Configures the transpiler. Set its fields, then pass it to DistributeTranspiler.

    Names and defaults are Fluid's. Fluid does not have `slicing`, `big_array_bound`, `chunk_bytes`, `bn_sync`, `clip`,
    `local_sgd_k_steps`, `local_sgd_adaptive`, `dc_asgd_lambda`, and the fields from `staleness` to `on_uneven`. The
    page "The modes" states what each mode promises and when to use it.

    Attributes:
        mode (str): 'pserver', or ranks without pservers: 'nccl2' or 'collective'.
        sync_mode (bool): mode pserver: pservers wait for all trainers' gradients of a step.
        slice_var_up (bool): cut large parameters into slices.
        split_method (type | None): assigns slices to pservers, a subclass of PSDispatcher; None: RoundRobin.
        min_block_size (int): the minimum number of elements of a slice.
        slicing (str): how parameters are cut: 'fluid'; 'even': the slices' row counts differ by at most one; 'mxnet':
            parameters of `big_array_bound` elements or more are cut over all pservers, others stay whole.
        big_array_bound (int): elements, for slicing 'mxnet'.
        chunk_bytes (int): the maximum size of a chunk of a slice; a chunk has at least one row. Pservers merge, update
            and send chunks.
        bn_sync (str): running statistics of batch_norm: 'none': each trainer keeps its own; 'average': they are
            averaged over the trainers.
        clip (str): 'local': each trainer clips its own gradients; 'global': pservers clip the mean of all trainers'.
        enable_dc_asgd (bool): async: correct gradients for their staleness (DC-ASGD).
        dc_asgd_lambda (float): factor of that correction; Fluid's is 1.
        runtime_split_send_recv (bool): async: a communicator splits, merges and sends gradients.
        half_async (bool): with runtime_split_send_recv: a trainer waits for its own gradients to arrive.
        completely_not_async (bool): with runtime_split_send_recv: sync; pservers wait for all trainers.
        geo_sgd_mode (bool): set by Fleet's geo strategy; GeoSgdTranspiler makes these programs.
        geo_sgd_need_push_nums (int): geo-SGD: steps between two exchanges.
        collective_mode (str | None): mode collective: 'grad_allreduce', 'local_sgd' or 'single_process_multi_thread'.
        local_sgd_k_steps (int): local_sgd: steps between two averages.
        local_sgd_adaptive (bool): local_sgd: the number of steps between two averages follows the loss and the
            learning rate: ceil(sqrt(lr_0 / lr * loss / loss_0 * local_sgd_k_steps)), from 1 to 16. `loss` is the mean
            of all trainers' losses at an average; lr_0 and loss_0 are those of the first average, after one step. All
            trainers take the same number.
        nccl_comm_num (int): ranks: the number of rings, which are used in turn.
        use_hierarchical_allreduce (bool): nccl2: ranks of one machine first sum gradients among themselves.
        hierarchical_allreduce_inter_nranks (int): the number of ranks of one machine.
        print_log (bool): accepted for Fluid's scripts.
        wait_port (bool): accepted for Fluid's scripts.
        staleness (int | None): async (only sync_mode False), 0 or more. A trainer waits for slower ones: the parameters
            for step v contain all trainers' updates of the steps below v - staleness. With 0 trainers take each step
            together; gradients are still applied one by one.
        backup_trainers (int): sync with clip 'local', from 0 to the number of trainers - 1. Each step uses the mean of
            the gradients of all trainers except this many; late gradients are dropped and counted.
        compression (str): modes in which pservers update. How trainers compress dense float32 gradients, by size in
            elements and by parameter: 'two_bit 0.5 from 65536, fc_0.w_0: none'. The methods are 'none'; 'fp16' and
            'bf16', which round to 16 bits; 'two_bit T', MXNet's 2bit with threshold T (0.5), a sixteenth of the bytes;
            and 'top_k R', which sends the share R (0.01) of the elements that is largest, with their positions. What
            two_bit and top_k do not send is added to the next step's gradient; each trainer keeps it in
            `<parameter>@RESIDUAL`, which is saved and loaded with its variables.
        exchange (dict | str | None): sync. {'dense': 'allreduce', 'sparse': 'pserver'}: trainers sum the gradients of
            dense parameters among themselves and all make the same updates, and pservers hold sparse tables. With
            'auto' (also as the value of 'dense') the cost model chooses the exchange of each dense parameter; the
            plan's `exchange` lines state the choices and the times. transpile(trainers=) must then be the trainers'
            addresses, unless PADDLE_TRAINER_ENDPOINTS has them.
        exchange_gbit (float): 'auto': the bandwidth of a link in each direction, in Gbit/s.
        exchange_message_us (float): 'auto': the fixed cost of a message, in microseconds.
        on_uneven (str): sync, also with an `exchange`; nccl2, grad_allreduce and local_sgd. What trainers do if their
            batches differ in size or number: 'join', 'pad' or 'error'; see Executor.batches, which yields such batches.
            '': batches do not differ. In sync mode trainers count examples among themselves, so transpile(trainers=)
            must be their addresses, unless PADDLE_TRAINER_ENDPOINTS has them.

    Raises:
        penstock.ProgramError: (by the transpiler) the mode or a parameter does not allow a setting, or compat is set
            (E-plan-staleness, E-plan-backup-trainers, E-plan-compression, E-plan-exchange, E-plan-on-uneven,
            E-plan-local-sgd-steps); `compression` cannot be read (E-text-syntax, E-compression-value).

    Example:
        config = fluid.DistributeTranspilerConfig()
        config.compression = 'two_bit 0.5 from 65536'

    Reference:
        Ho et al., More effective distributed ML via a stale synchronous parallel parameter server, NIPS 2013.
        Chen et al., Revisiting distributed synchronous SGD, ICLR Workshop 2016. Seide et al., 1-bit stochastic
        gradient descent, Interspeech 2014. Lin et al., Deep gradient compression, ICLR 2018.
        Wang and Joshi, Adaptive communication strategies to achieve the best error-runtime trade-off in local-update
        SGD, 2018.
    """

    slice_var_up = True
    split_method = None  # a subclass of PSDispatcher; None: RoundRobin
    min_block_size = 8192  # the minimum number of elements of a slice
    slicing = "fluid"  # 'fluid', 'even' or 'mxnet'
    big_array_bound = 1000000  # elements
    chunk_bytes = 1 << 20  # the maximum of a chunk, the unit of merge and update
    bn_sync = "none"  # 'average': running statistics are averaged over trainers
    clip = "local"  # 'global': the mean of all trainers' gradients is clipped, as one machine would
    enable_dc_asgd = False
    dc_asgd_lambda = 1.0  # factor of the correction; Fluid has only 1
    mode = "pserver"
    print_log = False
    wait_port = True
    half_async = False
    completely_not_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    nccl_comm_num = 1
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    collective_mode = None
    staleness = None  # async: steps that a trainer may be ahead of the slowest
    backup_trainers = 0  # sync: trainers that a step does not wait for
    compression = "none"  # of gradients, such as 'two_bit 0.5 from 65536, fc_0.w_0: none'
    exchange = None  # {'dense': 'allreduce', 'sparse': 'pserver'}, or 'auto': by cost
    exchange_gbit = 10.0  # 'auto': bandwidth of a link in each direction, Gbit/s
    exchange_message_us = 20.0  # 'auto': the fixed cost of a message
    on_uneven = ""  # 'join', 'pad' or 'error': trainers' batches may differ in size and number
    local_sgd_k_steps = 1  # local_sgd: steps between two averages
    local_sgd_adaptive = False  # local_sgd: the interval follows loss and learning rate
    _sync_mode = None  # None: untouched, so an argument of transpile() wins
    _runtime_split_send_recv = False

    @property
    def sync_mode(self) -> bool | None:
        """Whether pservers wait for all trainers."""
        return True if self._sync_mode is None else self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: bool | None) -> None:
        value = check_flag("sync_mode", value)
        if value and self._runtime_split_send_recv:
            raise _both()
        self._sync_mode = value

    @property
    def runtime_split_send_recv(self) -> bool:
        """Whether a communicator splits, merges and sends gradients."""
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: bool) -> None:
        value = check_flag("runtime_split_send_recv", value)
        if value and self._sync_mode:
            raise _both()
        self._runtime_split_send_recv = value

    def __setattr__(self, name: str, value: float | str | None) -> None:
        if type(self) is DistributeTranspilerConfig and not hasattr(type(self), name):  # a subclass may have others
            fields = [one for one in dir(type(self)) if not one.startswith("_")]
            raise program_error(
                "E-plan-config", f"plan: {type(self).__name__} has no field {name}{suggestion(name, fields)}"
            )
        object.__setattr__(self, name, value)

    def is_set(self, field: str) -> bool:
        """Returns whether a field was given a value.

        Args:
            field (str): its name.

        Returns:
            bool: whether the field was set.
        """
        return field in vars(self) or getattr(type(self), field) is not getattr(DistributeTranspilerConfig, field)

    def validate(self) -> None:
        """Raises if the value of a field is wrong.

        Raises:
            penstock.ProgramError: the error names the field, its value and the valid values.
        """
        for field in _FLAGS:
            check_flag(field, getattr(self, field))
        for field in _SIZES:
            check_count(field, getattr(self, field), 1, MOST_ELEMENTS)
        for field, least in _COUNTS.items():
            check_count(field, getattr(self, field), least)
        for field in ("dc_asgd_lambda", "exchange_gbit", "exchange_message_us"):
            check_number(field, getattr(self, field))
        set_policies(self.staleness, self.backup_trainers, self.compression, _penstock.TranspileConfig())
        check_choice("mode", self.mode, MODES, "E-plan-kind")
        check_choice("slicing", self.slicing, SLICINGS, "E-plan-slicing")
        check_choice("bn_sync", self.bn_sync, BN_SYNCS, "E-plan-bn-sync")
        check_choice("clip", self.clip, CLIPS, "E-plan-clip")
        dense_exchange(self.exchange)
        check_choice("on_uneven", self.on_uneven, ON_UNEVEN, "E-plan-on-uneven")
        if self.collective_mode is not None:
            check_choice("collective_mode", self.collective_mode, COLLECTIVE_MODES, "E-plan-collective-mode")
        ps_dispatcher.check(self.split_method)


def set_policies(staleness: int | None, backup_trainers: int, compression: str, config: TranspileConfig) -> None:
    """Sets the fields of a native configuration that Fluid does not have."""
    config.staleness = None if staleness is None else check_count("staleness", staleness, 0)
    config.backup_trainers = check_count("backup_trainers", backup_trainers, 0)
    if not isinstance(compression, str):
        raise program_error(
            "E-plan-config", f"plan: compression must be a text, such as 'two_bit 0.5', not {compression!r}"
        )
    config.compression = compression


def dense_exchange(exchange: Any) -> str:
    """Returns how dense parameters are exchanged: 'pserver', 'allreduce' or 'auto'."""
    if exchange is None or (isinstance(exchange, str) and exchange == "auto"):
        return exchange or "pserver"
    known = isinstance(exchange, dict) and all(
        kind in EXCHANGES and way in EXCHANGES[kind] for kind, way in exchange.items()
    )
    if not known:
        raise program_error(
            "E-plan-exchange",
            "plan: exchange must be 'auto' or a dict of 'dense' ('pserver', 'allreduce' or 'auto') "
            f"and 'sparse' ('pserver'), not {exchange!r}",
        )
    return exchange.get("dense", "pserver")


def check_flag(field: str, value: object) -> bool:
    """Returns the value as a bool."""
    if type(value).__name__ in ("bool", "bool_") or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise program_error("E-plan-config", f"plan: {field} must be True or False, not {value!r}")


def check_count(field: str, value: Any, least: int | None = None, most: int = 2**31 - 1) -> int:
    """Returns the value as an int, from `least` to `most`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise program_error("E-plan-config", f"plan: {field} must be an integer, not {value!r}")
    if least is not None and number < least:
        raise program_error("E-plan-config", f"plan: {field} must be at least {least}, not {number}")
    if number > most:
        raise program_error("E-plan-config", f"plan: {field} must be at most {most}, not {number}")
    return number


def ids_of_trainers(trainers: int, ids: Iterable[object] | None) -> list[int]:
    """Returns the ids of the trainers whose programs are made: all if `ids` is None. C++ rejects ids out of range."""
    numbers: Iterable[object] = range(min(trainers, MOST_TRAINERS)) if ids is None else ids
    return [check_count("trainer_id", trainer_id) for trainer_id in numbers]


def check_number(field: str, value: float) -> float:
    """Returns the value as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise program_error("E-plan-config", f"plan: {field} must be a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise program_error("E-plan-config", f"plan: {field} is larger than any float") from None


def check_choice(field: str, value: str, choices: tuple[str, ...], id: str) -> str:
    """Returns the value, which must be one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise program_error(
            id,
            "plan: {} is {!r}; it must be one of {}".format(
                field, value, ", ".join(choice or "''" for choice in choices)
            ),
        )
    return value


def _both() -> ProgramError:
    return program_error("E-plan-sync-mode", "plan: runtime_split_send_recv=True needs sync_mode=False; it is True")
