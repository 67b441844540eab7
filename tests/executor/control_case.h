// Reads a case of the corpus's folder `control`: a program with blocks, arrays or rank tables, its feeds, and
// the values that Fluid 1.8.5 fetched.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "tests/support/npz.h"

namespace penstock::test {

struct ControlCase {
  std::string name;
  nlohmann::json json;
  Arrays arrays;
  Program main, startup;
};

std::string ControlFolder();
// The names of the cases that have a file with this ending; empty without the corpus.
std::vector<std::string> ControlCases(const std::string& ending = ".json");
ControlCase LoadControlCase(const std::string& name);

// The feeds of set k, with their sequence lengths.
std::vector<exec::Feed> FeedsOf(const ControlCase& c, int k);
void SetParams(const ControlCase& c, Scope& scope);

// Runs `main` with all feed sets, twice, because a run must not depend on an earlier one, and compares its
// fetches with the arrays <kind><k>:<name>. Skips feed sets without such arrays.
void ExpectRuns(const ControlCase& c, const Program& main, const std::string& kind,
                const std::vector<std::string>& names);

}  // namespace penstock::test
