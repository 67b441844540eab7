#include "framework/runtime/reduction_bucket.h"

#include <cstring>

#include "framework/base/strings.h"

namespace penstock {
namespace {

constexpr std::uint64_t kFnvPrime = 1099511628211u;

}  // namespace

ReductionBucket::ReductionBucket(std::size_t bytes) : capacity_(bytes) {}

bool ReductionBucket::Takes(const Elements& values, Reduction reduction) const {
  if (used_ + values.bytes() > capacity_) return false;
  return empty() || (parts_.front().type == values.type && reduction_ == reduction);
}

void ReductionBucket::Add(const Elements& values, Reduction reduction, const CollectiveOptions& options) {
  if (memory_ == nullptr) memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  if (empty()) {
    reduction_ = reduction;
    label_ = options.label;
    tag_ = 0;
  }
  tag_ = tag_ * kFnvPrime ^ options.tag;
  if (values.count > 0) std::memcpy(memory_.get() + used_, values.data, values.bytes());
  used_ += values.bytes();
  parts_.push_back(values);
}

Completion ReductionBucket::Start(CollectiveGroup& group) {
  const ElementType type = parts_.front().type;
  const Elements all{memory_.get(), static_cast<std::int64_t>(used_ / SizeOf(type)), type};
  const std::string label =
      parts_.size() == 1 ? label_ : StrCat("bucket of ", parts_.size(), " tensors, first ", label_);
  return group.AllReduce(all, reduction_, {.label = label, .tag = tag_});
}

void ReductionBucket::CopyOut() {
  const std::byte* from = memory_.get();
  for (const Elements& part : parts_) {
    if (part.count > 0) std::memcpy(part.data, from, part.bytes());
    from += part.bytes();
  }
  parts_.clear();
  used_ = 0;
}

}  // namespace penstock
