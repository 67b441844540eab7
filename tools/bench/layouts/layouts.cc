// bench_layouts PROGRAM BATCH: measures each convolution of a program in both layouts, alternately, in CPU
// time of one thread, and the copies between layouts. Prints the sum of both for the choice of the executor's
// plan, for all plain, for all channels last, and for the choice by the measured times.
//
//   convolutions and copies: chosen 26.10 ms, plain 41.22 ms, channels last 26.32 ms, by these times 25.98 ms
//   chosen / best 1.00
#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>

#include "executor/plan/plan.h"
#include "executor/schedule/memory_need.h"
#include "framework/base/strings.h"
#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tools/bench/layouts/measured_op.h"
#include "tools/plan/numbers.h"

DEFINE_int32(rounds, 7, "samples of each op in each layout; the least counts");
DEFINE_bool(ops, false, "print the times of each convolution");

namespace penstock::bench {
namespace {

using Plan = std::shared_ptr<const exec::Specialisation>;

bool IsConvolution(const exec::Instruction& instruction) {
  const ChannelsLast* how = instruction.def->channels_last();
  return how != nullptr && how->cost != nullptr;
}

// Whether the pass has made it: a copy of an image in the other layout. Other passes make ops of other types.
bool IsCopy(const exec::CompiledBlock& block, const exec::Instruction& instruction) {
  const auto& ops = block.program.block(block.block).ops();
  return instruction.op->type() == "transpose" &&
         ops[static_cast<std::size_t>(instruction.position)].op->type() != instruction.op->type();
}

// The ops of a plan that its choice of layouts is about.
struct Choice {
  std::map<int, PlannedOp> convolutions;  // by position
  std::vector<PlannedOp> copies;
};
Choice ChoiceOf(const exec::Specialisation& plan) {
  Choice choice;
  for (std::size_t i = 0; i < plan.block->instructions.size(); ++i) {
    const exec::Instruction& instruction = plan.block->instructions[i];
    if (IsCopy(*plan.block, instruction)) {
      choice.copies.emplace_back(plan, i);
    } else if (IsConvolution(instruction)) {
      choice.convolutions.emplace(instruction.position, PlannedOp(plan, i));
    }
  }
  return choice;
}

// The registry of all ops, in which convolutions cost what `cost` says.
std::unique_ptr<OpRegistry> RegistryWith(const std::function<LayoutCost(const InferContext&)>& cost) {
  auto ops = std::make_unique<OpRegistry>();
  RegisterAllOps(*ops);
  PENSTOCK_CHECK(ops->Finish().ok(), "the registry of all ops is valid");
  for (const OpDef* def : ops->All()) {
    const ChannelsLast* how = def->channels_last();
    if (how == nullptr || how->cost == nullptr) continue;
    ChannelsLast changed = *how;
    changed.cost = cost;
    const_cast<OpDef*>(def)->ChannelsLast(std::move(changed));  // of our own registry
  }
  return ops;
}

// Names a convolution of a program, for the pass as for the plan.
std::string NameOf(const Op& op) { return Join(op.OutputNames(), " "); }

class Measurement {
 public:
  // Samples ops that do the same in both layouts alternately, so that the load of the machine affects both
  // alike.
  void Add(const std::vector<const PlannedOp*>& alternatives) {
    std::vector<std::pair<std::string, std::unique_ptr<MeasuredOp>>> running;
    for (const PlannedOp* op : alternatives) {
      if (seconds_.contains(op->key)) continue;
      seconds_[op->key] = std::numeric_limits<double>::infinity();
      running.emplace_back(op->key, std::make_unique<MeasuredOp>(*op));
    }
    for (int round = 0; round < FLAGS_rounds; ++round) {
      for (auto& [key, op] : running) seconds_[key] = std::min(seconds_[key], op->Sample());
    }
  }
  double Of(const PlannedOp& op) const { return seconds_.at(op.key); }
  double Of(const Choice& choice) const {
    double sum = 0;
    for (const auto& [position, op] : choice.convolutions) sum += Of(op);
    for (const PlannedOp& op : choice.copies) sum += Of(op);
    return sum;
  }

