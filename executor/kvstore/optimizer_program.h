// An optimizer that a user has written as a program: the update of one parameter, which a store applies to
// each key.
//
//   update  persist w : f32[2, 3], var g : f32[2, 3], persist v : f32[2, 3], persist rate : f32[1]
//           (ParamOut=w, VelocityOut=v) = momentum(Param=w, Grad=g, Velocity=v, LearningRate=rate) {mu=0.9}
//   start   v = fill_constant() {shape=[2, 3]},  rate = fill_constant() {shape=[1], value=0.1}
//
//   PENSTOCK_ASSIGN_OR_RETURN(const KeyOptimizer own, ProgramOptimizer({update, start, "w", "g"}, AllOps()));
//
// `w` stands for a key: a variable of its shape and type gets those of the key, or of the piece of it that a
// server holds, as one row of numbers. All other variables have one element. What `start` fills is the state,
// which each key has for itself; so a schedule of the rate by ops counts the updates of the key.
#pragma once

#include <string>
#include <vector>

#include "executor/kvstore/optimizer.h"
#include "framework/op/op_registry.h"

namespace penstock::kvstore {

struct OptimizerProgram {
  Program update;           // its main block reads `grad` and writes `param`
  Program start;            // its main block fills the states
  std::string param, grad;  // of `update`
  // Made by ProgramOptimizer.
  std::vector<std::string> states = {};  // in the order in which `start` fills them
  bool needs_whole = false;              // an op uses all elements of the key at once
  const OpRegistry* ops = nullptr;
};

// Checks the programs, and drops what `start` does for other variables than the states: it may be the startup
// program of a whole training. `ops` must outlive the result.
//
// kInvalidArgument: E-kv-program, which names the op and the rule; the errors of VerifyProgram.
Result<KeyOptimizer> ProgramOptimizer(OptimizerProgram program, const OpRegistry& ops);

// The program for a key. kInvalidArgument E-kv-program-key: an op cannot update such a key, as one whose
// gradient is rows.
Result<KeyUpdate> UpdateByProgram(const OptimizerProgram& program, const KeyFacts& key);

// Of KeyOptimizer::ToString, from `param` on.
std::string TextOf(const OptimizerProgram& program);

}  // namespace penstock::kvstore
