#include "executor/table/touch_histogram.h"

#include <algorithm>

namespace penstock::table {

void TouchHistogram::Add(std::uint64_t version, std::uint64_t bytes) {
  if (BucketOf(version) >= kBuckets) MakeRoomFor(version);
  bytes_[BucketOf(version)] += bytes;
  total_ += bytes;
}

void TouchHistogram::Remove(std::uint64_t version, std::uint64_t bytes) {
  if (version < dropped_below_) return;
  bytes_[BucketOf(version)] -= bytes;
  total_ -= bytes;
}

// Buckets without rows at the front make room first; then buckets become wider.
void TouchHistogram::MakeRoomFor(std::uint64_t version) {
  const auto used = std::ranges::find_if(bytes_, [](std::uint64_t bytes) { return bytes > 0; });
  if (used == bytes_.end()) {
    first_ = version / width_;
    return;
  }
  std::rotate(bytes_.begin(), used, bytes_.end());
  first_ += static_cast<std::uint64_t>(used - bytes_.begin());
  while (BucketOf(version) >= kBuckets) {
    std::vector<std::uint64_t> wider(kBuckets);
    for (std::uint64_t i = 0; i < kBuckets; ++i) wider[(first_ + i) / 2 - first_ / 2] += bytes_[i];
    bytes_ = std::move(wider);
    first_ /= 2;
    width_ *= 2;
  }
}

std::uint64_t TouchHistogram::DropOldest(std::uint64_t bytes, std::uint64_t kept) {
  const std::uint64_t left = total_ - std::min(total_, bytes);
  for (std::uint64_t i = 0; i < kBuckets && total_ > left; ++i) {
    const std::uint64_t end = (first_ + i + 1) * width_;
    if (end > kept) break;
    if (bytes_[i] == 0) continue;
    total_ -= bytes_[i];
    bytes_[i] = 0;
    dropped_below_ = end;
  }
  return dropped_below_;
}

}  // namespace penstock::table
