"""Makes the type stub of the C++ module, penstock/_penstock.pyi.

pybind11-stubgen reads what pybind11 says of each function. What C++ only calls an object, a list, a dict or a tuple
gets its type from the tables here; a type that neither has is an error.
"""

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = '''"""The C++ module."""

# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="overload-cannot-match"
import collections.abc
import typing

import numpy.typing

from penstock._src.ir.descs import BlockDesc

_Array: typing.TypeAlias = numpy.typing.NDArray[typing.Any]  # of any element type
_Attr: typing.TypeAlias = bool | int | float | str | list[bool] | list[int] | list[float] | list[str]
_Programs: typing.TypeAlias = tuple[ProgramDesc, ProgramDesc]  # main and start-up
_Fetched: typing.TypeAlias = LoDTensor | LoDTensorArray
_Feeds: typing.TypeAlias = list[tuple[str, LoDTensor | _Array]]
_Pieces: typing.TypeAlias = list[tuple[str, str, int]]  # server, name there, number of rows
_Slots: typing.TypeAlias = list[tuple[str, bool, bool, bool, str]]
_PlannedParam: typing.TypeAlias = tuple[
    str, str, str, list[int], bool, bool, list[tuple[str, int, int, str]]
]

class _Regularizer(typing.Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def coefficient(self) -> float: ...
'''
RETURNS = {
    "Dataset.read_records": "DatasetReading",
    "DatasetReading.queues": "list[BatchQueue]",
    "BatchQueue.pop": "list[LoDTensor] | None",
    "Executor.run": "list[_Fetched]",
    "KvLocal.merge": "_Array",
    "KvLocalTable.lookup": "_Array",
    "KvLocal.merge_rows": "tuple[_Array, _Array]",
    "KvLocal.pull_rows": "tuple[_Array, _Array]",
    "LoDRankTable.items": "list[tuple[int, int]]",
    "LoDTensor.__array__": "_Array",
    "LoDTensor._view": "_Array",
    "Places.run": "list[list[_Fetched] | None]",
    "Places.stats": "dict[str, int]",
    "ProgramDesc.op_attr_kind": "int | None",
    "ProgramDesc.op_attrs": "dict[str, _Attr]",
    "ProgramDesc.op_inputs": "dict[str, list[str]]",
    "ProgramDesc.op_outputs": "dict[str, list[str]]",
    "ProgramDesc.var_reader": "list[tuple[int, list[int], int]]",
    "ProgramDesc.var_shape": "tuple[int, ...]",
    "RuntimeVariable._from_file_bytes": "tuple[RuntimeVariable, int]",
    "RuntimeVariable.get_selected_rows": "SelectedRows",
    "RuntimeVariable.get_tensor": "LoDTensor",
    "Scope.find_var": "RuntimeVariable | None",
    "_RoleSet.params": "list[_PlannedParam]",
    "_RoleSet.pservers": "list[tuple[str, ProgramDesc, ProgramDesc]]",
    "_RoleSet.trainers": "list[tuple[int, ProgramDesc, ProgramDesc]]",
    "arrays_running": "list[tuple[int, int, str]]",
    "buffer_bytes": "tuple[int, int]",
    "convert_array": "_Array",
    "geo_plan": "tuple[list[_PlannedParam], int, int] | None",
    "grad_ops_of": "tuple[ProgramDesc, dict[str, str]]",
    "job_of_environment": "tuple[list[str], int] | None",
    "memory_need": "tuple[int, int, int]",
    "memory_need_by_part": "dict[str, int]",
    "merge_traces": "list[tuple[str, str, int, int]]",
    "op_events": "tuple[list[tuple[int, int, int, int]], int]",
    "op_facts": "tuple[str, _Slots, _Slots, list[tuple[str, int, str]]]",
    "op_times": "list[tuple[str, int, int, int, int]]",
    "parse_setting": "bool | int | float | str | None",
    "release_buffers": "tuple[ProgramDesc, str]",
    "remote_params": "tuple[dict[str, _Pieces], int, bool] | None",
    "reuse_buffers": "tuple[ProgramDesc, str]",
    "setting_names": "list[str]",
    "settings": "list[dict[str, typing.Any]]",  # a row as its fields
}
_NAMES = "collections.abc.Mapping[str, typing.Any]"  # slot: a name, a variable or a list of them
ARGUMENTS = {
    "BatchQueue.push.arg0": "list[LoDTensor | _Array]",
    "CommunicatorMode.__eq__.other": "object",
    "CommunicatorMode.__ne__.other": "object",
    "Executor.look_ahead.next": "BatchQueue",
    "Executor.run.feeds": "_Feeds",
    "KvClient.declare.value": "_Array | None",
    "KvClient.pull.out": "_Array",
    "KvClient.pull_rows.out": "_Array",
    "KvClient.pull_rows.rows": "_Array",
    "KvClient.push.value": "_Array",
    "KvClient.push_rows.rows": "_Array",
    "KvClient.push_rows.values": "_Array",
    "KvLocal.assign.value": "_Array",
    "KvLocal.init.value": "_Array",
    "KvLocal.init_rows.rows": "_Array",
    "KvLocal.init_rows.values": "_Array",
    "KvLocal.merge.values": "list[_Array]",
    "KvLocal.merge_rows.values": "list[tuple[_Array, _Array]]",
    "KvLocal.pull.out": "_Array",
    "KvLocal.pull_rows.rows": "_Array",
    "KvLocal.push.values": "list[_Array]",
    "KvLocal.push_rows.values": "list[tuple[_Array, _Array]]",
    "KvLocalTable.lookup.ids": "_Array",
    "KvLocalTable.push.gradients": "_Array",
    "KvLocalTable.push.ids": "_Array",
    "LoDTensor.__array__.copy": "bool | None",
    "LoDTensor.__array__.dtype": "numpy.typing.DTypeLike",
    "LoDTensor.set.array": "numpy.typing.ArrayLike",
    "LoDTensor.set.place": "object",
    "OptimizerSpec.__init__.attrs": "collections.abc.Mapping[str, _Attr]",
    "OptimizerSpec.__init__.learning_rate": "str | float",
    "OptimizerSpec.__init__.regularizer": "_Regularizer | None",
    "OptimizerSpec.__init__.regularizers": "collections.abc.Mapping[str, _Regularizer]",
    "Places.run.arg2": "list[tuple[Scope, _Feeds]]",
    "ProgramDesc.append_op.attrs": "collections.abc.Mapping[str, typing.Any] | None",
    "ProgramDesc.append_op.inputs": f"{_NAMES} | None",
    "ProgramDesc.append_op.outputs": f"{_NAMES} | None",
    "ProgramDesc.set_op_attr.arg3": "object",
    "TranspileConfig.give.arg2": "object",
    "add_host_function.arg0": "collections.abc.Callable[[list[LoDTensor | None]], list[_Array | LoDTensor | None]]",
    "arrays_adasum.arg0": "_Array",
    "checked_flag.arg1": "object",
    "checked_integer.value": "object",
    "convert_array.array": "_Array",
    "require_unmasked.array": "object",
}
# Members that pybind11-stubgen leaves out because they cannot be read, and those of penstock/_src/ir/native.py.
ADDED = {
    "LoDTensor": """
        def __getitem__(self, index: typing.Any) -> LoDTensor: ...  # what NumPy takes
        def _alloc_double(self, place: object = None) -> None: ...
        def _alloc_float(self, place: object = None) -> None: ...
        def _alloc_int(self, place: object = None) -> None: ...
        def _copy(self, place: object = None) -> LoDTensor: ...
        def _get_dims(self) -> list[int]: ...
        def _mutable_data(self, place: object, dtype: int) -> int: ...
        def _set_dims(self, dims: collections.abc.Sequence[int]) -> None: ...
        def _to_dlpack(self) -> typing.Any: ...  # a capsule
    """,
    "ProgramDesc": """
        @typing.overload
        def append_block(self, parent: int) -> int: ...
        @typing.overload
        def append_block(self, parent: BlockDesc) -> BlockDesc: ...
        def block(self, index: int) -> BlockDesc: ...
        def _version(self) -> int: ...
    """,
    "RuntimeVariable": """
        def get_fetch_list(self) -> LoDTensorArray: ...
    """,
    "Scope": """
        def _remove_from_pool(self) -> None: ...
    """,
    "TranspileConfig": """
        dialect: str
        dispatcher: collections.abc.Callable[..., typing.Any]  # the user's
        kind: str
    """,
}


