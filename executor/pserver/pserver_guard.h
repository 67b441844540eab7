// Pserver::Guard and Pserver::Decide, for the files that call them.
#pragma once

#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>

#include "executor/pserver/memory/memory_left.h"
#include "executor/pserver/pserver.h"

namespace penstock::pserver {

template <typename Work>
void Pserver::Guard(const Work& work) {
  try {
    // After the end there is no job left to fail, and the work tells late peers why the server has ended.
    if (!MemoryLeft(kMemoryToServe) && !Ended().has_value()) FailForMemory();
    work();
  } catch (const std::bad_alloc&) {
    FailForMemory();
  } catch (const std::length_error&) {  // from a vector larger than any memory
    FailForMemory();
  } catch (const std::system_error&) {  // a thread that could not be started
    FailForMemory();
  }
}

template <typename Work>
void Pserver::Decide(const Work& work) {
  Guard([&] {
    {
      const std::lock_guard lock(mutex_);
      work();
    }
    queues_->RunSmall();
  });
}

}  // namespace penstock::pserver
