// Reduces several small tensors in one operation, so that they share one agreement and one set of messages.
//
//   ReductionBucket bucket(1 << 20);
//   if (bucket.Takes(gradient, Reduction::kSum)) bucket.Add(gradient, Reduction::kSum, {.label = "w@GRAD"});
//   Completion reduced = bucket.Start(group);   // of all added tensors
//   PENSTOCK_RETURN_IF_ERROR(reduced.Wait());
//   bucket.CopyOut();
//
// Values are copied in by Add and out by CopyOut, usually within the cache. If the group adds in rank order,
// the bytes equal those of one operation per tensor. Otherwise they also depend on the position in the
// bucket, and so on the order in which tensors are added, but never on timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/runtime/collective_group.h"

namespace penstock {

class ReductionBucket {
 public:
  explicit ReductionBucket(std::size_t bytes);

  bool empty() const { return parts_.empty(); }
  // Whether the values fit and have the type and reduction of the tensors already added.
  bool Takes(const Elements& values, Reduction reduction) const;
  // Requires Takes(...). The elements must stay valid until CopyOut.
  void Add(const Elements& values, Reduction reduction, const CollectiveOptions& options);
  // The bucket must not be empty, and must outlive the operation.
  Completion Start(CollectiveGroup& group);
  // Call when the operation is done and ok: copies each reduction into its tensor and empties the bucket.
  void CopyOut();

 private:
  std::size_t capacity_ = 0, used_ = 0;  // bytes
  std::unique_ptr<std::byte[]> memory_;  // made by the first Add
  std::vector<Elements> parts_;
  Reduction reduction_ = Reduction::kSum;
  std::string label_;      // of the first tensor
  std::uint64_t tag_ = 0;  // of all tensors, in order
};

}  // namespace penstock
