// fake_quantize_* and moving_average_abs_max_scale: round floats to values that integers of few bits can
// represent, for quantization-aware training.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kRoundDoc[] = R"(
Out = round(clip(X, -scale, scale) / scale * (2^(bit_length - 1) - 1)), halves rounded away from 0)";

constexpr char kAbsMaxDoc[] = R"(
The scale is the largest absolute value of X; it is stored in OutScale.)";

constexpr char kFakeChannelDoc[] = R"(
Each index of the first dimension of X has its own scale, the largest absolute value there.)";

constexpr char kRangeDoc[] = R"(
The scale is the largest absolute value of X in the last window_size steps. OutScales keeps the largest
absolute value of each of these steps, that of step Iter at Iter mod window_size; step 0 resets it to zeros.
With is_test the scale is InScale.)";

constexpr char kMovingDoc[] = R"(
OutState = moving_rate * InState + 1
OutAccum = moving_rate * InAccum + max |X|
scale    = OutAccum / OutState

OutScale is the scale. With is_test the scale is InScale, and OutState and OutAccum do not change.)";

constexpr char kBackDoc[] = R"(
Out is then multiplied by scale / (2^(bit_length - 1) - 1), which restores the range of X.)";

template <typename T>
T LargestOf(const T* x, Dim count) {
  T largest = 0;
  for (Dim i = 0; i < count; ++i) largest = MaxOrNan(largest, std::abs(x[i]));
  return largest;
}

// Clips to a scale, and rounds to its steps.
template <typename T>
class Rounding {
 public:
  Rounding(T scale, int bins)
      : scale_(scale),
        factor_(static_cast<T>(bins) * (scale <= T(1e-30) ? T{1} / (scale + T(1e-6)) : T{1} / scale)) {}
  T operator()(T x) const {
    if (x > scale_) x = scale_;
    if (x < -scale_) x = -scale_;
    return std::round(factor_ * x);
  }

 private:
  T scale_, factor_;
};

template <typename T>
void RoundAll(const T* x, Dim count, T scale, int bins, T back, T* out) {
  const Rounding<T> round(scale, bins);
  for (Dim i = 0; i < count; ++i) out[i] = back * round(x[i]);
}

int BinsOf(const KernelSetup& k) { return (1 << (k.Attr<std::int32_t>("bit_length") - 1)) - 1; }

Status CheckBits(const InferContext& c) {
  const auto bits = c.Attr<std::int32_t>("bit_length");
  return bits <= 16 ? OkStatus() : c.Error("attribute bit_length (", bits, ") must be at most 16");
}

Status InferOneScale(InferContext& c) {
  if (c.op().FindAttr("bit_length") != nullptr) PENSTOCK_RETURN_IF_ERROR(CheckBits(c));
  for (const char* slot : {"InScale", "InAccum", "InState", "Iter"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot).Count(), 1))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
  }
  for (const char* slot : {"OutScale", "OutState", "OutAccum"}) {
    if (c.HasOutput(slot)) PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {1}));
  }
  if (c.HasOutput("OutScales"))
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("OutScales", {c.Attr<std::int32_t>("window_size")}));
  return c.HasOutput("Out") ? c.ShareAll("X", "Out") : OkStatus();
}

Status InferFakeChannels(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(CheckBits(c));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("OutScale", {c.ShapeOf("X")[0]}));
  return c.ShareAll("X", "Out");
}

// One scale for each of `parts` equal parts of X; 0: one for all.
template <bool kChannels>
struct QuantizeAbsMax {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, out_, scale_);
      bins_ = BinsOf(k);
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      const Dim parts = kChannels ? k[x_].shape()[0] : 1;
      const Dim count = parts == 0 ? 0 : k[x_].shape().Count() / parts;
      for (Dim p = 0; p < parts; ++p) {
        const T* const x = std::as_const(k[x_]).template Data<T>() + p * count;
        const T scale = LargestOf(x, count);
        k[scale_].template Data<T>()[p] = scale;
        RoundAll(x, count, scale, bins_, T{1}, k[out_].template Data<T>() + p * count);
      }
      return OkStatus();
    }

   private:
    In<"X"> x_;
    Out<"Out"> out_;
    Out<"OutScale"> scale_;
    int bins_ = 1;
  };
};

