// The two JSON files that go with a program: what it does not say itself (program.json) and how it is to be
// distributed (case.json). Their layout is that of the corpus; keys that are not named here are not looked
// at.
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
  std::string program;                       // id of the program it is for
  std::map<std::string, std::string> files;  // role file ("trainer.pb") -> its name on disk ("trainer.pb.gz")
  bool expects_errors = false;               // Fluid 1.8.5 fails on it somewhere
  // The name on disk; the role file's own if the case has none.
  const std::string& FileOf(const std::string& role) const;
};

// Dispatchers that a caller can supply for other words of `split_method` than ours.
using Dispatchers = std::map<std::string, plan::DispatcherFactory, std::less<>>;

// Changes the settings under "config" before the trainers' addresses are read, which only some settings need.
using Override = std::function<Status(plan::TranspileConfig&)>;

// kInvalidArgument E-case: no JSON, a key of another type, a word that is not known; says which key. An error
// of `override` is returned as it is.
Result<CaseFile> ParseCase(std::string_view json, const Dispatchers& dispatchers = {},
                           const Override& override = nullptr);

// Writes trainable, is_distributed and learning_rate of each parameter, and random_seed, into both programs.
Status ApplyFacts(std::string_view json, Program& main, Program& startup);

}  // namespace penstock
