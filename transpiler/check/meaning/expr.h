// Values as canonical expressions (hash consing): two variables that are computed alike have the same id,
// whatever their names and wherever they are computed. A new expression is looked up among the existing ones,
// so that testing equality means comparing two ids.
//
//   ExprTable table(ops, 2);
//   const ExprId w = table.Leaf("w");
//   table.Linear({{w, 0.5}, {w, 0.5}}) == w
//
// Sums, differences and scales are linear combinations: the order of a sum does not count, and the mean over
// all trainers of a value that each computes alike is that value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/flat_index.h"
#include "transpiler/check/facts/op_codes.h"

namespace penstock::check {

enum class ExprId : std::int32_t { kNone = -1 };

class ExprTable {
 public:
  struct Term {
    ExprId of;
    double factor;
  };

  // `trainers` is their number; the table recognises the mean over all of them.
  ExprTable(const OpRegistry& ops, int trainers) : codes_(ops), trainers_(trainers) {}

  // Reserves memory for the values of `count` ops.
  void ReserveOps(std::size_t count);
  std::size_t size() const { return nodes_.size(); }  // every id is below it

  int trainers() const { return trainers_; }
  OpCodes& codes() { return codes_; }
  const OpCodes& codes() const { return codes_; }

  ExprId Leaf(NameId name);
  ExprId Leaf(std::string_view name) { return Leaf(codes_.Name(name)); }
  // The value of `of` that trainer `trainer` computes and sends.
  ExprId FromTrainer(int trainer, ExprId of);
  // The part of a sum over slice `slice` of `slices`; all parts add up to `sum`.
  ExprId PartOf(std::size_t slice, std::size_t slices, ExprId sum);
  // The sum of the terms, each times its factor.
  ExprId Linear(const std::vector<Term>& terms);
  // The sum over all trainers of `scale` times their values of `each`.
  ExprId SumOverTrainers(ExprId each, double scale);
  ExprId Zero() { return Linear({}); }
  // An op applied to `args`, which are in the order of the slots' names. `label` is OpCode::label,
  // which identifies type, attributes and slots.
  ExprId Apply(const Op& op, std::int32_t label, const std::vector<ExprId>& args);
  // Keeps an op that no program has, for Apply, which refers to it.
  const Op& Keep(Op op) { return kept_.emplace_back(std::move(op)); }
  // One output of an op; `label` is the number of OpCodes::OutputLabel.
  ExprId Output(ExprId op, std::int32_t label);

  // A printed line for each of two expressions, at the first place where they differ.
  std::pair<std::string, std::string> Difference(ExprId a, ExprId b) const;

 private:
  enum class Kind : std::int8_t { kLeaf, kMessage, kPart, kLinear, kOp, kOutput };
  // The identity of an expression.
  struct Content {
    Kind kind = Kind::kLeaf;
    std::int32_t label = 0;  // a number of codes_; message: the trainer; part: the slice
    std::span<const ExprId> args;
    std::span<const double> factors;  // linear combination: its factors; part: the number of slices
    bool operator==(const Content& other) const;
    std::uint32_t Hash() const;
  };
  struct Node {
    Kind kind = Kind::kLeaf;
    std::int32_t label = 0;
    std::uint32_t arg_count = 0;
    std::size_t first_arg = 0, first_factor = 0;  // in args_ and factors_
    const Op* op = nullptr;                       // the first op that computed it
  };

  const Node& At(ExprId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  Content ContentOf(const Node& node) const;
  Content ContentOf(ExprId id) const { return ContentOf(At(id)); }
  ExprId Add(const Content& content, const Op* op = nullptr);
  void CollectMeans(std::vector<Term>& terms) const;
  void CollectParts(std::vector<Term>& terms) const;
  static void Normalize(std::vector<Term>& terms);
  std::string Describe(ExprId id, int depth) const;

  OpCodes codes_;
  int trainers_;
  std::vector<Node> nodes_;
  std::vector<ExprId> args_;     // of all nodes, concatenated
  std::vector<double> factors_;  // likewise
  FlatIndex ids_;                // of nodes_
  std::deque<Op> kept_;
};

}  // namespace penstock::check
