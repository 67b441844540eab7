// Jobs that Fluid was not asked for, so that each program of the corpus meets every mode and more sizes than
// it has cases of.
#pragma once

#include <string>
#include <vector>

#include "transpiler/plan/config.h"

namespace penstock::test {

struct OtherJob {
  std::string name;  // for messages: "geo on 9"
  plan::TranspileConfig config;
};

// For each size (more pservers than slices; one of everything; parameters that are not sliced) every mode
// with pservers, with all settings that Fluid tells apart and some that it confuses; then the modes without
// pservers.
std::vector<OtherJob> OtherJobs();

// A few of them, chosen by a program's number, so that the programs share all between them: sync and geo of
// each size, and two more.
std::vector<OtherJob> OtherJobsOf(std::size_t program);

}  // namespace penstock::test
