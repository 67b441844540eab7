// One instruction of a plan, as the only op of a program that the executor runs.
//
//   const PlannedOp op(plan, 3);
//   MeasuredOp measured(op);
//   measured.Sample();                  // thread CPU seconds of a run
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "executor/graph/specialise.h"
#include "executor/schedule/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace penstock::bench {

// The op with its arguments numbered, and their types: equal for instructions that do the same.
struct PlannedOp {
  PlannedOp(const exec::Specialisation& plan, std::size_t instruction);

  Op op;
  std::map<std::string, TensorDesc> inputs, outputs;
  std::string key;  // text of all of it
};

class MeasuredOp {
 public:
  explicit MeasuredOp(const PlannedOp& op);

  // Runs the op; returns the thread's CPU seconds, of the mean of several runs if one is short.
  double Sample();

 private:
  void Run();

  exec::Executor executor_;
  Scope scope_;
  exec::Executor::Compiled compiled_;
  int group_ = 1;
};

}  // namespace penstock::bench
