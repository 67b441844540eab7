// Additional jobs, so that each program of the corpus is tested with every mode and with more sizes than its
// cases have.
#pragma once

#include <string>
#include <vector>

#include "transpiler/plan/config.h"

namespace penstock::test {

struct OtherJob {
  std::string name;  // for messages: "geo on 9"
  plan::TranspileConfig config;
};

// For each size (more pservers than slices; one pserver and one trainer; unsliced parameters) every mode with
// pservers, with all settings that Fluid distinguishes and some that it confuses; then the modes without
// pservers.
std::vector<OtherJob> OtherJobs();

// A subset chosen by the index of a program, so that all programs together run all jobs: sync and geo of each
// size, and two more.
std::vector<OtherJob> OtherJobsOf(std::size_t program);

}  // namespace penstock::test
