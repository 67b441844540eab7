// Bindings of append_backward, minimize and the parts of minimize.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/autodiff/backward.h"
#include "framework/autodiff/in_block.h"
#include "framework/autodiff/minimize.h"
#include "framework/autodiff/op_writer.h"
#include "framework/autodiff/regularize.h"
#include "framework/ir/name_scope.h"
#include "operators/all_ops.h"
#include "python/src/attrs.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/program_box.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The options of one more backward pass of the program.
BackwardOptions Options(ProgramBox& main, std::string loss, std::vector<std::string> parameters,
                        const std::vector<std::string>& no_grad, std::vector<std::string> checkpoints = {}) {
  return {.loss = std::move(loss),
          .parameters = std::move(parameters),
          .no_grad = NameSet(no_grad.begin(), no_grad.end()),
          .earlier = main.backwards++,
          .checkpoints = std::move(checkpoints)};
}

// Converts hyperparameters to the kinds that the op declares.
void SetAttrs(OptimizerSpec& spec, const py::dict& attrs) {
  const OpDef* def = AllOps().Find(spec.op_type);
  for (const auto& [key, value] : attrs) {
    const std::string name = key.cast<std::string>();
    const AttrDef* attr = def == nullptr ? nullptr : def->FindAttr(name);
    std::optional<AttrKind> kind;
    if (attr != nullptr) kind = attr->kind;
    spec.attrs.push_back({name, AttrFromPython(value, kind, spec.op_type, name)});
  }
}

Regularizer RegularizerOf(const py::object& value) {
  const bool l1 = value.attr("kind").cast<std::string>() == "l1";
  return {.kind = l1 ? Regularizer::Kind::kL1 : Regularizer::Kind::kL2,
          .coefficient = value.attr("coefficient").cast<float>()};
}

// learning_rate: a number, or the name of a variable. regularizers: {parameter: regularizer}; a regularizer
// has a kind and a coefficient.
OptimizerSpec MakeSpec(std::string op_type, const py::dict& attrs, const py::object& learning_rate,
                       std::string name, const py::object& regularizer, const py::dict& regularizers,
                       std::map<std::string, double> initial, std::int32_t rate_dtype,
                       std::map<std::string, std::string> inputs) {
  OptimizerSpec spec;
  spec.op_type = std::move(op_type);
  SetAttrs(spec, attrs);
  if (py::isinstance<py::str>(learning_rate)) {
    spec.learning_rate = learning_rate.cast<std::string>();
  } else {
    spec.learning_rate = learning_rate.cast<float>();
  }
  spec.name = std::move(name);
  spec.initial = std::move(initial);
  spec.inputs = std::move(inputs);
  spec.learning_rate_type = static_cast<DType>(rate_dtype);
  if (!regularizer.is_none()) spec.regularizer = RegularizerOf(regularizer);
  for (const auto& [param, decay] : regularizers) {
    spec.param_regularizers[param.cast<std::string>()] =
        RegularizerOf(py::reinterpret_borrow<py::object>(decay));
  }
  return spec;
}

std::vector<ParamGrad> Regularize(ProgramBox& main, int block, UniqueNames& names, NameScopes& scopes,
                                  const OptimizerSpec& spec, std::vector<ParamGrad> params_grads) {
  SeenFromBlock seen(main.program, block);
  OpWriter out(AllOps(), seen.program(), scopes);
  Check(AddRegularization(out, names, scopes, spec, params_grads));
  seen.PutBack();
  return params_grads;
}

// Removes the ops of a block from position `begin` on, and puts them back one by one.
class TakenOps {
 public:
  TakenOps(ProgramBox& main, int block, std::size_t begin) : block_(block) {
    const std::vector<OpEntry>& ops = main.ReadBlock(block).ops();
    const auto from = ops.begin() + static_cast<std::ptrdiff_t>(std::min(begin, ops.size()));
    taken_.assign(from, ops.end());
    main.program.MutableBlock(block).SetOps({ops.begin(), from});
  }
  // Appends the next op to the block and returns its id, which is unchanged; false if none is left.
  std::optional<std::uint64_t> PutNext(ProgramBox& main) {
    if (next_ == taken_.size()) return std::nullopt;
    Block& block = main.program.MutableBlock(block_);
    std::vector<OpEntry> ops = block.ops();
    ops.push_back(taken_[next_]);
    block.SetOps(std::move(ops));
    return static_cast<std::uint64_t>(taken_[next_++].id);
  }

 private:
  int block_;
  std::vector<OpEntry> taken_;
  std::size_t next_ = 0;
};

MinimizeResult PutBack(SeenFromBlock& seen, MinimizeResult made) {
  seen.PutBack();
  for (OpId& op : made.optimizer_ops) op = seen.Moved(op);
  return made;
}

