// Memory in pages from the system, zero at first, in huge pages where the system has them: a large table is
// read at random, and a page of 2 MB needs one address translation where 512 small ones need 512.
//
//   Pages pages(std::size_t{8} << 20);       // addresses; a page takes memory when it is first used
//   pages.Release(0, kHugePage);             // gives memory back; its bytes are 0 again
//
// Move-only. Throws std::bad_alloc.
#pragma once

#include <cstddef>
#include <utility>

namespace penstock::table {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Pages {
 public:
  Pages() = default;
  // The first `small` bytes, a multiple of kHugePage, have small pages, for owners that may stay small.
  explicit Pages(std::size_t bytes, std::size_t small = 0);
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages();

  std::byte* data() const { return data_; }  // 64-byte aligned; null without bytes
  // From `begin` to `end`, both multiples of kHugePage.
  void Release(std::size_t begin, std::size_t end);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace penstock::table
