#include "tools/bench/layouts/measured_op.h"

#include <random>
#include <utility>
#include <vector>

#include "executor/graph/explain.h"
#include "framework/base/check.h"
#include "framework/base/strings.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tools/peaks/time.h"

namespace penstock::bench {
namespace {

// Values of a period that is no power of two: drawing each would take longer than the measurement.
void FillWithNumbers(Tensor& tensor) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> drawn(100'003);
  for (float& value : drawn) value = uniform(random);
  const std::span<float> values = tensor.Span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = drawn[i % drawn.size()];
}

Var Declared(const std::string& name) {
  Var var;
  var.name = name;
  var.persistable = true;
  return var;
}

// The slots of `op` with their arguments numbered from `next` on.
template <typename Add>
void Number(const std::vector<Slot>& slots, const std::vector<std::vector<int>>& arguments,
            std::map<int, std::string>& names, const Add& add) {
  for (std::size_t k = 0; k < slots.size(); ++k) {
    std::vector<std::string> args;
    for (const int slot : arguments[k]) {
      args.push_back(slot < 0 ? kEmptyVarName
                              : names.try_emplace(slot, StrCat("v", names.size())).first->second);
    }
    add(slots[k].name.str(), std::move(args));
  }
}

}  // namespace

PlannedOp::PlannedOp(const exec::Specialisation& plan, std::size_t at) {
  const exec::Instruction& instruction = plan.block->instructions[at];
  op = *instruction.op;
  const std::vector<Slot> reads = op.inputs(), writes = op.outputs();
  std::map<int, std::string> names;
  Number(reads, instruction.inputs, names,
         [&](const std::string& slot, std::vector<std::string> args) { op.AddInput(slot, std::move(args)); });
  Number(writes, instruction.outputs, names, [&](const std::string& slot, std::vector<std::string> args) {
    op.AddOutput(slot, std::move(args));
  });
  op.RemoveAttr(kRoleVarAttr);
  op.RemoveAttr(kCallstackAttr);
  op.SetLocation("");
  for (const exec::InputSlot& input : plan.InputsOf(at))
    inputs.emplace(names.at(input.slot), plan.type(input.type));
  for (const exec::OutputSlot& output : plan.OutputsOf(at))
    outputs.emplace(names.at(output.slot), plan.type(output.type));
  key = PrintOp(op);
  for (const auto& types : {inputs, outputs}) {
    for (const auto& [name, type] : types) key += StrCat(" ", name, ":", exec::TypeText(type));
  }
}

MeasuredOp::MeasuredOp(const PlannedOp& of)
    : executor_(AllOps(), {.threads = 1, .passes = exec::PlanOptions{.channels_last = false}}) {
  Program program;
  Block& main = program.MutableBlock(0);
  for (const auto& [name, type] : of.inputs) {
    main.SetVar(Declared(name));
    Tensor tensor(type.dtype, type.shape);
    if (type.dtype == DType::kFp32) FillWithNumbers(tensor);
    scope_.FindOrCreate(name)->As<Tensor>() = std::move(tensor);
  }
  for (const auto& [name, type] : of.outputs) {
    if (!of.inputs.contains(name)) main.SetVar(Declared(name));
  }
  main.Append(of.op);
  Result<exec::Executor::Compiled> compiled = executor_.Compile(program, {}, {});
  PENSTOCK_CHECK(compiled.ok(), compiled.status().ToString());
  compiled_ = *std::move(compiled);
  Run();
  constexpr double kShortSeconds = 50e-6;
  while (group_ < 1000 && Sample() * group_ < kShortSeconds) group_ *= 2;
}

void MeasuredOp::Run() {
  const auto ended = executor_.Run(compiled_, scope_, {});
  PENSTOCK_CHECK(ended.ok(), ended.status().ToString());
}

double MeasuredOp::Sample() {
  const double began = ThreadSeconds();
  for (int i = 0; i < group_; ++i) Run();
  return (ThreadSeconds() - began) / group_;
}

}  // namespace penstock::bench