std::vector<std::uint64_t> Ids(const std::vector<OpId>& ops) {
  std::vector<std::uint64_t> ids;
  ids.reserve(ops.size());
  for (const OpId id : ops) ids.push_back(static_cast<std::uint64_t>(id));
  return ids;
}

// In these functions `block` is the block to which ops are added.
void BindBackward(py::module_& m) {
  py::class_<TakenOps>(m, "TakenOps")
      .def(py::init<ProgramBox&, int, std::size_t>())
      .def("put_next", &TakenOps::PutNext);
  py::class_<BackwardResult>(m, "BackwardResult")
      .def_readonly("params_grads", &BackwardResult::params_grads)
      .def_readonly("forward_of", &BackwardResult::forward_of);
  m.def("append_backward", [](ProgramBox& main, int block, UniqueNames& names, std::string loss,
                              std::vector<std::string> parameters, const std::vector<std::string>& no_grad,
                              std::vector<std::string> checkpoints) {
    SeenFromBlock seen(main.program, block);
    BackwardResult made = Take(AppendBackward(
        AllOps(), seen.program(), names,
        Options(main, std::move(loss), std::move(parameters), no_grad, std::move(checkpoints))));
    seen.PutBack();
    return made;
  });
  m.def("gradients", [](ProgramBox& main, int block, UniqueNames& names, std::vector<std::string> targets,
                        std::vector<std::string> inputs, std::vector<std::string> target_gradients,
                        const std::vector<std::string>& no_grad) {
    SeenFromBlock seen(main.program, block);
    std::vector<std::string> made = Take(AppendGradients(AllOps(), seen.program(), names,
                                                         {.targets = std::move(targets),
                                                          .inputs = std::move(inputs),
                                                          .target_gradients = std::move(target_gradients),
                                                          .no_grad = NameSet(no_grad.begin(), no_grad.end()),
                                                          .earlier = main.backwards++}));
    seen.PutBack();
    return made;
  });
  m.def("optimizer_backward", [](ProgramBox& main, int block, UniqueNames& names, std::string loss,
                                 std::vector<std::string> parameters, const std::vector<std::string>& no_grad,
                                 std::vector<std::string> checkpoints) {
    SeenFromBlock seen(main.program, block);
    BackwardResult made = Take(OptimizerBackward(
        AllOps(), seen.program(), names,
        Options(main, std::move(loss), std::move(parameters), no_grad, std::move(checkpoints))));
    seen.PutBack();
    return made;
  });
}

}  // namespace

void BindAutodiff(py::module_& m) {
  py::class_<NameScopes, std::shared_ptr<NameScopes>>(m, "NameScopes")
      .def(py::init<>())
      .def("enter", [](NameScopes& scopes, const std::string& name) { scopes.Enter(name); })
      .def("leave", &NameScopes::Leave)
      .def_property_readonly("path", &NameScopes::Path);
  py::class_<OptimizerSpec>(m, "OptimizerSpec")
      .def(py::init(&MakeSpec), py::arg("op_type"), py::arg("attrs"), py::arg("learning_rate"),
           py::arg("name") = "", py::arg("regularizer") = py::none(), py::arg("regularizers") = py::dict(),
           py::arg("initial") = std::map<std::string, double>(),
           py::arg("rate_dtype") = static_cast<std::int32_t>(DType::kFp32),
           py::arg("inputs") = std::map<std::string, std::string>());
  py::class_<MinimizeResult>(m, "MinimizeResult")
      .def_readonly("params_grads", &MinimizeResult::params_grads)
      .def_readonly("learning_rate", &MinimizeResult::learning_rate)
      .def_readonly("accumulators", &MinimizeResult::accumulators)
      .def_readonly("states", &MinimizeResult::states)
      .def_property_readonly("optimizer_ops",
                             [](const MinimizeResult& result) { return Ids(result.optimizer_ops); });
  BindBackward(m);
  m.def("apply_gradients",
        [](ProgramBox& main, int block, ProgramBox& startup, UniqueNames& names, NameScopes& scopes,
           const OptimizerSpec& spec, std::vector<ParamGrad> params_grads) {
          SeenFromBlock seen(main.program, block);
          return PutBack(seen, Take(ApplyGradients(AllOps(), seen.program(), startup.program,
                                                   Naming{names, scopes}, spec, std::move(params_grads))));
        });
  m.def("minimize", [](ProgramBox& main, int block, ProgramBox& startup, UniqueNames& names,
                       NameScopes& scopes, const OptimizerSpec& spec, std::string loss,
                       std::vector<std::string> parameters, const std::vector<std::string>& no_grad) {
    SeenFromBlock seen(main.program, block);
    return PutBack(seen, Take(Minimize(AllOps(), seen.program(), startup.program, Naming{names, scopes}, spec,
                                       Options(main, std::move(loss), std::move(parameters), no_grad))));
  });
  m.def("regularize", &Regularize);
}

}  // namespace penstock::python