template <typename Device, typename T>
class QuantizeRangeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, before_, step_, out_, scale_, scales_);
    bins_ = BinsOf(k);
    window_ = k.Attr<std::int32_t>("window_size");
    is_test_ = k.Attr<bool>("is_test");
    if (is_test_ || (step_ && scales_)) return OkStatus();
    return k.Error("training needs Iter and OutScales");
  }
  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T scale = *std::as_const(k[before_]).template Data<T>();
    if (!is_test_) scale = InWindow(k, LargestOf(x, k[x_].shape().Count()), scale);
    *k[scale_].template Data<T>() = scale;
    RoundAll(x, k[x_].shape().Count(), scale, bins_, T{1}, k[out_].template Data<T>());
    return OkStatus();
  }

 private:
  T InWindow(KernelRun& k, T now, T before) {
    const std::int64_t step =
        std::max(*std::as_const(k[step_]).template Data<std::int64_t>(), std::int64_t{0});
    T* const scales = k[scales_].template Data<T>();
    if (step == 0) std::fill_n(scales, window_, T{0});
    T& place = scales[step % window_];
    const T removed = std::exchange(place, now);
    if (before < now) return now;
    // The largest scale may have left the window.
    if (std::abs(removed - before) < T(1e-6)) return LargestOf(scales, std::min<Dim>(step + 1, window_));
    return MaxOrNan(before, now);
  }

  In<"X"> x_;
  In<"InScale"> before_;
  In<"Iter"> step_;
  Out<"Out"> out_;
  Out<"OutScale"> scale_;
  Out<"OutScales"> scales_;
  int bins_ = 1;
  Dim window_ = 1;
  bool is_test_ = false;
};

enum class MovingOut { kRounded, kRoundedAndBack, kAsItIs };

template <MovingOut kWhat>
struct MovingScale {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_);
      if (kWhat != MovingOut::kAsItIs) {
        k.Bind(before_);
        bins_ = BinsOf(k);
      }
      k.Bind(accum_, state_, out_, scale_, accum_out_, state_out_);
      rate_ = static_cast<T>(k.Attr<float>("moving_rate"));
      is_test_ = k.Attr<bool>("is_test");
      if (is_test_ || (accum_ && state_ && accum_out_ && state_out_)) return OkStatus();
      return k.Error("training needs InAccum, InState, OutAccum and OutState");
    }
    Status Run(KernelRun& k) override {
      const T* const x = std::as_const(k[x_]).template Data<T>();
      const Dim count = k[x_].shape().Count();
      T scale = before_ ? *std::as_const(k[before_]).template Data<T>() : T{0};
      T accum = accum_ ? *std::as_const(k[accum_]).template Data<T>() : T{0};
      T state = state_ ? *std::as_const(k[state_]).template Data<T>() : T{0};
      if (!is_test_) {
        state = rate_ * state + T{1};
        accum = rate_ * accum + LargestOf(x, count);
        scale = accum / state;
      }
      if (accum_out_) *k[accum_out_].template Data<T>() = accum;
      if (state_out_) *k[state_out_].template Data<T>() = state;
      if (scale_) *k[scale_].template Data<T>() = scale;
      if (out_) Give(x, count, scale, k[out_].template Data<T>());
      return OkStatus();
    }

   private:
    void Give(const T* x, Dim count, T scale, T* out) const {
      if (kWhat == MovingOut::kAsItIs) {
        if (out != x) std::copy_n(x, count, out);
      } else {
        const T back = kWhat == MovingOut::kRoundedAndBack ? scale / static_cast<T>(bins_) : T{1};
        RoundAll(x, count, scale, bins_, back, out);
      }
    }

    In<"X"> x_;
    In<"InScale"> before_;
    In<"InAccum"> accum_;
    In<"InState"> state_;
    Out<"Out"> out_;
    Out<"OutScale"> scale_;
    Out<"OutAccum"> accum_out_;
    Out<"OutState"> state_out_;
    int bins_ = 1;
    T rate_ = 0;
    bool is_test_ = false;
  };
};

OpDef& AddBits(OpDef& def) {
  return def.Attr("bit_length", 8, "the number of bits of the integers, including the sign: 1 to 16",
                  AtLeast(1));
}

