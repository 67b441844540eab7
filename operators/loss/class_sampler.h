// Random classes for nce and sample_logits: from a uniform distribution, a log-uniform one, or a given table.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/op/kernel.h"
#include "framework/runtime/random.h"
#include "operators/common/philox.h"

namespace penstock {

class ClassSampler {
 public:
  // Reads sampler, seed and num_total_classes, and the tables of the alias method.
  Status Prepare(const KernelSetup& k) {
    classes_ = k.Attr<int>("num_total_classes");
    kind_ = static_cast<Kind>(k.Attr<int>("sampler"));
    PrepareSeed(k);
    k.Bind(probabilities_, alias_, alias_probabilities_);
    if (kind_ != Kind::kCustom) return OkStatus();
    for (const Argument* table : {&k[probabilities_], &k[alias_], &k[alias_probabilities_]}) {
      if (!*table || table->shape.Count() != classes_)
        return k.Error("the tables of sampler 2 must hold ", classes_, " elements each");
    }
    return OkStatus();
  }
  // Reads only seed. Each class has a probability proportional to log(1 + 1 / (class + 1)).
  void PrepareLogUniform(const KernelSetup& k, std::int64_t classes) {
    classes_ = classes;
    kind_ = Kind::kLogUniform;
    PrepareSeed(k);
  }
  // Call before the draws of each run.
  void Begin() {
    if (seed_ == 0) key_ = source_->Next();
  }
  std::int64_t classes() const { return classes_; }

  // Returns draw number `at` of this run. kInvalidArgument E-op-label: a table names a class that does not
  // exist, or holds NaN.
  Result<std::int64_t> Draw(KernelRun& k, std::uint64_t at) const {
    const PhiloxWords words = PhiloxBlock(key_, at);
    const double first = Unit(words[0], words[1]), count = static_cast<double>(classes_);
    if (kind_ == Kind::kLogUniform) {
      const auto drawn = static_cast<std::int64_t>(std::exp(first * std::log(count))) - 1;
      return std::clamp<std::int64_t>(drawn, 0, std::max<std::int64_t>(classes_ - 2, 0));
    }
    const auto place = std::min(static_cast<std::int64_t>(first * count), classes_ - 1);
    if (kind_ == Kind::kUniform) return place;
    const double own = static_cast<double>(k[alias_probabilities_].Data<float>()[place]);
    if (std::isnan(own))
      return InvalidArgument("E-op-label", "nce: CustomDistAliasProbs of class ", place, " is NaN");
    if (Unit(words[2], words[3]) < own) return place;
    const std::int64_t other = k[alias_].Data<std::int32_t>()[place];
    if (other >= 0 && other < classes_) return other;
    return InvalidArgument("E-op-label", "nce: CustomDistAlias holds class ", other, "; it must be in [0, ",
                           classes_, ")");
  }
  // These two need PrepareLogUniform.
  std::int64_t DrawLogUniform(std::uint64_t at) const {
    const PhiloxWords words = PhiloxBlock(key_, at);
    const double log_range = std::log1p(static_cast<double>(classes_));
    const auto drawn = static_cast<std::int64_t>(std::exp(Unit(words[0], words[1]) * log_range)) - 1;
    return std::clamp<std::int64_t>(drawn, 0, classes_ - 1);
  }
  double LogUniformProbability(std::int64_t label) const {
    return std::log1p(1 / (static_cast<double>(label) + 1)) / std::log1p(static_cast<double>(classes_));
  }
  double Probability(KernelRun& k, std::int64_t label) const {
    const double count = static_cast<double>(classes_);
    if (kind_ == Kind::kUniform) return 1 / count;
    if (kind_ == Kind::kCustom) return static_cast<double>(k[probabilities_].Data<float>()[label]);
    // As in Fluid, the last class is never drawn.
    return classes_ == 1 ? 1 : std::log1p(1 / (static_cast<double>(label) + 1)) / std::log(count);
  }

 private:
  enum class Kind { kUniform, kLogUniform, kCustom };
  void PrepareSeed(const KernelSetup& k) {
    key_ = seed_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(k.Attr<int>("seed")));
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
  }
  // Returns a number in [0, 1).
  static double Unit(std::uint32_t high, std::uint32_t low) {
    return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
  }

  std::int64_t classes_ = 1;
  Kind kind_ = Kind::kUniform;
  std::uint64_t seed_ = 0, key_ = 0;
  RandomSource* source_ = nullptr;
  In<"CustomDistProbs"> probabilities_;
  In<"CustomDistAlias"> alias_;
  In<"CustomDistAliasProbs"> alias_probabilities_;
};

}  // namespace penstock
