// Environment variables as a function, so that tests of its readers need not set any.
//
//   const Environment environment = ProcessEnvironment();
//   environment("PADDLE_TRAINER_ID")                        // "1"; "" if it is not set
#pragma once

#include <functional>
#include <string>

#include "framework/base/environment.h"

namespace penstock::rendezvous {

using Environment = std::function<std::string(const char* name)>;

inline Environment ProcessEnvironment() {
  return [](const char* name) { return env::Raw(name); };
}

}  // namespace penstock::rendezvous
