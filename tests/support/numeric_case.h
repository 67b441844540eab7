// Ten-step trainings that Fluid 1.8.5 ran on one machine: its programs, initial values, feeds and results.
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
  Arrays golden;  // what Fluid computed: see the corpus's README
};

using NumericNames = std::vector<std::pair<std::string, std::string>>;  // (model, optimizer)

// Every case of which there are numbers, sorted. NumericFolder() + "linear/sgd.main.pb" is a file of one.
std::string NumericFolder();
NumericNames AllNumericCases();
NumericCase ReadNumericCase(const std::string& model, const std::string& optimizer);
std::vector<exec::Feed> FeedsOfStep(const NumericCase& c, int step);

}  // namespace penstock::test
