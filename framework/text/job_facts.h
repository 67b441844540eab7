// What all role programs of one transpile share, in words: ProgramMeta::job_facts. Each line is a sentence
// about the job whose first word says which part of it is meant; a part may have several lines.
//
//   works in mode sync with backup_trainers 1
//   has random seed 1, of the startup program 1
//   updates b, w with adam, learning rate 0.001
//   compresses w with two_bit 0.5
//   starts b with fill_constant
//   starts w with uniform_random {max=0.5, min=-0.5}
//   trains by 21 ops, digest 52c0ffbe31a1c5d6
//
// The transpiler writes them (transpiler/pipeline/describe_job.h), trainers and pservers compare them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock {

struct JobDifference {
  std::string here, there;  // "updates w with adam", "updates w with sgd"
};

// The first lines in which two jobs differ. Nothing if they are the same, or if one of them is empty: a
// program that another tool made says nothing of its job.
std::optional<JobDifference> FirstJobDifference(std::string_view here, std::string_view there);

// Those that ranks have in common although each may have seeds and initial values of its own: mode, updates
// and compression.
std::string JobFactsOfAllRanks(std::string_view facts);

}  // namespace penstock
