// Small tensors that ranks reduce in one operation: one agreement, one message each way, instead of one each.
//
//   ReductionBucket bucket(1 << 20);
//   if (bucket.Takes(gradient, Reduction::kSum)) bucket.Add(gradient, Reduction::kSum, {.label = "w@GRAD"});
//   Completion reduced = bucket.Start(group);   // of everything that was added
//   PENSTOCK_RETURN_IF_ERROR(reduced.Wait());
//   bucket.CopyOut();
//
// Values are copied in when they are added and out at the end, so costs are two copies of memory that is in a
// cache. Where the group adds in rank order, the bytes are those of one operation a tensor; elsewhere they
// depend on the place in the bucket too, so on the order in which tensors are added, never on timing.
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
  // Whether they fit, and are of the type and reduction of what is in it.
  bool Takes(const Elements& values, Reduction reduction) const;
  // Takes(...). The elements must stay until CopyOut.
  void Add(const Elements& values, Reduction reduction, const CollectiveOptions& options);
  // Not empty. The bucket must stay until the operation is done.
  Completion Start(CollectiveGroup& group);
  // The operation is done and ok: each tensor gets its reduction. The bucket is empty again.
  void CopyOut();

 private:
  std::size_t capacity_ = 0, used_ = 0;  // bytes
  std::unique_ptr<std::byte[]> memory_;  // made by the first Add
  std::vector<Elements> parts_;
  Reduction reduction_ = Reduction::kSum;
  std::string label_;      // of the first tensor
  std::uint64_t tag_ = 0;  // of all, in their order
};

}  // namespace penstock
