"""Names of Fluid's imperative mode. Importing them works, as does deriving a class from one of them, because scripts
and libraries for programs import them in passing; any use of one raises the error.

    Layer, to_variable = name_of('layers', 'Layer'), name_of('base', 'to_variable')
    class Net(Layer): ...     # works
    Net()                     # raises NotImplementedError
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


from penstock._src.base.errors import not_built

WHY = "there is no imperative mode here; build a Program with fluid.layers and run it by fluid.Executor"
PACKAGE = "penstock.fluid.dygraph"

_CLASSES = {
    "base": "",
    "backward_strategy": "BackwardStrategy",
    "checkpoint": "",
    "container": "LayerList ParameterList Sequential",
    "dygraph_to_static": "ProgramTranslator",
    "dygraph_to_static.ast_transformer": "DygraphToStaticAst",
    "dygraph_to_static.basic_api_transformer": "BasicApiTransformer",
    "dygraph_to_static.break_continue_transformer": "BreakContinueTransformer ForToWhileTransformer",
    "dygraph_to_static.call_transformer": "CallTransformer",
    "dygraph_to_static.ifelse_transformer": "IfConditionVisitor IfElseTransformer NameVisitor NodeTestTransformer",
    "dygraph_to_static.list_transformer": "ListTransformer",
    "dygraph_to_static.loop_transformer": "LogicalOpTransformer LoopTransformer NameVisitor",
    "dygraph_to_static.partial_program": "PartialProgramLayer",
    "dygraph_to_static.print_transformer": "PrintTransformer",
    "dygraph_to_static.program_translator": "ConcreteProgram FunctionCache FunctionSpec ProgramCache ProgramTranslator",
    "dygraph_to_static.static_analysis": "AstNodeWrapper AstVarEnv AstVarScope NodeVarType StaticAnalysisVisitor",
    "dygraph_to_static.tensor_shape_transformer": "TensorShapeTransformer",
    "dygraph_to_static.utils": "IsControlFlowVisitor RenameTransformer",
    "dygraph_to_static.variable_trans_func": "",
    "io": "TranslatedLayer",
    "jit": "TracedLayer",
    "layer_object_helper": "LayerObjectHelper",
    "layers": "HookRemoveHelper Layer",
    "learning_rate_scheduler": """CosineDecay ExponentialDecay InverseTimeDecay LambdaDecay LearningRateDecay
        LinearLrWarmup MultiStepDecay NaturalExpDecay NoamDecay PiecewiseDecay PolynomialDecay ReduceLROnPlateau
        StepDecay""",
    "math_op_patch": "",
    "nn": """BCELoss BatchNorm BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose Dropout Embedding FC
        GRUUnit GroupNorm InstanceNorm L1Loss LayerNorm Linear MSELoss NCE NLLLoss PRelu Pool2D RowConv SequenceConv
        SpectralNorm TreeConv""",
    "parallel": "DataParallel",
    "parallel_helper": "",
    "profiler": "",
    "static_runner": "StaticModelRunner",
    "tracer": "Tracer",
    "varbase_patch_methods": "",
}
_FUNCTIONS = {
    "base": """enable_dygraph enable_imperative disable_dygraph disable_imperative enabled grad guard no_grad
        param_guard program_desc_tracing_guard to_variable _switch_tracer_mode_guard_""",
    "checkpoint": "load_dygraph save_dygraph",
    "dygraph_to_static": "convert_call convert_to_static convert_function_with_cache",
    "dygraph_to_static.ast_transformer": "convert_to_static",
    "dygraph_to_static.convert_call_func": "convert_call is_builtin is_paddle_func",
    "dygraph_to_static.ifelse_transformer": """create_cond_node get_name_ids parse_cond_args parse_cond_return
        transform_if_else""",
    "dygraph_to_static.loop_transformer": "create_while_node",
    "dygraph_to_static.partial_program": "partial_program_from valid_vars",
    "dygraph_to_static.program_translator": "convert_function_with_cache synchronized",
    "dygraph_to_static.utils": """ast_to_func ast_to_source_code compare_with_none create_api_shape_node
        create_assign_node create_funcDef_node generate_name_node get_attribute_full_name get_constant_variable_node
        index_in_list is_api_in_module is_candidate_node is_control_flow_to_transform is_dygraph_api is_numpy_api
        is_paddle_api is_to_variable recover_globals_attribute to_assign_node to_static_api to_static_ast
        update_args_of_func""",
    "dygraph_to_static.variable_trans_func": """create_fill_constant_node create_static_variable_gast_node
        data_layer_not_check to_static_variable to_static_variable_gast_node""",
    "jit": """create_program_from_desc declarative dygraph_to_static_func dygraph_to_static_output extract_vars
        trace""",
    "math_op_patch": "monkey_patch_math_varbase",
    "parallel": "prepare_context",
    "profiler": "start_gperf_profiler stop_gperf_profiler",
    "varbase_patch_methods": "monkey_patch_varbase",
}
# Functions that scripts apply to functions while they are imported.
_DECORATORS = frozenset(["declarative", "dygraph_to_static_func", "dygraph_to_static_output", "no_grad"])


def refusal(name: str) -> NotImplementedError:
    """Returns the error to raise for a use of a name of imperative mode."""
    return not_built(f"{name}: {WHY}")


class Imperative(type):
    """The metaclass of the classes of imperative mode: neither they nor classes derived from them have instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> None:
        base = next((one for one in cls.__mro__ if "_imperative_name" in vars(one)), cls)
        name = vars(base)["_imperative_name"]
        raise refusal(name if base is cls else f"{cls.__name__}, derived from {name}")

    def __getattr__(cls, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        raise refusal(f"{cls.__name__}.{name}")


@functools.cache
def class_of(name: str) -> type[Any]:
    """Returns the class of a name such as 'fluid.dygraph.nn.Linear'."""
    return Imperative(
        name.rpartition(".")[2],
        (),
        {"_imperative_name": name, "__module__": "penstock." + name.rpartition(".")[0], "__doc__": WHY},
    )


@functools.cache
def function_of(name: str) -> Callable[..., Any]:
    """Returns the function of a name such as 'fluid.dygraph.base.guard'."""

    def use(*args: Any, **kwargs: Any) -> Any:
        if name.rpartition(".")[2] in _DECORATORS and len(args) == 1 and callable(args[0]) and not kwargs:
            decorated = functools.wraps(args[0])(lambda *args, **kwargs: use())
            return decorated
        raise refusal(name)

    use.__name__ = use.__qualname__ = name.rpartition(".")[2]
    use.__module__, use.__doc__ = "penstock." + name.rpartition(".")[0], WHY
    return use


def names_in(module: str) -> set[Any]:
    """Returns the names of one of Fluid's modules, such as 'nn'."""
    return set((_CLASSES.get(module, "") + " " + _FUNCTIONS.get(module, "")).split())


def name_of(module: str, name: str) -> Any:
    """Returns the object of a name of one of Fluid's modules."""
    full = f"fluid.dygraph.{module}.{name}"
    return class_of(full) if name in _CLASSES.get(module, "").split() else function_of(full)


def _missing(module: str) -> Callable[..., Any]:

    def missing(name: str) -> Any:
        if name in names_in(module):
            return name_of(module, name)
        if f"{PACKAGE}.{module}.{name}" in sys.modules:
            return sys.modules[f"{PACKAGE}.{module}.{name}"]
        raise AttributeError(f"penstock.fluid.dygraph.{module} has no {name}")

    return missing


def make_modules(own: Mapping[str, Mapping[str, object]]) -> None:
    """Makes the modules below fluid.dygraph. `own` are objects of the package that replace names of modules."""
    for name in sorted({*_CLASSES, *_FUNCTIONS}):
        module = types.ModuleType(f"{PACKAGE}.{name}", "Names of imperative mode; a use of one raises an error.")
        packed = any(other.startswith(name + ".") for other in {*_CLASSES, *_FUNCTIONS})
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None, is_package=packed)
        module.__package__ = module.__name__ if packed else module.__name__.rpartition(".")[0]
        if packed:
            module.__path__ = []
        vars(module)["__getattr__"] = _missing(name)
        for known, value in own.get(name, {}).items():
            setattr(module, known, value)
        sys.modules[module.__name__] = module


def name_of_package(name: str) -> Any:
    """Returns the object of a public name of fluid.dygraph, or None: the package has its modules, and their names."""
    if f"{PACKAGE}.{name}" in sys.modules and not name.startswith("_"):
        return sys.modules[f"{PACKAGE}.{name}"]
    for module in sorted({*_CLASSES, *_FUNCTIONS}):
        if "." not in module and name in names_in(module):
            return name_of(module, name)
    return None