 private:
  std::map<std::string, double> seconds_;
};

std::string Milliseconds(double seconds) { return tools::Fixed(seconds * 1e3, 2); }

void PrintOps(const Choice& plain, const Choice& last, const Choice& chosen, const Measurement& times) {
  for (const auto& [position, op] : plain.convolutions) {
    const PlannedOp& other = last.convolutions.at(position);
    std::cout << "  op " << position << " " << op.op.type() << ": plain " << Milliseconds(times.Of(op))
              << " ms, channels last " << Milliseconds(times.Of(other)) << " ms, chosen "
              << (chosen.convolutions.at(position).key == op.key ? "plain" : "channels last") << "\n";
  }
}

Status Measure(const std::string& file, Dim batch) {
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ReadProgramFile(file));
  const exec::FedShapes fed{.batch = batch};
  const auto plan = [&](const OpRegistry& ops, bool channels_last) {
    return exec::PlanForFeeds(ops, program, fed, {.channels_last = channels_last});
  };
  PENSTOCK_ASSIGN_OR_RETURN(const Plan plain_plan, plan(AllOps(), false));
  PENSTOCK_ASSIGN_OR_RETURN(const Plan chosen_plan, plan(AllOps(), true));
  constexpr double kNever = 1e15;
  const auto always_last = RegistryWith([](const InferContext&) { return LayoutCost{kNever, 0}; });
  PENSTOCK_ASSIGN_OR_RETURN(const Plan last_plan, plan(*always_last, true));
  const Choice plain = ChoiceOf(*plain_plan), chosen = ChoiceOf(*chosen_plan), last = ChoiceOf(*last_plan);
  if (plain.convolutions.empty()) return InvalidArgument("E-usage", file, " has no convolutions");

  Measurement times;
  std::map<std::string, LayoutCost> costs;
  for (const auto& [position, op] : plain.convolutions) {
    const PlannedOp& other = last.convolutions.at(position);
    times.Add({&op, &other, &chosen.convolutions.at(position)});
    const Op& named = *program.main().ops()[static_cast<std::size_t>(position)].op;
    costs[NameOf(named)] = {times.Of(op) * 1e9, times.Of(other) * 1e9};
  }
  const auto by_time =
      RegistryWith([&](const InferContext& context) { return costs.at(NameOf(context.op())); });
  PENSTOCK_ASSIGN_OR_RETURN(const Plan timed_plan, plan(*by_time, true));
  const Choice timed = ChoiceOf(*timed_plan);
  for (const Choice* choice : {&plain, &chosen, &last, &timed}) {
    for (const PlannedOp& copy : choice->copies) times.Add({&copy});
  }
  if (FLAGS_ops) PrintOps(plain, last, chosen, times);
  const double best = std::min({times.Of(plain), times.Of(last), times.Of(timed), times.Of(chosen)});
  std::cout << "convolutions and copies: chosen " << Milliseconds(times.Of(chosen)) << " ms, plain "
            << Milliseconds(times.Of(plain)) << " ms, channels last " << Milliseconds(times.Of(last))
            << " ms, by these times " << Milliseconds(times.Of(timed)) << " ms\n"
            << "chosen / best " << tools::Fixed(times.Of(chosen) / best, 3) << "\n";
  return OkStatus();
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const int batch = argc == 3 ? std::atoi(argv[2]) : 0;
  if (batch < 1) {
    std::cerr << "usage: bench_layouts PROGRAM BATCH [--rounds N] [--ops]\n";
    return 2;
  }
  const penstock::Status status = penstock::bench::Measure(argv[1], batch);
  if (status.ok()) return 0;
  std::cerr << "bench_layouts: " << status.ToString() << "\n";
  return 2;
}
