// The input of the verifier's rules, and the collector of their findings.
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

// The declaration that an argument refers to.
struct Declaration {
  const Var* var = nullptr;  // null: undeclared, or the argument is no name
  std::int32_t here = -1;    // its position in the op's own block; -1: not declared there
  bool missing = false;      // a name without a declaration
};

// The declarations of all arguments of a block's ops, by the op's position, so that rules need no look-ups.
class Declarations {
 public:
  Declarations(const Program& program, int block);

  bool Complete() const { return complete_; }  // every name is declared
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
  std::vector<std::size_t> begins_;  // where each op's inputs and outputs begin in all_; then the end
  bool complete_ = true;
};

class VerifyScene {
 public:
  VerifyScene(const Program& program, const VerifyOptions& options);

  const Program& program() const { return program_; }
  const OpRegistry* ops() const { return options_.ops; }
  // True if the whole program is checked, false if only the ops that a pass has touched.
  bool Whole() const { return options_.before == nullptr; }
  // False for an op that the program before the pass already had, in the same block.
  bool Touched(const Block& block, const OpEntry& entry) const;

  // Computed once for all rules.
  const Declarations& DeclarationsIn(int block);

  // True for a block that existed before the pass and that no op runs any more. It remains only so that the
  // indices of other blocks do not change.
  bool LeftBehind(int block) const { return left_behind_.contains(block); }

  // Records an op that violates its schema: shape inference for it is skipped.
  void NoteMalformed(const Op& op) { malformed_.insert(&op); }
  bool WellFormed(const Op& op) const { return !malformed_.contains(&op); }

  // Records the element type that the writer of a temporary gives it (nullopt: unknown), if the temporary is
  // declared bool because Fluid has not inferred its type.
  void NoteHeld(const Var& var, std::optional<DType> held) {
    held ? void(held_.emplace(&var, *held)) : void(untold_.insert(&var));
  }
  bool IsUntold(const Var& var) const { return untold_.contains(&var); }
  DType HeldBy(const Var& var) const {
    const auto held = held_.find(&var);
    return held == held_.end() ? var.type->dtype : held->second;
  }

  void Add(Status violation);
  // Adds a violation, with the op, its arguments and its place below the message.
  void AddAt(Status violation, const Block& block, std::size_t position);
  bool Full() const { return violations_.size() >= options_.findings_max; }
  std::vector<Status> TakeViolations() { return std::move(violations_); }

 private:
  const Program& program_;
  const VerifyOptions& options_;
  std::unordered_set<const Op*> malformed_;  // looked up, never iterated
  std::set<int> left_behind_;
  std::unordered_map<const Var*, DType> held_;  // looked up, never iterated
  std::unordered_set<const Var*> untold_;
  std::vector<std::optional<Declarations>> declarations_;  // by block
  std::vector<Status> violations_;
};

bool IsName(std::string_view arg);  // false for "" and for the placeholder of a missing argument

// The blocks that an attribute names; empty if it names none.
std::span<const BlockRef> BlocksOf(const Attr& attr);

// The rules, by subject.
void CheckBlockParents(VerifyScene& scene);  // rules_blocks.cc
void CheckBlockReferences(VerifyScene& scene);
void CheckDeclared(VerifyScene& scene);  // rules_names.cc
void CheckWrittenBeforeRead(VerifyScene& scene);
void CheckSentOnce(VerifyScene& scene);
void CheckSchemas(VerifyScene& scene);  // rules_ops.cc
void CheckShapes(VerifyScene& scene);

}  // namespace penstock
