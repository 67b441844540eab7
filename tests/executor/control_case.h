// A case of the corpus's control folder: a program with blocks, arrays or rank tables, what was fed, and what
// Fluid 1.8.5 fetched.
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
// Those that have a file with this ending; none where the corpus is not beside the checkout.
std::vector<std::string> ControlCases(const std::string& ending = ".json");
ControlCase LoadControlCase(const std::string& name);

// The feeds of set k, with their sequence lengths.
std::vector<exec::Feed> FeedsOf(const ControlCase& c, int k);
void SetParams(const ControlCase& c, Scope& scope);

// Runs `main` with all feed sets, twice (the second time nothing of the first may be left), and compares what
// it fetches with the arrays <kind><k>:<name>; a set without them is passed over.
void ExpectRuns(const ControlCase& c, const Program& main, const std::string& kind,
                const std::vector<std::string>& names);

}  // namespace penstock::test
