// A mutated program, run as a caller would: startup program, state, several steps with other feeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/executor/subjects.h"

namespace penstock::fuzz {

struct Mutant {
  std::string name;  // of the subject it came from
  Program startup, main;
  std::map<std::string, Tensor, std::less<>> values;
};

// The same for the same number. Without changes where `number` says so: what is not mutated has to run too.
Mutant MakeMutant(const std::vector<Subject>& subjects, std::uint64_t number);

struct RunCounts {
  int runs = 0;
  int ok = 0;  // of them
};
// Whatever happens is right, as long as the process lives and the runs end.
RunCounts RunMutant(const Mutant& mutant, std::uint64_t number);

}  // namespace penstock::fuzz
