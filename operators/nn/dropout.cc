// dropout: sets elements to 0 at random in training.
#include "framework/vector/dropout.h"

#include <cstring>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/runtime/random.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
In training, Mask[i] is 0 with probability dropout_prob, otherwise 1, and
  downgrade_in_infer   Out = X * Mask                        with is_test: Out = X * (1 - dropout_prob)
  upscale_in_train     Out = X * Mask / (1 - dropout_prob)   with is_test: Out = X

Mask[i] depends only on the seed and on i, not on the number of threads. With fix_seed or an input Seed, each
run uses the mask that Fluid generates for that seed; otherwise each run uses a new seed. With is_test, Mask
is not written.)";

Status InferDropout(InferContext& c) {
  // Fluid gives Mask no shape in a test program.
  if (!c.Attr<bool>("is_test")) PENSTOCK_RETURN_IF_ERROR(c.SetShape("Mask", c.ShapeOf("X")));
  return c.ShareAll("X", "Out");
}

// Generates std::minstd_rand's sequence, x[i] = 48271 * x[i - 1] mod (2^31 - 1), from any position: x[i] =
// 48271^i * seed.
class Minstd {
 public:
  // Starts after `skipped` draws.
  Minstd(std::uint32_t seed, std::uint64_t skipped) {
    state_ = seed % kModulus;
    if (state_ == 0) state_ = 1;
    std::uint64_t factor = kMultiplier;
    for (std::uint64_t n = skipped; n > 0; n >>= 1) {
      if ((n & 1) != 0) state_ = state_ * factor % kModulus;
      factor = factor * factor % kModulus;
    }
  }
  std::uint32_t state() const { return static_cast<std::uint32_t>(state_); }
  // Returns a float in [0, 1): the one that std::uniform_real_distribution computes from the next draw.
  float Next() {
    state_ = state_ * kMultiplier % kModulus;
    return static_cast<float>(state_ - 1) / static_cast<float>(kModulus - 1);
  }

 private:
  static constexpr std::uint64_t kModulus = 2147483647, kMultiplier = 48271;
  std::uint64_t state_;
};

template <typename T>
constexpr double kDrawNs = std::is_same_v<T, float> ? 0.3 : 3;  // an element with its draw

// The factor, in training, of an element that is kept.
template <typename T>
T FactorOfKept(const KernelSetup& k) {
  if (k.Attr<std::string>("dropout_implementation") != "upscale_in_train") return T(1);
  const float probability = k.Attr<float>("dropout_prob");
  return probability == 1.0f ? T(0) : T(1) / static_cast<T>(1.0f - probability);
}

template <typename Device, typename T>
class DropoutKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, seed_tensor_, out_, mask_);
    probability_ = k.Attr<float>("dropout_prob");
    is_test_ = k.Attr<bool>("is_test");
    kept_ = FactorOfKept<T>(k);
    test_factor_ = k.Attr<std::string>("dropout_implementation") == "upscale_in_train"
                       ? T(1)
                       : static_cast<T>(1.0f - probability_);
    fixed_ = k.Attr<bool>("fix_seed");
    seed_ = static_cast<std::uint32_t>(k.Attr<std::int32_t>("seed"));
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
    if (!is_test_ && !mask_) return k.Error("training needs the output Mask");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    T* out = k[out_].template Data<T>();
    const Dim count = k[x_].count();
    if (is_test_) {
      ForElements(count, StreamNs<T>(2), [&](Dim begin, Dim end) {
        for (Dim i = begin; i < end; ++i) out[i] = x[i] * test_factor_;
      });
    } else {
      std::uint8_t* mask = k[mask_].template Data<std::uint8_t>();
      const std::uint32_t seed = SeedOfRun(k);
      ForElements(count, kDrawNs<T>, [&](Dim begin, Dim end) {
        Minstd draws(seed, static_cast<std::uint64_t>(begin));
        if constexpr (std::is_same_v<T, float>) {
          return vec::Dropout(draws.state(), probability_, kept_, x + begin, mask + begin, out + begin,
                              static_cast<std::size_t>(end - begin));
        }
        for (Dim i = begin; i < end; ++i) {
          mask[i] = draws.Next() < probability_ ? 0 : 1;
          out[i] = mask[i] != 0 ? x[i] * kept_ : T(0);
        }
      });
    }
    return OkStatus();
  }

 private:
  std::uint32_t SeedOfRun(KernelRun& k) {
    if (seed_tensor_) return static_cast<std::uint32_t>(k[seed_tensor_].template Data<std::int32_t>()[0]);
    return fixed_ ? seed_ : static_cast<std::uint32_t>(source_->Next());
  }

  In<"X"> x_;
  In<"Seed"> seed_tensor_;
  Out<"Out"> out_;
  Out<"Mask"> mask_;
  float probability_ = 0;
  bool is_test_ = false, fixed_ = false;
  std::uint32_t seed_ = 0;
  T kept_ = 1, test_factor_ = 1;
  RandomSource* source_ = nullptr;  // supplies the seeds of runs without a fixed seed
};

// dX = dOut times the factor where the element was kept, otherwise 0.
template <typename Device, typename T>
class DropoutGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(mask_, dout_, dx_);
    kept_ = FactorOfKept<T>(k);
    if (k.Attr<bool>("is_test")) return k.Error("a dropout with is_test has no gradient");
    return RequireCount(k, "Mask", k[dout_].shape.Count());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const std::uint8_t* mask = k[mask_].template Data<std::uint8_t>();
    const T* dout = k[dout_].template Data<T>();
    T* dx = k[dx_].template Data<T>();
    ForElements(k[dout_].count(), StreamNs<T>(2), [&](Dim begin, Dim end) {
      if constexpr (std::is_same_v<T, float>) {
        return vec::DropoutGrad(mask + begin, kept_, dout + begin, dx + begin,
                                static_cast<std::size_t>(end - begin));
      }
      for (Dim i = begin; i < end; ++i) dx[i] = mask[i] != 0 ? dout[i] * kept_ : T(0);
    });
    return OkStatus();
  }

 private:
  In<"Mask"> mask_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  T kept_ = 1;
};

AttrCheck Probability() {
  return {[](const Attr& value) -> std::optional<std::string> {
    const float p = *AttrAs<float>(value);
    if (p >= 0.0f && p <= 1.0f) return std::nullopt;
    return "in [0, 1]";
  }};
}

}  // namespace

void RegisterDropout(OpRegistry& ops) {
  ops.Add("dropout")
      .Doc("Sets random elements to 0 in training.", kDoc)
      .Input("X", "any shape", Floats())
      .Input("Seed", "replaces the attribute seed; one element", Only(DType::kInt32), Optional())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Output("Mask", "1 where an element is kept, otherwise 0", Only(DType::kUInt8), Intermediate())
      .Attr("dropout_prob", 0.5f, "the probability that an element is set to 0", Probability())
      .Attr("is_test", false, "whether to drop nothing")
      .Attr("fix_seed", false, "whether each run uses the mask of `seed`")
      .Attr("seed", 0, "the seed of the mask, with fix_seed")
      .Affects({Effect::kRandom})
      .Attr("dropout_implementation", "downgrade_in_infer",
            "when the scaling that compensates for dropped elements is applied",
            OneOf({"downgrade_in_infer", "upscale_in_train"}))
      .InferShape(InferDropout)
      .Kernel<Cpu, DropoutKernel, float, double>()
      .Grad({.reads_outputs = {"Mask"}, .yields = {"X"}})
      .GradKernel<Cpu, DropoutGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD")
      .InferShape(SameShape("Out@GRAD", "X@GRAD"));
}

}  // namespace penstock
