// An optional that stores its value on the heap, so an empty Box costs one pointer. Use it for rarely set
// fields.
//
//   Box<InitialSlice> slice;                      none
//   slice = InitialSlice{.whole = "w"};
//   if (slice) ... slice->whole, *slice
//
// Copying a Box copies its value.
#pragma once

#include <memory>
#include <utility>

namespace penstock {

template <typename T>
class Box {
 public:
  Box() = default;
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)
  Box(const Box& other) : value_(other.value_ == nullptr ? nullptr : std::make_unique<T>(*other.value_)) {}
  Box(Box&& other) noexcept = default;
  Box& operator=(const Box& other) { return *this = Box(other); }
  Box& operator=(Box&& other) noexcept = default;
  ~Box() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  // The Box must hold a value.
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  void reset() { value_.reset(); }

  friend bool operator==(const Box& a, const Box& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace penstock
