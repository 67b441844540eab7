// Makes and runs mutated programs, as a user would: startup program, state, several steps with different
// feeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/executor/subjects.h"

namespace penstock::fuzz {

struct Mutant {
  std::string name;  // of the original subject
  Program startup, main;
  std::map<std::string, Tensor, std::less<>> values;
};

// A number always gives the same mutant. Some numbers give unchanged programs, which must run too.
Mutant MakeMutant(const std::vector<Subject>& subjects, std::uint64_t number);

struct RunCounts {
  int runs = 0;
  int ok = 0;  // runs without an error
};
// Runs the mutant. Any result is correct as long as the process survives and the runs end.
RunCounts RunMutant(const Mutant& mutant, std::uint64_t number);

}  // namespace penstock::fuzz
