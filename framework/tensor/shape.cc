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

bool Shape::IsKnown() const {
  for (const Dim d : dims_) {
    if (d < 0) return false;
  }
  return true;
}

Dim Shape::Product(int begin, int end) const {
  PENSTOCK_CHECK(begin >= 0 && end <= rank(), "extents out of range");
  Dim product = 1;
  for (int i = begin; i < end; ++i) {
    if ((*this)[i] < 0) return kUnknownDim;
    if (__builtin_mul_overflow(product, (*this)[i], &product) || product > kCountMax) product = kCountMax;
  }
  return product;
}

Shape Shape::Slice(int begin, int end) const {
  PENSTOCK_CHECK(begin >= 0 && begin <= end && end <= rank(), "extents out of range");
  return Shape(std::vector<Dim>(dims_.begin() + begin, dims_.begin() + end));
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
  std::vector<Dim> dims = a.dims();
  dims.insert(dims.end(), b.dims().begin(), b.dims().end());
  return Shape(std::move(dims));
}

bool Compatible(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!Compatible(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace penstock
