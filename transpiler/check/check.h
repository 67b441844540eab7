// Proves from the programs alone that a set of role programs fits together. Nothing here looks at a plan, and
// nothing is read out of a name: what belongs together follows from who sends to whom, which op reads what,
// and in which order.
//
//   RoleFiles roles = ...;                       // one value per file
//   CheckReport report = CheckRoles(roles, ops);
//   if (report.errors() > 0) std::cerr << report.ToString();
//
// An error says that the set hangs, cannot run, or leaves a parameter untrained or wrongly trained; a warning
// is about what runs but is probably not meant; a note says what was assumed.
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

// Trainers and pservers in the order of their numbers. A startup program may be missing (an empty vector);
// if there are some, startup program i belongs to program i.
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
  std::string file;                  // of the role program it is about
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

// What the set was made of: with it, the set must compose to it, up to the order of sums and the merge.
struct SourcePrograms {
  const Program& main;
  const Program& startup;
};

struct CheckOptions {
  const SourcePrograms* source = nullptr;
  // Each program has passed VerifyProgram, as what the pass manager made has.
  bool verified = false;
  // Changes speed alone; null: the caller's thread.
  ThreadPool* threads = nullptr;
};

// Cost: linear in the size of the programs.
CheckReport CheckRoles(const RoleFiles& roles, const OpRegistry& ops, const CheckOptions& options = {});

}  // namespace penstock::check
