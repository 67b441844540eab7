// The extents of a tensor, outermost first. An extent of -1 is not known until the program runs.
//
//   Shape s = {-1, 784};
//   s.ToString()          "[?, 784]"
//   s.Product(1, 2)       784
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace penstock {

using Dim = std::int64_t;
constexpr Dim kUnknownDim = -1;

// An unknown extent is compatible with any.
constexpr bool Compatible(Dim a, Dim b) { return a == b || a == kUnknownDim || b == kUnknownDim; }

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  Dim operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  void Set(int i, Dim extent) { dims_[static_cast<std::size_t>(i)] = extent; }
  void Append(Dim extent) { dims_.push_back(extent); }
  const std::vector<Dim>& dims() const { return dims_; }

  bool IsKnown() const;  // no extent is -1
  // The product of extents [begin, end); -1 if one of them is unknown; 1 if there are none.
  Dim Product(int begin, int end) const;
  Dim Count() const { return Product(0, rank()); }
  // Elements of one row: the product of all extents but the first (1 for rank 0 and 1).
  Dim RowWidth() const { return Product(rank() == 0 ? 0 : 1, rank()); }
  Shape First(int n) const { return Slice(0, n); }
  Shape From(int n) const { return Slice(n, rank()); }
  Shape Slice(int begin, int end) const;
  Shape WithRows(Dim rows) const;  // the first extent replaced
  std::string ToString() const;    // "[?, 784]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<Dim> dims_;
};

Shape Concat(const Shape& a, const Shape& b);
// Same rank, and each pair of extents compatible.
bool Compatible(const Shape& a, const Shape& b);

}  // namespace penstock