def _module():
    import penstock._penstock

    return penstock._penstock


def _printed():
    """What pybind11-stubgen prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pybind11_stubgen", "penstock._penstock", "-o", folder, "--ignore-all-errors"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return Path(folder, "penstock", "_penstock.pyi").read_text(encoding="utf-8")


def _expression(text):
    return ast.parse(text, mode="eval").body


class _Mend(ast.NodeTransformer):
    """Replaces what pybind11 does not say."""

    def __init__(self):
        self.owner, self.used, self.untyped = "", set(), []

    def visit_ClassDef(self, node):
        self.owner = node.name + "."
        node.body = [item for item in map(self.visit, node.body) if item is not None]
        added = ast.parse("if 1:\n" + ADDED.get(node.name, "  pass")).body[0].body
        names = {item.name for item in added if isinstance(item, ast.FunctionDef)}
        body = [item for item in node.body if getattr(item, "name", "") not in names]
        node.body = [item for item in body + added if not isinstance(item, ast.Pass)] or [ast.Pass()]
        self.owner = ""
        return node

    def visit_AnnAssign(self, node):
        if self.owner == "TranspileConfig." and ast.unparse(node.annotation) == "typing.Any":
            node.annotation = _expression(_setting_type(node.target.id))
        return node

    def visit_FunctionDef(self, node):
        name = self.owner + node.name
        documented = ast.get_docstring(node)
        if node.args.vararg is not None and documented:
            signature = documented.replace("penstock._penstock.", "").strip()
            node = ast.parse(f"def {node.name}{signature}: ...").body[0]
            node.args.args[0].annotation = None
        node.body = [ast.Expr(ast.Constant(...))]
        for argument in node.args.args:
            self._replace(argument, "annotation", f"{name}.{argument.arg}", ARGUMENTS)
            if argument.arg in ("array", "out") and ast.unparse(argument.annotation) == "typing.Any":
                argument.annotation = _expression("_Array")
        if "setter" not in str([ast.unparse(one) for one in node.decorator_list]):
            self._replace(node, "returns", name, RETURNS)
        self._only_by_position(node.args)
        return node

    def _replace(self, node, field, name, table):
        if name in table:
            self.used.add(name)
            setattr(node, field, _expression(table[name]))
        text = ast.unparse(getattr(node, field) or ast.Constant(0))
        bare = re.search(r"\b(list|dict|tuple)\b(?!\[)|\.\.\.(?!\])|^typing\.Any$", text)
        if bare and name.rpartition(".")[2] not in ("array", "out"):
            self.untyped.append(f"{name}: {text}")

    @staticmethod
    def _only_by_position(arguments):
        """Arguments without a name in C++."""
        unnamed = [i for i, one in enumerate(arguments.args) if re.fullmatch(r"arg\d+", one.arg)]
        if unnamed:
            arguments.posonlyargs = arguments.args[: unnamed[-1] + 1]
            arguments.args = arguments.args[unnamed[-1] + 1 :]


def _setting_type(name):
    """The type of a row of the table of settings."""
    for row in _module().settings():
        if row["name"] == name:
            return f"{row['type']} | None" if row["optional"] else row["type"]
    raise SystemExit(f"native_stub: TranspileConfig.{name} has no row in the table of settings")


def _exceptions():
    lines = []
    module = _module()
    for name in sorted(vars(module)):
        kind = getattr(module, name)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            bases = ", ".join(base.__name__ for base in kind.__bases__)
            lines += [f"class {name}({bases}):", "    id: str", "    details: list[str]"]
    return "\n".join(lines) + "\n"


def text():
    """Returns the stub."""
    printed = _printed()
    for several, one in (("Int", "Index"), ("Float", "Float")):
        printed = printed.replace(f"typing.Supports{several} | typing.SupportsIndex", f"typing.Supports{one}")
    mend = _Mend()
    tree = ast.parse(printed.replace("penstock._penstock.", ""))
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    tree.body = [node for node in tree.body if getattr(getattr(node, "target", None), "id", "") != "__all__"]
    tree = ast.fix_missing_locations(mend.visit(tree))
    unused = {*RETURNS, *ARGUMENTS} - mend.used
    if mend.untyped or unused:
        problems = [f"no type for {one}" for one in mend.untyped] + [f"nothing is {one}" for one in sorted(unused)]
        raise SystemExit("native_stub: " + "; ".join(problems))
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "--stdin-filename=x.pyi", "-"]
    whole = HEAD + "\n" + _exceptions() + "\n" + ast.unparse(tree) + "\n"
    return subprocess.run(command, input=whole, capture_output=True, text=True, check=True).stdout
