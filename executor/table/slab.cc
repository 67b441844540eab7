#include "executor/table/slab.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace penstock::table {
namespace {

constexpr std::size_t kSlabBytesLeast = std::size_t{8} << 20;

}  // namespace

Slabs::Slabs(std::size_t row_bytes) : row_bytes_(row_bytes) {
  while ((row_bytes_ << shift_) < kSlabBytesLeast) ++shift_;
}

void Slabs::Clear(Slot slot) { std::memset(At(slot), 0, row_bytes_); }

// In the last slab that was in use, releases whole pages behind the rows.
bool Slabs::ReleaseSpare() {
  if (used_ == size_) return false;
  const Slot slab = (used_ - 1) >> shift_, first = slab << shift_;
  const Slot kept = std::max(size_, first) - first;
  const std::size_t end = row_bytes_ << shift_;
  const std::size_t begin = (kept * row_bytes_ + kHugePage - 1) / kHugePage * kHugePage;
  const Slot zero = static_cast<Slot>(std::min((begin + row_bytes_ - 1) / row_bytes_, end / row_bytes_));
  if (first + zero >= used_) return false;  // nothing but the rest of a page
  slabs_[slab].Release(begin, end);
  used_ = first + zero;
  return true;
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
