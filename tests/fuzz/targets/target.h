// What a fuzz target is: a function that takes any bytes at all and ends the process if what it met is a
// defect. libFuzzer drives it where the build has it (fuzzer_main.cc); replay_main.cc drives it over files
// everywhere. Both hold it to what an input may take (bounds.h).
#pragma once

#include <string_view>

#include "framework/base/check.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock::fuzz {

// The target.
void Try(std::string_view input);

// An error that a caller can show: it has a stable id and one line of message, and does not blame us.
void MustBeTheInputsFault(const Status& status);

// What anybody may do with a program that came in: write it, print it, read both back, verify it.
void Use(const Program& program);

}  // namespace penstock::fuzz
