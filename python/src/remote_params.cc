// Bindings that tell where the parameters of an asynchronous trainer's program are.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/client/initial_values.h"
#include "framework/roles/trainer_facts.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/program_box.h"
#include "transpiler/plan/plan.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using Kind = roles::CommOp::Kind;

std::optional<plan::Mode> ModeOf(const Program& program) {
  if (program.meta().plan.empty()) return std::nullopt;
  const Result<plan::PlacementPlan> plan = plan::ParsePlan(program.meta().plan);
  return plan.ok() ? std::optional(plan->mode) : std::nullopt;
}

// Whether every step of the program ends with the newest parameters of its servers, which then do not change
// until its next step.
bool StepsTogether(const roles::TrainerFacts& role, std::optional<plan::Mode> mode) {
  if (mode == plan::Mode::kNotAsync) return true;
  return std::any_of(role.ops.begin(), role.ops.end(), [](const roles::CommOp& one) {
    return one.kind == Kind::kSendBarrier && !roles::BarrierView(*one.op).half_async();
  });
}

// Whether servers correct gradients for their age, and so repeat an answer within a step.
bool Repeats(std::optional<plan::Mode> mode) {
  return mode == plan::Mode::kDcAsgd || mode == plan::Mode::kDcAsgdRuntimeSplit ||
         mode == plan::Mode::kDcAsgdHalfAsync;
}

// [(server, name there, number of rows)] in the order of the rows
using Pieces = std::vector<std::tuple<std::string, std::string, Dim>>;

// ({parameter: Pieces}, trainer id, whether an answer repeats what the trainer has read last) of what the
// program receives; None if it sends no gradient or steps together with all trainers.
py::object RemoteParams(const ProgramBox& box) {
  const Program& program = box.program;
  const roles::TrainerFacts role = roles::ReadTrainer(program);
  const std::optional<plan::Mode> mode = ModeOf(program);
  const bool sends = std::any_of(role.ops.begin(), role.ops.end(),
                                 [](const roles::CommOp& one) { return one.kind == Kind::kSend; });
  if (!sends || StepsTogether(role, mode)) return py::none();
  const std::map<std::string, std::vector<client::RemotePart>> parts = client::RemoteParts(program);
  std::map<std::string, Pieces> params;
  for (const roles::CommOp& one : role.ops) {
    const auto found = parts.find(std::string(one.whole));
    if (one.kind != Kind::kRecv || found == parts.end()) continue;
    Pieces& pieces = params[found->first];
    pieces.clear();
    for (const client::RemotePart& part : found->second)
      pieces.emplace_back(part.pserver, part.name, part.end - part.begin);
  }
  return py::make_tuple(params, role.trainer_id.value_or(0), Repeats(mode));
}

}  // namespace

void BindRemoteParams(py::module_& m) { m.def("remote_params", &RemoteParams); }

}  // namespace penstock::python
