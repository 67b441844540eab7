// Reads the two JSON files that accompany a program: properties that the program does not contain
// (program.json), and how to distribute it (case.json). This folder's README lists the keys.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/plan/config.h"

namespace penstock {

struct CaseFile {
  plan::TranspileConfig config;
  std::string program;                       // id of the program that the case distributes
  std::map<std::string, std::string> files;  // role file ("trainer.pb") -> its name on disk ("trainer.pb.gz")
  bool expects_errors = false;               // Fluid 1.8.5 fails for some role of this case
  // The name on disk of a role file; `role` itself if the case names no other.
  const std::string& FileOf(const std::string& role) const;
};

// User-supplied dispatchers for further values of `split_method`, by name.
using Dispatchers = std::map<std::string, plan::DispatcherFactory, std::less<>>;

// Changes the settings of "config" before ParseCase reads the trainers' addresses, because the settings
// decide whether it reads them.
using Override = std::function<Status(plan::TranspileConfig&)>;

// Parses case.json. kInvalidArgument E-case: not JSON, a value of a wrong type, an unknown word; names the
// key. An error of `override` is returned unchanged.
Result<CaseFile> ParseCase(std::string_view json, const Dispatchers& dispatchers = {},
                           const Override& override = nullptr);

// Applies program.json: sets random_seed, and trainable, is_distributed and learning_rate of each parameter,
// in both programs, and marks the feeds in `main`. kInvalidArgument E-case.
Status ApplyFacts(std::string_view json, Program& main, Program& startup);

}  // namespace penstock
