// A user's choice of optimizer, as data; Python's fluid.optimizer classes fill it in. Nothing here depends on
// the op type: slots and state come from the op's declaration (`Optimizes` and `State` in
// op/op_def.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "framework/ir/op.h"
#include "framework/tensor/dtype.h"

namespace penstock {

// Adds coefficient * w (L2) or coefficient * sign(w) (L1) to the gradient of w.
struct Regularizer {
  enum class Kind { kL1, kL2 };
  Kind kind = Kind::kL2;
  float coefficient = 0.0f;
};

struct OptimizerSpec {
  std::string op_type;                // "momentum"
  std::vector<NamedAttr> attrs = {};  // hyperparameters, named as the op's attributes: {"mu", 0.9f}
  std::map<std::string, std::string> inputs = {};  // hyperparameters in variables, by the op's slot
  // A value, for which a variable with that initial value is made, or the name of an existing variable.
  std::variant<float, std::string> learning_rate = 0.001f;
  DType learning_rate_type = DType::kFp32;
  std::string name = {};                       // prefix of the state's names; "" if the user gave none
  std::map<std::string, double> initial = {};  // initial values of state, by StateDef::accumulator
  std::optional<Regularizer> regularizer = {};
  std::map<std::string, Regularizer> param_regularizers = {};  // by parameter; overrides `regularizer`
};

}  // namespace penstock
