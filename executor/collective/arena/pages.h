// Memory that ranks share, within a process or between processes by a descriptor. Zeroed and page-aligned.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Descriptor memory, MakeSharedMemory(bytes));  // one rank; passes it
//   PENSTOCK_ASSIGN_OR_RETURN(Pages pages, Pages::OfDescriptor(memory, bytes));   // all ranks
//
// The memory has no name, so it is freed with the last process that has it, however that ends. Untouched
// pages take no memory.
#pragma once

#include <cstddef>
#include <utility>

#include "executor/transport/descriptor.h"
#include "framework/base/status.h"

namespace penstock::collective {

// kUnavailable E-collective-memory.
Result<transport::Descriptor> MakeSharedMemory(std::size_t bytes);

class Pages {
 public:
  // Both: kUnavailable E-collective-memory: the system provides none, or the descriptor is no such memory.
  static Result<Pages> OfThisProcess(std::size_t bytes);
  static Result<Pages> OfDescriptor(const transport::Descriptor& memory, std::size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Pages& operator=(Pages&&) = delete;

  std::byte* data() const { return data_; }

 private:
  Pages(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace penstock::collective
