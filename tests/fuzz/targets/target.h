// What a fuzz target is: a function that takes any bytes at all and ends the process if what it met is a
// defect. libFuzzer drives it where the build has it; replay_main.cc drives it over files everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "framework/base/check.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace penstock::fuzz {

inline std::string_view AsText(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// An error that a caller can show: it has a stable id and one line of message, and does not blame us.
void MustBeTheInputsFault(const Status& status);

// What anybody may do with a program that came in: write it, print it, read both back, verify it.
void Use(const Program& program);

}  // namespace penstock::fuzz
