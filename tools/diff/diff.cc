#include "tools/diff/diff.h"

#include <algorithm>
#include <set>

#include "framework/base/strings.h"
#include "tools/diff/common_subsequence.h"
#include "tools/diff/plain_form.h"

namespace penstock::tools {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct OpLine {
  const Op* op;
  std::string text;
};

class Comparison {
 public:
  Comparison(const OpRegistry& ops, const Program& a, const Program& b)
      : a_(a), b_(b), plain_a_(ops, a), plain_b_(ops, b) {}

  ProgramDiff Run() {
    CompareHead();
    for (int block = 0; block < std::max(a_.block_count(), b_.block_count()); ++block) {
      section_ = StrCat("block ", block, "\n");
      if (block >= a_.block_count() || block >= b_.block_count()) {
        const bool left = block < a_.block_count();
        const Block& only = (left ? a_ : b_).block(block);
        Other(StrCat(left ? "- " : "+ ", "block ", block, " in ", only.parent(), ", with ", only.ops().size(),
                     " ops"));
        continue;
      }
      if (a_.block(block).parent() != b_.block(block).parent()) {
        Other(StrCat("- in block ", a_.block(block).parent()));
        out_.text += StrCat("+ in block ", b_.block(block).parent(), "\n");
      }
      CompareVars(block);
      CompareOps(block);
    }
    return std::move(out_);
  }

 private:
  // Printed below the heading of its block, which appears only if something differs.
  void Line(const std::string& line) {
    out_.text += section_ + line + "\n";
    section_.clear();
  }
  void Other(const std::string& line) {
    ++out_.other;
    Line(line);
  }

  void CompareHead() {
    const auto differ = [this](std::string_view what, const auto& left, const auto& right) {
      if (left == right) return;
      Other(StrCat("- ", what, " ", left));
      Line(StrCat("+ ", what, " ", right));
    };
    section_ = "program\n";
    differ("version", a_.meta().version.value_or(0), b_.meta().version.value_or(0));
    differ("random_seed", a_.meta().random_seed, b_.meta().random_seed);
    const auto policies = [](const Program& program) {
      std::string text;
      for (const auto& [name, value] : program.meta().policies) text += StrCat(name, "=", value, " ");
      return text;
    };
    differ("policies", policies(a_), policies(b_));
    ComparePlans();
  }

  // Reports only the first line that differs.
  void ComparePlans() {
    const std::vector<std::string> left = Split(a_.meta().plan, '\n');
    const std::vector<std::string> right = Split(b_.meta().plan, '\n');
    const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
    if (l == left.end() && r == right.end()) return;
    const auto line = [](auto it, const auto& plan) { return it == plan.end() ? std::string("ends") : *it; };
    Other(StrCat("- plan, line ", l - left.begin() + 1, ": ", line(l, left)));
    Line(StrCat("+ plan, line ", r - right.begin() + 1, ": ", line(r, right)));
  }

  void CompareVars(int block) {
    const auto left = plain_a_.VarTexts(block), right = plain_b_.VarTexts(block);
    std::set<std::string> names;
    for (const auto& [name, text] : left) names.insert(name);
    for (const auto& [name, text] : right) names.insert(name);
    for (const std::string& name : names) {
      const auto l = left.find(name), r = right.find(name);
      if (l != left.end() && r != right.end() && l->second == r->second) continue;
      ++out_.vars;
      if (l != left.end()) Line(StrCat("- ", l->second));
      if (r != right.end()) Line(StrCat("+ ", r->second));
    }
  }

  static std::vector<OpLine> Lines(const PlainForm& plain, const Block& block) {
    std::vector<OpLine> lines;
    for (const OpEntry& entry : block.ops()) lines.push_back({entry.op.get(), plain.OpText(*entry.op)});
    return lines;
  }

