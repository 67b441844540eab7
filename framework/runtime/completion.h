// Something under way that a value waits for: a pulled parameter, a copy from a device.
#pragma once

#include "framework/base/status.h"

namespace penstock {

class Completion {
 public:
  virtual ~Completion() = default;
  // Does not block.
  virtual bool Done() const = 0;
  // Blocks until done; the same answer each time. Reports what it waits for as the runtime's other waits do.
  virtual Status Wait() = 0;
};

}  // namespace penstock
