// How many bytes of rows were last touched at which version of the table, to find the rows that must go so
// that the others fit into a budget.
//
//   TouchHistogram touched;
//   touched.Add(7, 128);  touched.Remove(3, 128);         // a row of 128 bytes moves from version 3 to 7
//   touched.DropOldest(touched.total() - budget, 7);      // 5: rows below version 5 must go
//
// Has a fixed number of buckets, each of as many versions as the span between the oldest and the newest row
// requires. The result depends on the versions and bytes alone, not on the order of rows. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::table {

class TouchHistogram {
 public:
  static constexpr std::uint64_t kBuckets = 4096;

  explicit TouchHistogram(std::uint64_t width = 1) : width_(width) {}

  std::uint64_t total() const { return total_; }
  std::uint64_t width() const { return width_; }  // versions of a bucket; never less than before
  void Add(std::uint64_t version, std::uint64_t bytes);
  // Does nothing for rows below dropped_below().
  void Remove(std::uint64_t version, std::uint64_t bytes);
  // Drops the oldest rows, by whole buckets, until at least `bytes` are dropped or only rows of `kept` and
  // later versions are left. Returns dropped_below().
  std::uint64_t DropOldest(std::uint64_t bytes, std::uint64_t kept);
  // The version below which rows are dropped, now or earlier; 0 if none are.
  std::uint64_t dropped_below() const { return dropped_below_; }

 private:
  std::uint64_t BucketOf(std::uint64_t version) const { return version / width_ - first_; }
  void MakeRoomFor(std::uint64_t version);

  std::uint64_t width_;
  std::uint64_t first_ = 0;  // the first bucket has the versions from first_ * width_ on
  std::uint64_t dropped_below_ = 0;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> bytes_ = std::vector<std::uint64_t>(kBuckets);
};

}  // namespace penstock::table
