// The running averages of the gradient and of its square, which adam and lamb keep.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"
#include "framework/vector/optimizers.h"

namespace penstock {

// Their arrays in one run.
template <typename T>
struct MomentArrays {
  T beta1, beta2;  // how much of each is kept
  const T *moment1, *moment2;
  T *moment1_out, *moment2_out;

  // Moves element i by gradient g.
  struct Moved {
    T moment1, moment2;
  };
  Moved Move(std::int64_t i, T g) const {
    const Moved moved = {beta1 * moment1[i] + (T{1} - beta1) * g,
                         beta2 * moment2[i] + (T{1} - beta2) * g * g};
    moment1_out[i] = moved.moment1;
    moment2_out[i] = moved.moment2;
    return moved;
  }
  vec::Moments ForVectors() const { return {beta1, beta2, moment1, moment2, moment1_out, moment2_out}; }
};

template <typename T>
MomentArrays<T> InPlace(T beta1, T beta2, T* moment1, T* moment2) {
  return {beta1, beta2, moment1, moment2, moment1, moment2};
}

struct MomentOperands {
  void Prepare(const KernelSetup& k) { k.Bind(moment1, moment2, moment1_out, moment2_out); }
  template <typename T>
  MomentArrays<T> At(KernelRun& k, T beta1, T beta2) const {
    return {beta1,
            beta2,
            k[moment1].template Data<T>(),
            k[moment2].template Data<T>(),
            k[moment1_out].template Data<T>(),
            k[moment2_out].template Data<T>()};
  }

  In<"Moment1"> moment1;
  In<"Moment2"> moment2;
  Out<"Moment1Out"> moment1_out;
  Out<"Moment2Out"> moment2_out;
};

}  // namespace penstock
