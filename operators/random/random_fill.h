// The frame of the ops that fill a tensor with random numbers. A distribution gives
//
//   Status Read(const KernelSetup& k)                                  its attributes
//   std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) elements 4 * block ... 4 * block + 3
//   of
//                                                                      the whole
//   void Finish(Tensor& out, std::int64_t begin)                       what is left to do once `out` is
//   filled
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "framework/base/hash.h"
#include "framework/ir/program.h"
#include "framework/op/kernel.h"
#include "framework/runtime/random.h"
#include "operators/tensor/shape_attr.h"

namespace penstock {

// Where the numbers of a variable stand in the streams of random numbers.
struct RandomPlace {
  std::uint64_t begin = 0;  // of its first element in the whole that it is a slice of; 0 if it is no slice
  std::uint64_t name = 0;   // takes part in the key: lasting variables of one seed start apart
};

// The name of the whole counts, so that its slices draw what it would have drawn.
inline RandomPlace PlaceOf(const KernelSetup& k, const Operand& out) {
  const Program* program = k.site().program;
  const Var* var = program == nullptr ? nullptr : program->FindVar(k.site().block, out.name);
  RandomPlace place;
  if (var == nullptr) return place;
  const std::optional<InitialSlice>& slice = var->facts.slice;
  if (slice) place.begin = static_cast<std::uint64_t>(slice->row_begin * slice->whole_shape.RowWidth());
  if (var->persistable) place.name = Fnv1a64(slice ? slice->whole : out.name);
  return place;
}

template <typename Distribution>
struct RandomFill {
  template <typename Device, typename T>
  class Fill : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      out_ = k.Output("Out");
      if (out_.kind != VarKind::kTensor) {
        return Unimplemented("E-op-rows", k.op().type(), ": Out (", out_.name, ") must be a dense tensor");
      }
      // Fluid's seeds are ints; the sign takes part.
      seed_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(k.Attr<std::int32_t>("seed")));
      source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
      place_ = PlaceOf(k, out_);
      shape_.Prepare(k);
      return distribution_.Read(k);
    }

    Status Run(KernelRun& k) override {
      PENSTOCK_RETURN_IF_ERROR(shape_.Make(k, out_));
      Tensor& out = k[out_];
      T* const to = out.Data<T>();
      const std::uint64_t key = (seed_ != 0 ? seed_ : source_->Next()) ^ place_.name;
      const std::uint64_t begin = place_.begin;
      const std::uint64_t end = begin + static_cast<std::uint64_t>(out.count());
      for (std::uint64_t at = begin; at < end;) {
        const std::array<double, 4> four = distribution_.Draw(key, at / 4);
        const std::uint64_t stop = std::min(end, (at / 4 + 1) * 4);
        for (; at < stop; ++at) to[at - begin] = static_cast<T>(four[at % 4]);
      }
      distribution_.Finish(out, static_cast<std::int64_t>(begin));
      return OkStatus();
    }

   private:
    Operand out_;
    std::uint64_t seed_ = 0;
    RandomPlace place_;
    GivenShape shape_;
    RandomSource* source_ = nullptr;
    Distribution distribution_;
  };
};

}  // namespace penstock
