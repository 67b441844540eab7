// The numbers of a key's update that change from step to step, which a store computes in double precision and
// puts into variables of one element, and the slots that name them.
#pragma once

#include <charconv>
#include <string>

#include "framework/base/strings.h"
#include "framework/op/op_def.h"
#include "operators/optimizer/keyed_rules.h"

namespace penstock {

// The double that a float attribute is written as: 0.9, not 0.899999976. Powers of beta need it.
inline double DecimalOf(float attr) {
  const std::string text = StrCat(attr);
  double value = static_cast<double>(attr);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct KeyedScalars {
  In<"LearningRate"> rate;
  In<"WeightDecay"> decay;
  In<"Count"> count;
  In<"Rescale"> rescale;

  void Prepare(const KernelSetup& k) { k.Bind(rate, decay, count, rescale); }
  template <typename T>
  KeyedValues<T> ValuesOf(KernelRun& k, double clip) const {
    KeyedValues<T> values{};
    values.rate = static_cast<T>(At(k, rate));
    values.decay = static_cast<T>(At(k, decay));
    values.rescale = static_cast<T>(At(k, rescale));
    values.clip = static_cast<T>(clip);
    return values;
  }
  static double At(KernelRun& k, Operand operand) { return *k[operand].Data<double>(); }
};

// Declares what all ops of this family have: parameter, gradient, and the numbers above.
inline OpDef& DeclareKeyed(OpDef& def) {
  return def.Input("Param", "the parameter", Floats())
      .Input("Grad", "the gradient; shaped like Param, or rows of such a tensor", SameTypeAs("Param"),
             TensorOrRows())
      .Input("LearningRate", "one element", Only(DType::kFp64))
      .Input("WeightDecay", "one element", Only(DType::kFp64))
      .Input("Count", "one element: the number of this update, from 1", Only(DType::kFp64))
      .Input("Rescale", "one element: multiplies the gradient", Only(DType::kFp64))
      .Output("ParamOut", "the parameter's new value; names Param's variable", SameTypeAs("Param"))
      .Attr("clip_gradient", 0.0f, "bounds the magnitude of gradients; 0: off");
}

}  // namespace penstock
