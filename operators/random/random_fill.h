// The frame of the ops that fill a tensor with random numbers. A distribution gives
//
//   Status Read(const KernelSetup& k)                                  its attributes
//   std::array<double, 4> Draw(std::uint64_t seed, std::uint64_t block) elements 4 * block ... 4 * block + 3
//   of the whole void Finish(Tensor& out, std::int64_t begin)                        what is left to do once
//   `out` is filled
#pragma once

#include <algorithm>
#include <array>

#include "framework/ir/program.h"
#include "framework/op/kernel.h"
#include "framework/runtime/random.h"

namespace penstock {

// The place of a variable's first element in the whole that it is a slice of; 0 if it is no slice.
inline std::uint64_t ElementsBeforeSlice(const KernelSetup& k, const Operand& out) {
  const Program* program = k.site().program;
  const Var* var = program == nullptr ? nullptr : program->FindVar(k.site().block, out.name);
  if (var == nullptr || !var->facts.slice.has_value()) return 0;
  return static_cast<std::uint64_t>(var->facts.slice->row_begin * var->facts.slice->whole_shape.RowWidth());
}

template <typename Distribution>
struct RandomFill {
  template <typename Device, typename T>
  class Fill : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      out_ = k.Output("Out");
      // Fluid's seeds are ints; the sign takes part.
      seed_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(k.Attr<std::int32_t>("seed")));
      source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
      begin_ = ElementsBeforeSlice(k, out_);
      return distribution_.Read(k);
    }

    Status Run(KernelRun& k) override {
      Tensor& out = k[out_];
      T* const to = out.Data<T>();
      const std::uint64_t seed = seed_ != 0 ? seed_ : source_->Next();
      const std::uint64_t end = begin_ + static_cast<std::uint64_t>(out.count());
      for (std::uint64_t at = begin_; at < end;) {
        const std::array<double, 4> four = distribution_.Draw(seed, at / 4);
        const std::uint64_t stop = std::min(end, (at / 4 + 1) * 4);
        for (; at < stop; ++at) to[at - begin_] = static_cast<T>(four[at % 4]);
      }
      distribution_.Finish(out, static_cast<std::int64_t>(begin_));
      return OkStatus();
    }

   private:
    Operand out_;
    std::uint64_t seed_ = 0, begin_ = 0;
    RandomSource* source_ = nullptr;
    Distribution distribution_;
  };
};

}  // namespace penstock
