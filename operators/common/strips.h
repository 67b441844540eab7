// Concatenates tensors along an axis, or splits one, for any element type. A part that is already a view of
// its rows in the whole is not copied.
//
//   strips_.Prepare(k.Inputs("X"));                                    // in Prepare
//   strips_.Lay(out.shape, axis, SizeOf(out.dtype), {2, 3});           // in Prepare or in Run
//   strips_.Join(k, k[out_]);
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/common/parallel.h"

namespace penstock {

// The layout of the parts in the whole tensor: for each of `outer` positions, the whole holds a strip of
// contiguous bytes of each part.
class Strips {
 public:
  // `parts`: operands or arguments.
  template <typename Parts>
  void Prepare(const Parts& parts) {
    for (const Operand part : parts) parts_.push_back({part, 0});
  }
  // Sets the layout: part i has extents[i] of the extent of the whole along `axis`.
  void Lay(const Shape& whole, int axis, std::size_t element_bytes, const std::vector<Dim>& extents) {
    outer_ = whole.Product(0, axis);
    const std::size_t inner = static_cast<std::size_t>(whole.Product(axis + 1, whole.rank())) * element_bytes;
    whole_bytes_ = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].bytes = static_cast<std::size_t>(extents[i]) * inner;
      whole_bytes_ += parts_[i].bytes;
    }
  }
  void Join(KernelRun& k, Tensor& whole) const {
    std::size_t offset = 0;
    for (const Part& part : parts_) {
      if (const std::byte* const from = k[part.operand].raw(); !LiesAt(from, whole, offset)) {
        std::byte* const to = whole.raw() + offset;
        EachStrip(part.bytes, [&](Dim o) {
          std::memcpy(to + Times(o, whole_bytes_), from + Times(o, part.bytes), part.bytes);
        });
      }
      offset += part.bytes;
    }
  }
  void Cut(KernelRun& k, const Tensor& whole) const {
    std::size_t offset = 0;
    for (const Part& part : parts_) {
      if (part.operand && !LiesAt(k[part.operand].raw(), whole, offset)) {
        std::byte* const to = k[part.operand].raw();
        const std::byte* const from = whole.raw() + offset;
        EachStrip(part.bytes, [&](Dim o) {
          std::memcpy(to + Times(o, part.bytes), from + Times(o, whole_bytes_), part.bytes);
        });
      }
      offset += part.bytes;
    }
  }

 private:
  struct Part {
    Operand operand;
    std::size_t bytes;
  };
  template <typename Copy>
  void EachStrip(std::size_t bytes, const Copy& copy) const {
    if (bytes == 0) return;
    ForRows(outer_, StreamNs<std::byte>(2) * static_cast<double>(bytes), [&](Dim begin, Dim end) {
      for (Dim o = begin; o < end; ++o) copy(o);
    });
  }
  bool LiesAt(const std::byte* part, const Tensor& whole, std::size_t offset) const {
    return outer_ == 1 && part == whole.raw() + offset;
  }
  static std::size_t Times(Dim o, std::size_t bytes) { return static_cast<std::size_t>(o) * bytes; }
  Dim outer_ = 1;
  std::size_t whole_bytes_ = 0;
  std::vector<Part> parts_;
};

}  // namespace penstock
