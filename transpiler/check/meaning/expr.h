// Values as canonical expressions: two variables that are computed alike are the same number here, whatever
// they are called and wherever they are computed. A new expression is looked up among those that exist, so
// equality is comparing two ids.
//
//   ExprTable table(ops, 2);
//   const ExprId w = table.Leaf("w");
//   table.Linear({{w, 0.5}, {w, 0.5}}) == w
//
// Sums, differences and scales are kept as linear combinations: the order of a sum does not count, and the
// mean over all trainers of what each computes alike is what one computes.
#pragma once

#include <algorithm>
#include <cstdint>
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

  // `trainers`: how many there are; the mean over all of them is recognised.
  ExprTable(const OpRegistry& ops, int trainers) : codes_(ops), trainers_(trainers) {}

  // Makes room at once for the values of as many ops.
  void ReserveOps(std::size_t count);
  std::size_t size() const { return nodes_.size(); }  // ids are smaller

  int trainers() const { return trainers_; }
  OpCodes& codes() { return codes_; }
  const OpCodes& codes() const { return codes_; }

  ExprId Leaf(NameId name);
  ExprId Leaf(std::string_view name) { return Leaf(codes_.Name(name)); }
  // What trainer `trainer` computes as `of` and sends.
  ExprId FromTrainer(int trainer, ExprId of);
  // What slice `slice` of `slices` has of a sum; all of them together are the sum.
  ExprId PartOf(std::size_t slice, std::size_t slices, ExprId sum);
  ExprId Linear(const std::vector<Term>& terms);
  // What all trainers compute as `each`, scaled and added up.
  ExprId SumOverTrainers(ExprId each, double scale);
  ExprId Zero() { return Linear({}); }
  // An op on these arguments, in the order of the slots' names. `label` is the number of what tells its type,
  // attributes and slots.
  ExprId Apply(const Op& op, std::int32_t label, const std::vector<ExprId>& args);
  // One output of an op; `label` is the number of OpCodes::OutputLabel.
  ExprId Output(ExprId op, std::int32_t label);

  // Where two different expressions first differ, for people: one line for each.
  std::pair<std::string, std::string> Difference(ExprId a, ExprId b) const;

 private:
  enum class Kind : std::int8_t { kLeaf, kMessage, kPart, kLinear, kOp, kOutput };
  // All that tells two expressions apart.
  struct Content {
    Kind kind = Kind::kLeaf;
    std::int32_t label = 0;  // a number of codes_; of a message the trainer, of a part the slice
    std::span<const ExprId> args;
    std::span<const double> factors;  // of a linear combination; of a part how many there are
    bool operator==(const Content& other) const;
    std::uint32_t Hash() const;
  };
  struct Node {
    Kind kind = Kind::kLeaf;
    std::int32_t label = 0;
    std::uint32_t arg_count = 0;
    std::size_t first_arg = 0, first_factor = 0;  // in args_ and factors_
    const Op* op = nullptr;                       // the first that computed it
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
  std::vector<ExprId> args_;     // of all nodes, one behind the other
  std::vector<double> factors_;  // likewise
  FlatIndex ids_;                // of nodes_
};

}  // namespace penstock::check
