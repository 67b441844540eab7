// Reads trainings of ten steps that Fluid 1.8.5 ran on one machine: programs, initial values, feeds and
// results.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/ir/program.h"
#include "tests/support/npz.h"

namespace penstock::test {

inline constexpr int kNumericSteps = 10;

struct NumericCase {
  std::string loss;                // the variable
  std::vector<std::string> feeds;  // names
  Program startup, main;
  Arrays start;   // values of parameters, set after the startup program
  Arrays values;  // of all feeds
  Arrays golden;  // Fluid's results; the corpus's README describes them
};

using NumericNames = std::vector<std::pair<std::string, std::string>>;  // (model, optimizer)

// All cases with results, sorted. A case has files such as NumericFolder() + "linear/sgd.main.pb".
std::string NumericFolder();
NumericNames AllNumericCases();
NumericCase ReadNumericCase(const std::string& model, const std::string& optimizer);
std::vector<exec::Feed> FeedsOfStep(const NumericCase& c, int step);

}  // namespace penstock::test
