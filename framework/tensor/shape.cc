#include "framework/tensor/shape.h"

#include <limits>

#include "framework/base/check.h"
#include "framework/base/strings.h"

namespace penstock {

namespace {

// A declaration may have any extents. Counts stop at this limit: no memory holds as many elements, and their
// size in bytes still fits 64 bits.
constexpr Dim kCountMax = std::numeric_limits<Dim>::max() / 16;

}  // namespace

Shape::Shape(std::span<const Dim> dims) : rank_(dims.size()) {
  if (OnHeap())
    heap_ = new std::vector<Dim>(dims.begin(), dims.end());
  else
    std::ranges::copy(dims, inline_);
}

void Shape::Append(Dim extent) {
  if (rank_ < kInlineRank) {
    inline_[rank_] = extent;
  } else if (rank_ == kInlineRank) {
    auto* all = new std::vector<Dim>(inline_, inline_ + rank_);
    all->push_back(extent);
    heap_ = all;
  } else {
    heap_->push_back(extent);
  }
  ++rank_;
}

bool Shape::IsKnown() const {
  return std::ranges::none_of(dims(), [](Dim extent) { return extent < 0; });
}

Dim Shape::Product(int begin, int end) const {
  PENSTOCK_CHECK(begin >= 0 && end <= rank(), "extents out of range");
  Dim product = 1;
  const Dim* extents = data();
  for (int i = begin; i < end; ++i) {
    if (extents[i] < 0) return kUnknownDim;
    if (__builtin_mul_overflow(product, extents[i], &product) || product > kCountMax) product = kCountMax;
  }
  return product;
}

Shape Shape::Slice(int begin, int end) const {
  PENSTOCK_CHECK(begin >= 0 && begin <= end && end <= rank(), "extents out of range");
  return Shape(dims().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
}

Shape Shape::WithRows(Dim rows) const {
  Shape out = *this;
  PENSTOCK_CHECK(out.rank() > 0, "a scalar has no rows");
  out.Set(0, rows);
  return out;
}

std::string Shape::ToString() const {
  std::string out = "[";
  for (int i = 0; i < rank(); ++i) {
    if (i > 0) out += ", ";
    if ((*this)[i] == kUnknownDim) {
      out += '?';
    } else {
      AppendTo(out, (*this)[i]);
    }
  }
  return out + "]";
}

Shape Concat(const Shape& a, const Shape& b) {
  Shape out = a;
  for (const Dim extent : b.dims()) out.Append(extent);
  return out;
}

bool Compatible(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!Compatible(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace penstock
