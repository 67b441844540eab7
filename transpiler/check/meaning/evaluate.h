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

// The values of some names.
class NameValues {
 public:
  // Null if it has none. Until the next one is set.
  const ExprId* Find(NameId name) const;
  void Set(NameId name, ExprId value);
  void Reserve(std::size_t count);
  std::size_t size() const { return used_; }

 private:
  struct Entry {
    NameId name = NameId::kNone;  // it is free
    ExprId value = ExprId::kNone;
  };
  // Where the name is, or the free place that ends the search for it. There always is one.
  std::size_t Seek(NameId name) const;

  std::vector<Entry> table_;  // a name stands at its number, which are dense, or behind it if that is taken
  std::size_t used_ = 0;
};

class Evaluation {
 public:
  // `outer`: values that this one begins with, and that it does not change; null: none. Variables without a
  // value are leaves, called as they are. All arguments outlive the evaluation.
  Evaluation(const Program& program, const OpRegistry& ops, ExprTable& table,
             const Evaluation* outer = nullptr)
      : program_(program), ops_(ops), table_(table), outer_(outer) {}

  // Shapes of what is filled do not count: of startup programs of slices.
  void IgnoreShapes() { with_shape_ = false; }
  // Ops that advance one of these, from itself alone, count a step: their result is the step's number.
  void CountSteps(const std::set<std::string>* counters) { counters_ = counters; }

  // What is computed here is of slice `index` of `count`: what adds up all elements is a part of it.
  void OfSlice(std::size_t index, std::size_t count) {
    slice_ = index;
    slices_ = count;
  }

  // Whose rows an op puts together that were asked for by id, as the answering pserver has it.
  struct AskedTable {
    std::string name;
    std::int64_t padding_idx = -1;
  };
  void AsksFor(const Op& merge, AskedTable table) { asked_[&merge] = std::move(table); }

  void Set(std::string_view name, ExprId value) { values_.Set(table_.codes().Name(name), value); }
  ExprId Get(std::string_view name) { return Get(table_.codes().Name(name)); }
  ExprId Get(NameId name);
  // Null if it was not set or written here.
  const ExprId* Find(std::string_view name) const {
    const NameId known = std::as_const(table_).codes().FindName(name);
    return known == NameId::kNone ? nullptr : Find(known);
  }
  const ExprId* Find(NameId name) const;

  void RunBlock(int block);
  void RunOp(const Op& op);
  // Ops that have a value of their own, and what they compute before their outputs are named, in the order of
  // the runs.
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
  ExprId ApplyWithBlocks(const Op& op, const OpCode& code, std::vector<ExprId> args,
                         std::set<std::string_view>& written);
  void AddInner(const Op& op, std::string& label, std::vector<ExprId>& args,
                std::set<std::string_view>& written);
  std::set<std::string_view> Unchanged(const Op& op);
  bool IsOwn(int block, std::string_view name) const;
  void AddHandedOn(const Op& op, std::set<std::string_view>& unchanged) const;
  void WriteInner(int block, std::string& label, std::vector<std::string_view>& names,
                  std::unordered_map<std::string_view, std::size_t>& numbers,
                  std::set<std::string_view>& written) const;
  bool IsOfLoss(const Op& op) const;
  bool IsLossScale(const Op& op) const;
  bool RunShared(const Op& op);
  bool SameShape(const std::string& a, const std::string& b) const;
  // The gradient op of a lookup of these ids; of any table if this one is not known.
  const Op* GradientFrom(std::string_view ids, std::string_view table) const;
  std::string LookupTypeOf(const std::string& ids, const std::string& out) const;

  const Program& program_;
  const OpRegistry& ops_;
  ExprTable& table_;
  const Evaluation* outer_;
  bool with_shape_ = true;
  std::size_t slice_ = 0, slices_ = 1;
  int block_ = 0;
  std::map<std::string, double, std::less<>> shares_;  // variables that hold a share, and how much it is
  double loss_scale_ = 1.0;                            // of the gradient that the backward ops begin with
  const std::set<std::string>* counters_ = nullptr;
  NameValues values_;
  std::vector<std::pair<const Op*, ExprId>> computed_;
  std::vector<ExprId> args_;  // of the op that runs; kept for its room
  std::unordered_map<const Op*, AskedTable> asked_;
  std::deque<Op> made_;  // ops that others stand for
};

// What the number of a step is, where steps are counted by messages.
ExprId StepLeaf(ExprTable& table, std::string_view counter);

}  // namespace penstock::check
