// Proves, from the programs alone, that a set of role programs fits together. The check takes no placement
// from a plan and parses no name: it derives all connections from who sends to whom, which op reads which
// variable, and the order of the ops.
//
//   RoleFiles roles = ...;                       // one value per file
//   CheckReport report = CheckRoles(roles, ops);
//   if (report.errors() > 0) std::cerr << report.ToString();
//
// An error means that the set hangs, cannot run, or leaves a parameter untrained or wrongly trained. A
// warning reports something that runs but is probably not intended. A note states an assumption of the check.
#pragma once

#include <string>
#include <vector>

#include "framework/base/thread_pool.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock::check {

// One serialized program and where it came from ("trainer_t1.pb").
struct RoleProgram {
  std::string file;
  Program program;
};

// Trainers and pservers in the order of their numbers. Startup programs may be missing (an empty vector);
// otherwise startup program i belongs to program i.
struct RoleFiles {
  std::vector<RoleProgram> trainers;
  std::vector<RoleProgram> trainer_startups;
  std::vector<RoleProgram> pservers;
  std::vector<RoleProgram> pserver_startups;

  // Every program of the set, in the order above. Valid until a vector changes.
  std::vector<const RoleProgram*> All() const;
  std::vector<RoleProgram*> All();
};

enum class Severity { kNote, kWarning, kError };

struct Finding {
  Severity severity = Severity::kError;
  std::string id;                    // "E-check-not-received"
  std::string file;                  // the role program that it concerns
  std::string message;               // one line: the rule, with both values
  std::vector<std::string> details;  // the op as printed, its place, the user's line
  std::string ToString() const;
};

struct CheckReport {
  std::vector<Finding> findings;  // in the order of the rules, then of the files
  int Count(Severity severity) const;
  int errors() const { return Count(Severity::kError); }
  std::string ToString() const;  // every finding, then a line that counts them
};

// The user's programs that the set was made from. If given, the set as a whole must compute what they
// compute, up to the order of sums and the merging of gradients.
struct SourcePrograms {
  const Program& main;
  const Program& startup;
};

struct CheckOptions {
  const SourcePrograms* source = nullptr;
  // Skips VerifyProgram and the check of carried plans: for results of the pass manager, which verifies them.
  bool verified = false;
  // Runs rules in parallel; the report is the same. Null: the caller's thread.
  ThreadPool* threads = nullptr;
};

// Never fails: programs that cannot be read become findings. Cost: linear in the size of the programs.
CheckReport CheckRoles(const RoleFiles& roles, const OpRegistry& ops, const CheckOptions& options = {});

}  // namespace penstock::check
