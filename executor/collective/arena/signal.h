// A number in shared memory that threads and processes can wait for. Zero bytes are a signal with value 0.
//
//   signal.Set(7);                                    // one side: wakes sleepers
//   while (signal.value.load() != 7) signal.Sleep(seen, 100ms);   // the other
//
// Setting costs a system call only if a thread sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "framework/runtime/clock.h"

namespace penstock::collective {

struct Signal {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t>
      sleepers;  // a process killed in its sleep stays counted, which costs only unneeded calls

  void Set(std::uint32_t to) {
    value.store(to);
    if (sleepers.load() != 0) Wake();
  }
  void Add() {
    value.fetch_add(1);
    if (sleepers.load() != 0) Wake();
  }
  // Wakes all sleepers without a change of the value.
  void Wake();
  // Returns when the value is no longer `seen`, on Wake, after `limit`, or spuriously.
  void Sleep(std::uint32_t seen, Nanoseconds limit);
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

}  // namespace penstock::collective
