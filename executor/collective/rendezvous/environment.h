// Environment variables as a function, so that tests of its readers need not set any.
//
//   const Environment environment = ProcessEnvironment();
//   environment("PADDLE_TRAINER_ID")                        // "1"; "" if it is not set
#pragma once

#include <cstdlib>
#include <functional>
#include <string>

namespace penstock::rendezvous {

using Environment = std::function<std::string(const char* name)>;

inline Environment ProcessEnvironment() {
  return [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
}

}  // namespace penstock::rendezvous
