// A list that one thread extends while others use its elements: no element ever moves. A thread may use the
// elements of which it has learned in an ordered way, such as by a job that was queued after they were added;
// size and iteration belong to the thread that extends.
//
//   GrowingList<Param> params;
//   Param& w = params.emplace_back();
//   params[0]
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <memory>

namespace penstock::pserver {

template <typename T>
class GrowingList {
 public:
  template <typename List, typename Value>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator() = default;
    Iterator(List* list, std::size_t at) : list_(list), at_(at) {}
    Value& operator*() const { return (*list_)[at_]; }
    Value* operator->() const { return &(*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {list_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;
    std::size_t index() const { return at_; }

   private:
    List* list_ = nullptr;
    std::size_t at_ = 0;
  };

  T& operator[](std::size_t at) const { return segments_[Segment(at)][at - First(Segment(at))]; }
  T& emplace_back() {
    const std::size_t segment = Segment(size_);
    if (segments_[segment] == nullptr) segments_[segment] = std::make_unique<T[]>(kFirst << segment);
    return (*this)[size_++];
  }
  T& back() const { return (*this)[size_ - 1]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  auto begin() const { return Iterator<const GrowingList, T>(this, 0); }
  auto end() const { return Iterator<const GrowingList, T>(this, size_); }

 private:
  // Segment k has 16 * 2^k elements.
  static constexpr std::size_t kFirst = 16;
  static std::size_t Segment(std::size_t at) {
    return static_cast<std::size_t>(std::bit_width(at / kFirst + 1)) - 1;
  }
  static std::size_t First(std::size_t segment) { return kFirst * ((std::size_t{1} << segment) - 1); }

  std::array<std::unique_ptr<T[]>, 40> segments_;
  std::size_t size_ = 0;
};

}  // namespace penstock::pserver
