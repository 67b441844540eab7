#include "executor/table/slab.h"

#include <new>

namespace penstock::table {
namespace {

constexpr std::size_t kSlabBytesLeast = std::size_t{8} << 20;

}  // namespace

Slabs::Slabs(std::size_t row_bytes) : row_bytes_(row_bytes) {
  while ((row_bytes_ << shift_) < kSlabBytesLeast) ++shift_;
}

void Slabs::Grow() {
  const Slot more = Slot{1} << shift_;
  if (capacity_ > kNoSlot - more) throw std::bad_alloc();
  begins_.reserve(begins_.size() + 1);
  slabs_.emplace_back(row_bytes_ << shift_, slabs_.empty() ? kHugePage : 0);
  begins_.push_back(slabs_.back().data());
  capacity_ += more;
}

}  // namespace penstock::table
