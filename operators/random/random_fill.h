// The kernel of ops that fill a variable with random numbers. A distribution provides
//
//   Status Read(const KernelSetup& k)                                  reads its attributes
//   std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) returns elements 4 * block ...
//                                                                      4 * block + 3 of the whole
//   void Finish(T* out, std::int64_t count, std::int64_t begin)        is called once elements [begin,
//                                                                      begin + count) of the whole are filled
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "framework/base/hash.h"
#include "framework/ir/program.h"
#include "framework/ir/random_draws.h"
#include "framework/op/kernel.h"
#include "framework/runtime/random.h"
#include "operators/common/shape_attr.h"
#include "operators/common/start_rows.h"

namespace penstock {

// The position of a variable's numbers in the streams of random numbers.
struct RandomPlace {
  std::uint64_t begin = 0;  // index of its first element in the whole variable; 0 if it is not a slice
  // Part of the key, so that persistable variables of one seed, and temporaries that compute their values,
  // get different numbers.
  std::uint64_t draw = 0;
};

// Returns the position of `out`. A slice uses the draw of the whole, so it gets the values that the whole
// would have.
inline RandomPlace PlaceOf(const KernelSetup& k, const Argument& out) {
  const Program* program = k.site().program;
  const std::string name(out.name);
  const Var* var = program == nullptr ? nullptr : program->FindVar(k.site().block, name);
  RandomPlace place;
  if (var == nullptr) return place;
  const Box<InitialSlice>& slice = var->facts.slice;
  if (slice) place.begin = static_cast<std::uint64_t>(slice->row_begin * slice->whole_shape.RowWidth());
  if (var->persistable || slice)
    place.draw = Fnv1a64(StrCat("draw ", DrawOf(*program, k.site().block, name)));
  return place;
}

// Fills `out` with elements [begin, begin + count) of the whole. In a table whose ids may be any int64, the
// index wraps around at 2^64.
template <typename Distribution, typename T>
void FillRandom(const Distribution& distribution, std::uint64_t key, std::uint64_t begin, std::int64_t count,
                T* out) {
  const auto all = static_cast<std::uint64_t>(count);
  for (std::uint64_t i = 0; i < all;) {
    const std::uint64_t at = begin + i;
    const std::array<double, 4> four = distribution.Draw(key, at / 4);
    const std::uint64_t stop = std::min(all, i + 4 - at % 4);
    for (std::uint64_t lane = at % 4; i < stop; ++i, ++lane) out[i] = static_cast<T>(four[lane]);
  }
  distribution.Finish(out, count, static_cast<std::int64_t>(begin));
}

// Makes the initial rows of a table, each with the values that the whole would have.
template <typename Distribution, typename T>
class RandomRows : public RowStart {
 public:
  RandomRows(const Distribution& distribution, std::uint64_t key) : distribution_(distribution), key_(key) {}
  void Make(std::int64_t row, std::int64_t width, std::byte* out) const override {
    FillRandom(distribution_, key_, static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(width),
               width, reinterpret_cast<T*>(out));
  }

 private:
  const Distribution distribution_;
  const std::uint64_t key_;
};

// ShapeOf: GivenShape, or another class that finds the output's shape in Run.
template <typename Distribution, typename ShapeOf = GivenShape>
struct RandomFill {
  template <typename Device, typename T>
  class Fill : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(out_);
      PENSTOCK_RETURN_IF_ERROR(rows_.Prepare(k, k[out_]));
      // Fluid's seeds are ints; the sign is part of the seed.
      seed_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(k.Attr<std::int32_t>("seed")));
      source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
      place_ = PlaceOf(k, k[out_]);
      shape_.Prepare(k);
      return distribution_.Read(k);
    }

    Status Run(KernelRun& k) override {
      const std::uint64_t key = (seed_ != 0 ? seed_ : source_->Next()) ^ place_.draw;
      if (rows_.sharded_by_id()) {
        rows_.Start(k, std::make_shared<RandomRows<Distribution, T>>(distribution_, key));
        return OkStatus();
      }
      PENSTOCK_RETURN_IF_ERROR(shape_.Make(k));
      Tensor& out = rows_.is_rows() ? rows_.Values(k) : k[out_];
      FillRandom(distribution_, key, place_.begin, out.count(), out.Data<T>());
      return OkStatus();
    }

   private:
    Out<"Out"> out_;
    std::uint64_t seed_ = 0;
    RandomPlace place_;
    StartRows rows_;
    ShapeOf shape_;
    RandomSource* source_ = nullptr;
    Distribution distribution_;
  };
};

}  // namespace penstock
