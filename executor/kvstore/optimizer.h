// The optimizer of a key-value store: a name with numbers, which travels as text, and what it makes for a
// key.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const KeyOptimizer sgd, MakeOptimizer("sgd", {{"momentum", 0.9}}));
//   PENSTOCK_ASSIGN_OR_RETURN(const KeyOptimizer same, ParseOptimizer(sgd.ToString()));
//   PENSTOCK_ASSIGN_OR_RETURN(const KeyUpdate update,
//                             UpdateProgram(sgd, {.key = "w", .dtype = DType::kFp32, .shape = {13, 2}}));
//   PENSTOCK_RETURN_IF_ERROR(runner.RunBlock(update.program, KeyUpdate::kStart, scope));  // once: the states
//   SetNumbers(update, NumbersAt(sgd, "w", /*count=*/1, /*largest=*/1), scope);           // each update
//   PENSTOCK_RETURN_IF_ERROR(runner.RunBlock(update.program, KeyUpdate::kUpdate, scope));
//
// Names, arguments, defaults and formulas are those of MXNet 1.9 (operators/optimizer/keyed_update.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kvstore/schedule.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/shape.h"

namespace penstock::kvstore {

struct OptimizerProgram;  // optimizer_program.h

struct KeyOptimizer {
  std::string name;
  Numbers numbers;    // all arguments, defaults included; truths are 0 or 1; absent: off (clip_gradient)
  Schedule schedule;  // none: the rate is learning_rate
  // Factors of the rate and of the weight decay, by key or by the name of the key's parameter. A key is
  // written as text: "3" is the key 3.
  Numbers lr_multipliers, wd_multipliers;
  std::map<std::string, std::string, std::less<>> param_names;  // of keys (MXNet's param_idx2name)

  // A user's own optimizer: then the name is "program", and there is nothing else.
  std::shared_ptr<const OptimizerProgram> program = {};

  double Number(std::string_view argument) const;  // of an argument that the optimizer has
  // sgd {learning_rate=0.1, momentum=0.9, ...} schedule factor {base_lr=0.1, ...} lr_mult {w=0.5}
  // program param w grad g update "..." start "..."
  std::string ToString() const;
  friend bool operator==(const KeyOptimizer& a, const KeyOptimizer& b) {
    return a.ToString() == b.ToString();
  }
};

// The names of all optimizers, in order.
std::vector<std::string> OptimizerNames();

// Fills in defaults and the weight decay of named parameters. A rate that is given, or that is the
// optimizer's own default, replaces base_lr of a schedule of factors.
//
// kInvalidArgument: E-kv-optimizer-name (unknown), E-kv-optimizer-argument (unknown, or out of range).
// kUnimplemented: E-kv-optimizer-refused (lbsgd; weight decay of groupadagrad; momentum of dcasgd).
Result<KeyOptimizer> MakeOptimizer(std::string_view name, const Numbers& given, Schedule schedule = {},
                                   std::map<std::string, std::string, std::less<>> param_names = {});

// Sets the factors of the weight decay. As in MXNet, parameters whose names do not end in _weight or _gamma
// have 0 unless a factor is given.
void SetDecayMultipliers(KeyOptimizer& optimizer, const Numbers& given);

// Reads ToString. `ops` checks a program, and must outlive the result. kInvalidArgument: E-text-syntax;
// E-kv-program, also of a program without `ops`; errors of MakeOptimizer, MakeSchedule and ProgramOptimizer.
Result<KeyOptimizer> ParseOptimizer(std::string_view text, const OpRegistry* ops = nullptr);

// Whether an update needs the whole key: it uses a norm of all elements, or draws random numbers. Such a key
// lies on one server.
bool NeedsWhole(const KeyOptimizer& optimizer);

// What an update of a key depends on beside its tensors.
struct KeyNumbers {
  double rate = 0;     // the scheduled rate, times the key's factor
  double decay = 0;    // weight decay, times the key's factor
  double count = 1;    // updates of the key, this one included
  double rescale = 1;  // multiplies the gradient
};
// `count` counts the updates of the key and `largest` those of the key with most, each with the coming one:
// the schedule goes by `largest`.
KeyNumbers NumbersAt(const KeyOptimizer& optimizer, std::string_view key, std::int64_t count,
                     std::int64_t largest);

struct KeyFacts {
  std::string key = {};
  DType dtype = DType::kFp32;  // kFp16: the update computes and keeps f32
  Shape shape = {};            // of the value, or of the server's part of it
  bool rows = false;           // gradients are selected rows
  std::string variable = {};   // names the variables of the update; empty: the key does
};
struct KeyUpdate {
  static constexpr int kStart = 0, kUpdate = 1;  // blocks

  Program program;
  std::string param, grad;                  // "w", "w@GRAD"; of the scope, as all that follow
  std::vector<std::string> states;          // shaped like the value, or one element; block kStart fills them
  std::string rate, decay, count, rescale;  // f64[1]: KeyNumbers; empty: a program takes none
};
// kInvalidArgument: E-kv-optimizer-type, neither f16, f32 nor f64; E-kv-program-key. kUnimplemented:
// E-kv-optimizer-refused (groupadagrad of dense gradients, weight decay of adagrad by rows).
Result<KeyUpdate> UpdateProgram(const KeyOptimizer& optimizer, const KeyFacts& key);

// Whether updates of both keep the same states.
bool KeepSameStates(const KeyOptimizer& a, const KeyOptimizer& b);

// Puts the numbers into variables of the scope.
void SetNumbers(const KeyUpdate& update, const KeyNumbers& numbers, Scope& scope);

}  // namespace penstock::kvstore
