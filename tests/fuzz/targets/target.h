// The interface of a fuzz target: a function that takes any bytes and aborts on a defect. libFuzzer runs it
// in the fuzz build (fuzzer_main.cc); replay_main.cc runs it on files in every other build. Both check the
// memory limit (bounds.h).
#pragma once

#include <string_view>

#include "framework/base/check.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock::fuzz {

// The target. Aborts on a defect.
void Try(std::string_view input);

// Aborts unless the error blames the input: it has a stable id, a message of one line, and is not kInternal.
void MustBeTheInputsFault(const Status& status);

// Does with a program what a user may do: serializes and prints it, parses both back, and verifies it.
void Use(const Program& program);

}  // namespace penstock::fuzz