  void CompareOps(int block) {
    left_ = Lines(plain_a_, a_.block(block));
    right_ = Lines(plain_b_, b_.block(block));
    std::vector<std::string> left, right;
    for (const OpLine& line : left_) left.push_back(line.text);
    for (const OpLine& line : right_) right.push_back(line.text);
    std::size_t i = 0, j = 0;
    for (const auto& [l, r] : CommonSubsequence(left, right)) {
      Gap(i, l, j, r);
      i = l + 1;
      j = r + 1;
    }
    Gap(i, left_.size(), j, right_.size());
  }

  // Ops [i, i_end) of the first program are in the place of [j, j_end) of the second.
  void Gap(std::size_t i, std::size_t i_end, std::size_t j, std::size_t j_end) {
    while (i < i_end || j < j_end) {
      // The next op of the second program with the type of op i; the ops before it are only in the second
      // program.
      std::size_t match = kNone;
      for (std::size_t at = j; i < i_end && at < j_end && match == kNone; ++at) {
        if (right_[at].op->type() == left_[i].op->type()) match = at;
      }
      if (i < i_end && match == kNone) {
        ++out_.ops;
        Line(StrCat("- op ", i, ": ", left_[i].text));
        ++i;
        continue;
      }
      for (; j < std::min(match, j_end); ++j) {
        ++out_.ops;
        Line(StrCat("+ op ", j, ": ", right_[j].text));
      }
      if (match == kNone) continue;
      ++out_.ops;
      Line(StrCat("- op ", i, ": ", left_[i].text));
      Line(StrCat("+ op ", j, ": ", right_[j].text));
      Line(StrCat("= they differ in ", Join(Differing(i, j), ", ")));
      ++i;
      ++j;
    }
  }

  // The names of slots and attributes that differ or are in only one of two ops.
  std::vector<std::string> Differing(std::size_t i, std::size_t j) const {
    const Op left = plain_a_.PlainOp(*left_[i].op), right = plain_b_.PlainOp(*right_[j].op);
    std::vector<std::string> names;
    const auto slots = [&names](const std::vector<Slot>& one, const std::vector<Slot>& other) {
      std::map<std::string, std::vector<std::string>> l, r;
      for (const Slot& slot : one) l.emplace(slot.name, slot.args);
      for (const Slot& slot : other) r.emplace(slot.name, slot.args);
      for (const auto& [name, args] : l) {
        if (!r.contains(name) || r.at(name) != args) names.push_back(name);
      }
      for (const auto& [name, args] : r) {
        if (!l.contains(name)) names.push_back(name);
      }
    };
    slots(left.outputs(), right.outputs());
    slots(left.inputs(), right.inputs());
    std::set<std::string> attrs;
    for (const auto* op : {&left, &right}) {
      for (const NamedAttr& attr : op->attrs()) attrs.insert(attr.name);
    }
    for (const std::string& name : attrs) {
      const Attr* l = left.FindAttr(name);
      const Attr* r = right.FindAttr(name);
      if (l == nullptr || r == nullptr || *l != *r) names.push_back(name);
    }
    return names;
  }

  const Program& a_;
  const Program& b_;
  PlainForm plain_a_, plain_b_;
  std::vector<OpLine> left_, right_;
  std::string section_;  // the heading, until it is printed
  ProgramDiff out_;
};

std::string Counted(int count, std::string_view what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

ProgramDiff DiffPrograms(const OpRegistry& ops, const Program& a, const Program& b) {
  return Comparison(ops, a, b).Run();
}

std::string CountText(const ProgramDiff& diff) {
  std::vector<std::string> parts;
  if (diff.ops > 0) parts.push_back(Counted(diff.ops, "op"));
  if (diff.vars > 0) parts.push_back(Counted(diff.vars, "variable"));
  if (diff.other > 0) parts.push_back(Counted(diff.other, "other thing"));
  if (parts.empty()) return "nothing differs";
  return StrCat(Join(parts, ", "), diff.ops + diff.vars + diff.other == 1 ? " differs" : " differ");
}

}  // namespace penstock::tools
