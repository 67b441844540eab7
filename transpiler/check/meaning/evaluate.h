// Runs a program on expressions instead of tensors.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transpiler/check/meaning/expr.h"

namespace penstock::check {

// A hash map from names to values.
class NameValues {
 public:
  // Null if the name has no value. Valid until the next Set.
  const ExprId* Find(NameId name) const;
  void Set(NameId name, ExprId value);
  void Reserve(std::size_t count);
  std::size_t size() const { return used_; }

 private:
  struct Entry {
    NameId name = NameId::kNone;  // kNone: the entry is free
    ExprId value = ExprId::kNone;
  };
  // Index of the name's entry, or of the free entry that ends the search for it. There always is a free
  // entry.
  std::size_t Seek(NameId name) const;

  std::vector<Entry> table_;  // open addressing; a name's hash is its number, because numbers are dense
  std::size_t used_ = 0;
};

// Computes the expression of each variable by running ops in order.
//
//   Evaluation run(program, ops, table);
//   run.RunBlock(0);
//   run.Get("loss")    its expression
class Evaluation {
 public:
  // `outer` supplies initial values and is not changed; null for none. A variable without a value is a leaf
  // of its own name. All arguments must outlive the evaluation.
  Evaluation(const Program& program, const OpRegistry& ops, ExprTable& table,
             const Evaluation* outer = nullptr)
      : program_(program), ops_(ops), table_(table), outer_(outer) {}

  // Ignores the attribute `shape` of ops. For startup programs, where slices differ from the whole in it.
  void IgnoreShapes() { with_shape_ = false; }
  // An op that computes one of these counters only from the counter itself counts a step: its result is the
  // step's number.
  void CountSteps(const std::set<std::string>* counters) { counters_ = counters; }

  // Declares that the ops work on slice `index` of `count`: the result of an op that sums over all elements
  // is then a part of the whole sum.
  void OfSlice(std::size_t index, std::size_t count) {
    slice_ = index;
    slices_ = count;
  }

  // A table sharded by id, with the attributes that the answering pserver uses.
  struct AskedTable {
    std::string name;
    std::int64_t padding_idx = -1;
  };
  // Declares whose rows `merge` joins.
  void AsksFor(const Op& merge, AskedTable table) { asked_[&merge] = std::move(table); }

  void Set(std::string_view name, ExprId value) { values_.Set(table_.codes().Name(name), value); }
  ExprId Get(std::string_view name) { return Get(table_.codes().Name(name)); }
  ExprId Get(NameId name);
  // Null if neither this evaluation nor `outer` has set or written it.
  const ExprId* Find(std::string_view name) const {
    const NameId known = std::as_const(table_).codes().FindName(name);
    return known == NameId::kNone ? nullptr : Find(known);
  }
  const ExprId* Find(NameId name) const;

  void RunBlock(int block);
  // Runs the ops at positions [first, last) of block 0.
  void RunOps(std::size_t first, std::size_t last);
  void RunOp(const Op& op);
  // The ops that were run as expressions of their own, each with its expression, in the order of the runs.
  const std::vector<std::pair<const Op*, ExprId>>& computed() const { return computed_; }

 private:
  bool RunMessage(const Op& op);
  bool RunAlgebra(const Op& op);
  void RunLookup(std::string_view type, const std::string& ids, const std::string& table,
                 std::int64_t padding, const std::string& out);
  void RunRemoteLookup(const Op& op);
  void RunMergedLookup(const Op& op);
  bool CountsStep(const Op& op);
  void RunAny(const Op& op, const OpCode& code);
  void SetOutputs(const Op& op, const OpCode& code, ExprId value, std::set<std::string_view>& written);
  bool RunConditional(const Op& op);
  bool MayAlwaysRun(const Op& op) const;
  void SelectIf(const std::string& condition, const std::string& name, ExprId now, ExprId& mask);
  ExprId ApplyWithBlocks(const Op& op, const OpCode& code, std::vector<ExprId> args,
                         std::set<std::string_view>& written);
  void AddInner(const Op& op, std::string& label, std::vector<ExprId>& args,
                std::set<std::string_view>& written);
  std::set<std::string_view> Unchanged(const Op& op);
  bool IsOwn(int block, std::string_view name) const;
  void AddHandedOn(const Op& op, std::set<std::string_view>& unchanged) const;
  void WriteInner(int block, std::string& label, std::vector<std::string_view>& names,
                  std::unordered_map<std::string_view, std::size_t>& numbers,
                  std::set<std::string_view>& written);
  bool IsOfLoss(const Op& op) const;
  bool IsLossScale(const Op& op) const;
  bool RunShared(const Op& op);
  bool SameShape(const std::string& a, const std::string& b) const;
  // The gradient op of a lookup of these ids in `table`; in any table if `table` is empty. Null if none.
  const Op* GradientFrom(std::string_view ids, std::string_view table) const;
  std::string LookupTypeOf(const std::string& ids, const std::string& out) const;

  const Program& program_;
  const OpRegistry& ops_;
  ExprTable& table_;
  const Evaluation* outer_;
  bool with_shape_ = true;
  std::size_t slice_ = 0, slices_ = 1;
  int block_ = 0;
  std::map<std::string, double, std::less<>> shares_;  // variables that hold a share, and its value
  double loss_scale_ = 1.0;                            // factor of the loss's gradient
  const std::set<std::string>* counters_ = nullptr;
  NameValues values_;
  std::vector<std::pair<const Op*, ExprId>> computed_;
  std::vector<ExprId> args_;  // of the op that runs; a member so that its memory is reused
  std::unordered_map<const Op*, AskedTable> asked_;
  std::deque<Op> inner_;  // local lookups that replace remote ones in blocks
};

// The leaf that represents the step's number in a counter that messages advance.
ExprId StepLeaf(ExprTable& table, std::string_view counter);

}  // namespace penstock::check
