// What a rule of the verifier sees, and where it puts what it finds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/verify/verifier.h"

namespace penstock {

// The declaration that an argument means.
struct Declaration {
  const Var* var = nullptr;  // null: there is none, or the argument is no name
  std::int32_t here = -1;    // where it stands among the variables of the op's own block; -1: not there
  bool missing = false;      // a name that nothing declares
};

// Of every argument of a block's ops, by the op's position: what the rules ask, without a walk over the ops.
class Declarations {
 public:
  Declarations(const Program& program, int block);

  bool Complete() const { return complete_; }  // none is missing
  // In the order of the op's slots and of each slot's arguments.
  std::span<const Declaration> InputsOf(std::size_t op) const { return Between(2 * op, 2 * op + 1); }
  std::span<const Declaration> OutputsOf(std::size_t op) const { return Between(2 * op + 1, 2 * op + 2); }
  std::span<const Declaration> ArgumentsOf(std::size_t op) const {  // inputs, then outputs
    return Between(2 * op, 2 * op + 2);
  }

 private:
  void LookUp(const Program& program, int block, std::span<const std::string_view> names);
  std::span<const Declaration> Between(std::size_t i, std::size_t j) const {
    return std::span(all_).subspan(begins_[i], begins_[j] - begins_[i]);
  }

  std::vector<Declaration> all_;
  std::vector<std::size_t> begins_;  // of each op's inputs and of its outputs in all_; where all end
  bool complete_ = true;
};

class VerifyScene {
 public:
  VerifyScene(const Program& program, const VerifyOptions& options);

  const Program& program() const { return program_; }
  const OpRegistry* ops() const { return options_.ops; }
  // Whether all of the program is checked, not just what a pass has touched.
  bool Whole() const { return options_.before == nullptr; }
  // False for an op that the program before the pass already held, in the same block.
  bool Touched(const Block& block, const OpEntry& entry) const;

  // Looked up once for all rules.
  const Declarations& DeclarationsIn(int block);

  // True for a block of the program before the pass that no op enters, or none any more: it stays for its
  // index alone.
  bool LeftBehind(int block) const { return left_behind_.contains(block); }

  // Ops that break their schema: what their shapes are makes no sense to ask.
  void NoteMalformed(const Op& op) { malformed_.insert(&op); }
  bool WellFormed(const Op& op) const { return !malformed_.contains(&op); }

  // Temporaries that are declared bool, as Fluid declares those whose element type it has not inferred, and
  // what they hold by the op that writes them; nothing if no one knows.
  void NoteHeld(const Var& var, std::optional<DType> held) {
    held ? void(held_.emplace(&var, *held)) : void(untold_.insert(&var));
  }
  bool IsUntold(const Var& var) const { return untold_.contains(&var); }
  DType HeldBy(const Var& var) const {
    const auto held = held_.find(&var);
    return held == held_.end() ? var.type->dtype : held->second;
  }

  void Add(Status violation);
  // With the op, its arguments and its place below the message.
  void AddAt(Status violation, const Block& block, std::size_t position);
  bool Full() const { return violations_.size() >= options_.findings_max; }
  std::vector<Status> TakeViolations() { return std::move(violations_); }

 private:
  const Program& program_;
  const VerifyOptions& options_;
  std::unordered_set<const Op*> malformed_;  // asked, never walked
  std::set<int> left_behind_;
  std::unordered_map<const Var*, DType> held_;  // asked, never walked
  std::unordered_set<const Var*> untold_;
  std::vector<std::optional<Declarations>> declarations_;  // by block
  std::vector<Status> violations_;
};

bool IsName(std::string_view arg);  // not empty, nor what stands for none

// The blocks that an attribute names; none if it names no blocks.
std::span<const BlockRef> BlocksOf(const Attr& attr);

// The rules, by what they look at.
void CheckBlockParents(VerifyScene& scene);  // rules_blocks.cc
void CheckBlockReferences(VerifyScene& scene);
void CheckDeclared(VerifyScene& scene);  // rules_names.cc
void CheckWrittenBeforeRead(VerifyScene& scene);
void CheckSentOnce(VerifyScene& scene);
void CheckSchemas(VerifyScene& scene);  // rules_ops.cc
void CheckShapes(VerifyScene& scene);

}  // namespace penstock
