// The facts that all role programs of one transpile share, as text: ProgramMeta::job_facts. Each line is a
// statement about the job; its first word names the part, which may have several lines.
//
//   works in mode sync with backup_trainers 1
//   has random seed 1, of the startup program 1
//   updates b, w with adam, learning rate 0.001
//   compresses w with two_bit 0.5
//   starts b with fill_constant
//   starts w with uniform_random {max=0.5, min=-0.5}
//   trains by 21 ops, digest 52c0ffbe31a1c5d6
//
// The transpiler writes it (transpiler/pipeline/describe_job.h); trainers and pservers compare it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock {

struct JobDifference {
  std::string here, there;  // "updates w with adam", "updates w with sgd"
};

// Returns the first lines in which two jobs differ. nullopt if the facts are equal, or if one is empty,
// because a program made by another tool has no facts.
std::optional<JobDifference> FirstJobDifference(std::string_view here, std::string_view there);

// "sync" for facts that begin as above; empty without facts.
std::string_view ModeOfJob(std::string_view facts);

// Returns only the facts that are equal on all ranks even if each rank has its own seeds and initial values:
// mode, updates and compression.
std::string JobFactsOfAllRanks(std::string_view facts);

}  // namespace penstock
