// The extents of a tensor, outermost first. An extent of -1 is not known until the program runs.
//
//   Shape s = {-1, 784};
//   s.ToString()          "[?, 784]"
//   s.Product(1, 2)       784
//
// Up to kInlineRank extents are stored in the object itself, more on the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

using Dim = std::int64_t;
constexpr Dim kUnknownDim = -1;

// An unknown extent is compatible with any.
constexpr bool Compatible(Dim a, Dim b) { return a == b || a == kUnknownDim || b == kUnknownDim; }

// The extents of a Shape, which must outlive it.
class Dims : public std::span<const Dim> {
 public:
  explicit Dims(std::span<const Dim> dims) : std::span<const Dim>(dims) {}
  operator std::vector<Dim>() const { return {begin(), end()}; }  // NOLINT(google-explicit-constructor)
  friend bool operator==(const Dims& a, const std::vector<Dim>& b) { return std::ranges::equal(a, b); }
};

class Shape {
 public:
  static constexpr int kInlineRank = 8;

  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const Dim> dims);
  Shape(const Shape& other) : rank_(other.rank_) {
    if (other.OnHeap()) [[unlikely]]
      heap_ = new std::vector<Dim>(*other.heap_);
    else
      std::copy_n(other.inline_, kInlineRank, inline_);
  }
  // Leaves `other` with rank 0.
  Shape(Shape&& other) noexcept { Take(other); }
  Shape& operator=(const Shape& other) {
    if (this != &other) *this = Shape(other);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    if (this == &other) return *this;
    if (OnHeap()) [[unlikely]]
      delete heap_;
    Take(other);
    return *this;
  }
  ~Shape() {
    if (OnHeap()) [[unlikely]]
      delete heap_;
  }

  int rank() const { return static_cast<int>(rank_); }
  Dim operator[](int i) const { return data()[i]; }
  void Set(int i, Dim extent) { data()[i] = extent; }
  void Append(Dim extent);
  Dims dims() const { return Dims({data(), rank_}); }

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

  // A loop, because a call of memcmp takes longer than the few extents of a tensor.
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    const Dim *const of_a = a.data(), *const of_b = b.data();
    for (std::size_t i = 0; i < a.rank_; ++i) {
      if (of_a[i] != of_b[i]) return false;
    }
    return true;
  }

 private:
  bool OnHeap() const { return rank_ > kInlineRank; }
  const Dim* data() const { return OnHeap() ? heap_->data() : inline_; }
  Dim* data() { return OnHeap() ? heap_->data() : inline_; }
  void Take(Shape& other) {
    if (other.OnHeap()) [[unlikely]]
      heap_ = other.heap_;
    else
      std::copy_n(other.inline_, kInlineRank, inline_);
    rank_ = std::exchange(other.rank_, std::size_t{0});
  }

  union {
    Dim inline_[kInlineRank] = {};
    std::vector<Dim>* heap_;  // if rank_ is above kInlineRank: all extents
  };
  std::size_t rank_ = 0;
};

Shape Concat(const Shape& a, const Shape& b);
// Same rank, and each pair of extents compatible.
bool Compatible(const Shape& a, const Shape& b);

}  // namespace penstock