OpDef& AddMoving(OpDef& def) {
  return def
      .Input("InAccum", "one element: the weighted sum of the scales so far", SameTypeAs("X"), Optional())
      .Input("InState", "one element: the weighted number of steps so far", SameTypeAs("X"), Optional())
      .Output("OutState", "one element", SameTypeAs("X"), Optional())
      .Output("OutAccum", "one element", SameTypeAs("X"), Optional())
      .Attr("moving_rate", 0.9f, "the weight of the previous sum and count")
      .Attr("is_test", false, "whether to keep state and scale unchanged")
      .InferShape(InferOneScale)
      .NoGrad();
}

void AddAbsMax(OpRegistry& ops) {
  AddBits(ops.Add("fake_quantize_abs_max"))
      .Doc("Rounds floats to few bits.", StrCat(kRoundDoc, "\n", kAbsMaxDoc))
      .Input("X", "any shape", Floats())
      .Output("Out", "integers", SameTypeAs("X"))
      .Output("OutScale", "one element", SameTypeAs("X"))
      .InferShape(InferOneScale)
      .Kernel<Cpu, QuantizeAbsMax<false>::Forward, float, double>()
      .NoGrad();
  AddBits(ops.Add("fake_channel_wise_quantize_abs_max"))
      .Doc("Rounds floats to few bits, channel by channel.", StrCat(kRoundDoc, "\n", kFakeChannelDoc))
      .Input("X", "of rank 1 or more", Floats())
      .Output("Out", "integers", SameTypeAs("X"))
      .Output("OutScale", "[first dimension of X]", SameTypeAs("X"))
      .InferShape(InferFakeChannels)
      .Kernel<Cpu, QuantizeAbsMax<true>::Forward, float, double>()
      .NoGrad();
  AddBits(ops.Add("fake_quantize_range_abs_max"))
      .Doc("Rounds floats to few bits, with the scale of a window of steps.",
           StrCat(kRoundDoc, "\n", kRangeDoc))
      .Input("X", "any shape", Floats())
      .Input("InScale", "one element: the scale so far", SameTypeAs("X"))
      .Input("Iter", "one element: the number of the step", Only(DType::kInt64), Optional())
      .Output("Out", "integers", SameTypeAs("X"))
      .Output("OutScale", "one element", SameTypeAs("X"))
      .Output("OutScales", "[window_size]: the scale of each step", SameTypeAs("X"), Optional())
      .Attr("window_size", 10000, "the number of steps in the window", AtLeast(1))
      .Attr("is_test", false, "whether to use InScale")
      .InferShape(InferOneScale)
      .Kernel<Cpu, QuantizeRangeKernel, float, double>()
      .NoGrad();
}

}  // namespace

void RegisterFakeQuantize(OpRegistry& ops) {
  AddAbsMax(ops);
  for (const bool back : {false, true}) {
    OpDef& def = ops.Add(back ? "fake_quantize_dequantize_moving_average_abs_max"
                              : "fake_quantize_moving_average_abs_max");
    AddBits(def)
        .Doc(StrCat("Rounds floats to few bits, with a moving average of scales",
                    back ? ", and restores their range." : "."),
             StrCat(kRoundDoc, "\n", kMovingDoc, back ? kBackDoc : ""))
        .Input("X", "any shape", Floats())
        .Input("InScale", "one element: the scale so far", SameTypeAs("X"))
        .Output("Out", back ? "shaped like X" : "integers", SameTypeAs("X"))
        .Output("OutScale", "one element", SameTypeAs("X"));
    AddMoving(def);
    if (back) {
      def.Kernel<Cpu, MovingScale<MovingOut::kRoundedAndBack>::Forward, float, double>();
    } else {
      def.Kernel<Cpu, MovingScale<MovingOut::kRounded>::Forward, float, double>();
    }
  }
  AddMoving(ops.Add("moving_average_abs_max_scale")
                .Doc("A moving average of scales.", StrCat(kMovingDoc, "\nOut is X."))
                .Input("X", "any shape", Floats())
                .Output("Out", "X", SameTypeAs("X"), Optional())
                .Output("OutScale", "one element", SameTypeAs("X")))
      .Kernel<Cpu, MovingScale<MovingOut::kAsItIs>::Forward, float, double>();
}

}  // namespace penstock
