// PENSTOCK_CHECK: an invariant of our own code, checked in every build. Input from a user or a peer must
// never violate it; return a Status for bad input.
#pragma once

#include <string>

namespace penstock {

// Prints the place, the condition and the message to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace penstock

#define PENSTOCK_CHECK(condition, message)                              \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::penstock::CheckFailed(__FILE__, __LINE__, #condition, message); \
    }                                                                   \
  } while (false)
