// A dense array in memory: element type, shape, level-of-detail offsets, and a (shared) buffer.
//
//   Tensor t(DType::kFp32, {2, 3});
//   std::span<float> values = t.Span<float>();
//   Tensor rows = t.Rows(0, 1);        // shares the buffer
//
// Copying a Tensor shares the buffer; Clone copies the bytes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/base/check.h"
#include "framework/tensor/device.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock {

// Offsets of variable-length sequences, outermost level first: level {0, 2, 5} has a sequence of length 2 and
// one of length 3.
using LoDLevel = std::vector<std::uint64_t>;
using LoD = std::vector<LoDLevel>;

// Memory aligned to 64 bytes, freed with the last owner. The deleter may belong to a device or to another
// library.
class Buffer {
 public:
  static std::shared_ptr<Buffer> Allocate(std::size_t bytes);
  // Borrows memory that `owner` keeps alive.
  static std::shared_ptr<Buffer> Borrow(void* data, std::size_t bytes, std::shared_ptr<void> owner,
                                        DeviceKind device = DeviceKind::kCpu);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  DeviceKind device() const { return device_; }  // the device that the memory belongs to

 private:
  Buffer(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner, DeviceKind device)
      : data_(data), bytes_(bytes), owner_(std::move(owner)), device_(device) {}
  std::byte* data_;
  std::size_t bytes_;
  std::shared_ptr<void> owner_;  // null: the buffer owns the memory
  DeviceKind device_;
};

class Tensor {
 public:
  Tensor() = default;                      // no buffer: not initialised
  Tensor(DType type, const Shape& shape);  // memory is not cleared; every extent must be known
  Tensor(DType type, const Shape& shape, std::shared_ptr<Buffer> buffer, std::size_t offset_bytes);

  bool initialized() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const LoD& lod() const { return lod_ == nullptr ? NoLod() : *lod_; }
  void set_lod(LoD lod);
  // Shares the offsets of `other` without a copy.
  void ShareLod(const Tensor& other) {
    if (lod_ != other.lod_) lod_ = other.lod_;
  }
  std::int64_t count() const { return shape_.Count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * SizeOf(dtype_); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  std::size_t offset_bytes() const { return offset_; }

  std::byte* raw() const { return buffer_ == nullptr ? nullptr : buffer_->data() + offset_; }
  template <typename T>
  T* Data() {
    PENSTOCK_CHECK(DTypeOfT<T>::kValue == dtype_,
                   "element type of the tensor differs from the one asked for");
    return reinterpret_cast<T*>(raw());
  }
  template <typename T>
  const T* Data() const {
    return const_cast<Tensor*>(this)->Data<T>();
  }
  template <typename T>
  std::span<T> Span() {
    return {Data<T>(), static_cast<std::size_t>(count())};
  }
  template <typename T>
  std::span<const T> Span() const {
    return {Data<T>(), static_cast<std::size_t>(count())};
  }

  // Gives this tensor a type and shape. Reuses the buffer if it is large enough and not shared; otherwise
  // allocates a new one. Contents are not kept; LoD is cleared.
  void Reset(DType type, const Shape& shape);
  // Gives this tensor a type and shape. Reuses the memory, even if shared, if both are unchanged; otherwise
  // as Reset. Contents are not kept; LoD is cleared.
  void Refit(DType type, const Shape& shape);
  // The same elements in another shape with the same count.
  Tensor Reshaped(const Shape& shape) const;
  // Rows [begin, end) of the first extent, sharing the buffer.
  Tensor Rows(Dim begin, Dim end) const;
  // Makes this tensor equal to whole.Rows(begin, end). Reuses the memory of its shape, so it seldom
  // allocates.
  void ViewRows(const Tensor& whole, Dim begin, Dim end);
  Tensor Clone() const;
  // Copies the bytes of `from` (same type and count).
  void CopyFrom(const Tensor& from);

 private:
  static const LoD& NoLod();

  DType dtype_ = DType::kFp32;
  Shape shape_;
  std::shared_ptr<const LoD> lod_;  // null: none
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;
};

}  // namespace penstock
