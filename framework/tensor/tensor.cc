#include "framework/tensor/tensor.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "framework/tensor/buffer_bytes.h"

namespace penstock {
namespace {

constexpr std::size_t kAlignment = 64;

std::atomic<std::size_t> bytes_now{0}, bytes_peak{0};  // of buffers that own their memory

void AddToHeld(std::size_t bytes) {
  const std::size_t now = bytes_now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = bytes_peak.load(std::memory_order_relaxed);
  while (now > peak && !bytes_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void CheckReadable(const Tensor& tensor) {
  PENSTOCK_CHECK(tensor.buffer() == nullptr || tensor.buffer()->device() == DeviceKind::kCpu,
                 "a tensor on a device is copied by the device's own functions");
}

}  // namespace

std::shared_ptr<Buffer> Buffer::Allocate(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (data == nullptr) throw std::bad_alloc();
  AddToHeld(bytes);
  return std::shared_ptr<Buffer>(new Buffer(static_cast<std::byte*>(data), bytes, nullptr, DeviceKind::kCpu));
}

std::shared_ptr<Buffer> Buffer::Borrow(void* data, std::size_t bytes, std::shared_ptr<void> owner,
                                       DeviceKind device) {
  PENSTOCK_CHECK(owner != nullptr, "borrowed memory needs an owner");
  return std::shared_ptr<Buffer>(new Buffer(static_cast<std::byte*>(data), bytes, std::move(owner), device));
}

Buffer::~Buffer() {
  if (owner_ != nullptr) return;
  std::free(data_);
  bytes_now.fetch_sub(bytes_, std::memory_order_relaxed);
}

BufferBytes HeldByBuffers() {
  return {bytes_now.load(std::memory_order_relaxed), bytes_peak.load(std::memory_order_relaxed)};
}

void ResetPeakOfBuffers() {
  bytes_peak.store(bytes_now.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Tensor::Tensor(DType type, const Shape& shape) { Reset(type, shape); }

Tensor::Tensor(DType type, const Shape& shape, std::shared_ptr<Buffer> buffer, std::size_t offset_bytes)
    : dtype_(type), shape_(shape), buffer_(std::move(buffer)), offset_(offset_bytes) {
  PENSTOCK_CHECK(offset_ + bytes() <= buffer_->bytes(), "the buffer is smaller than the tensor");
}

const LoD& Tensor::NoLod() {
  static const LoD none;
  return none;
}

void Tensor::set_lod(LoD lod) { lod_ = lod.empty() ? nullptr : std::make_shared<const LoD>(std::move(lod)); }

void Tensor::Reset(DType type, const Shape& shape) {
  PENSTOCK_CHECK(shape.IsKnown(), "a tensor in memory needs known extents");
  dtype_ = type;
  if (shape_ != shape) shape_ = shape;
  lod_.reset();
  const std::size_t needed = bytes();
  if (buffer_ != nullptr && buffer_.use_count() == 1 && offset_ == 0 && buffer_->bytes() >= needed) return;
  CheckReadable(*this);  // host memory must not replace memory of a device
  buffer_ = Buffer::Allocate(needed);
  offset_ = 0;
}

void Tensor::Refit(DType type, const Shape& shape) {
  if (!initialized() || dtype_ != type || shape_ != shape) return Reset(type, shape);
  lod_.reset();
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  PENSTOCK_CHECK(shape.Count() == count(), "a reshape keeps the number of elements");
  Tensor out = *this;
  out.shape_ = shape;
  return out;
}

Tensor Tensor::Rows(Dim begin, Dim end) const {
  Tensor out;
  out.ViewRows(*this, begin, end);
  return out;
}

void Tensor::ViewRows(const Tensor& whole, Dim begin, Dim end) {
  const Shape& rows = whole.shape_;
  PENSTOCK_CHECK(rows.rank() > 0 && begin >= 0 && begin <= end && end <= rows[0], "rows out of range");
  dtype_ = whole.dtype_;
  offset_ = whole.offset_ + static_cast<std::size_t>(begin * rows.RowWidth()) * SizeOf(dtype_);
  shape_ = rows;
  shape_.Set(0, end - begin);
  buffer_ = whole.buffer_;
  lod_.reset();
}

Tensor Tensor::Clone() const {
  Tensor out;
  if (!initialized()) return out;
  CheckReadable(*this);
  out.Reset(dtype_, shape_);
  std::memcpy(out.raw(), raw(), bytes());
  out.lod_ = lod_;
  return out;
}

void Tensor::CopyFrom(const Tensor& from) {
  PENSTOCK_CHECK(from.dtype() == dtype_ && from.count() == count(), "a copy needs the same type and count");
  CheckReadable(*this);
  CheckReadable(from);
  std::memmove(raw(), from.raw(), bytes());
}

}  // namespace penstock
