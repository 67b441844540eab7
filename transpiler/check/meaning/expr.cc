#include "transpiler/check/meaning/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "framework/text/printer.h"

namespace penstock::check {
namespace {

constexpr int kFactorBits = 48;  // precision of a product of two single-precision factors
constexpr int kDescribeDepth = 3;

// Drops the last bits, in which N times 1/N differs from 1.
double Rounded(double factor) {
  int exponent = 0;
  const double part = std::frexp(factor, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(part, kFactorBits)), exponent - kFactorBits);
}

// One step of a hash over 64-bit words.
std::uint64_t Mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

bool ExprTable::Content::operator==(const Content& other) const {
  const auto bits = [](double factor) { return std::bit_cast<std::uint64_t>(factor); };
  return kind == other.kind && label == other.label && std::ranges::equal(args, other.args) &&
         std::ranges::equal(factors, other.factors, {}, bits, bits);
}

std::uint32_t ExprTable::Content::Hash() const {
  std::uint64_t hash = Mixed(static_cast<std::uint64_t>(kind), static_cast<std::uint32_t>(label));
  for (const ExprId arg : args) hash = Mixed(hash, static_cast<std::uint64_t>(arg));
  for (const double factor : factors) hash = Mixed(hash, std::bit_cast<std::uint64_t>(factor));
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

ExprTable::Content ExprTable::ContentOf(const Node& node) const {
  const bool weighted = node.kind == Kind::kLinear || node.kind == Kind::kPart;
  const std::size_t factors = weighted ? node.arg_count : 0;
  return {.kind = node.kind,
          .label = node.label,
          .args = std::span(args_).subspan(node.first_arg, node.arg_count),
          .factors = std::span(factors_).subspan(node.first_factor, factors)};
}

ExprId ExprTable::Add(const Content& content, const Op* op) {
  const std::uint32_t hash = content.Hash();
  const std::int64_t known =
      ids_.Find(hash, [&](std::size_t position) { return ContentOf(nodes_[position]) == content; });
  if (known >= 0) return static_cast<ExprId>(known);
  ids_.Add(hash, nodes_.size());
  nodes_.push_back({.kind = content.kind,
                    .label = content.label,
                    .arg_count = static_cast<std::uint32_t>(content.args.size()),
                    .first_arg = args_.size(),
                    .first_factor = factors_.size(),
                    .op = op});
  args_.insert(args_.end(), content.args.begin(), content.args.end());
  factors_.insert(factors_.end(), content.factors.begin(), content.factors.end());
  return static_cast<ExprId>(nodes_.size() - 1);
}

void ExprTable::ReserveOps(std::size_t count) {
  constexpr std::size_t kExprs = 2, kArgs = 4;  // typical per op: the op and one output; arguments
  nodes_.reserve(kExprs * count);
  ids_.Reserve(kExprs * count);
  args_.reserve(kArgs * count);
  codes_.Reserve(count);
}

ExprId ExprTable::Leaf(NameId name) {
  return Add({.kind = Kind::kLeaf, .label = static_cast<std::int32_t>(name)});
}

ExprId ExprTable::FromTrainer(int trainer, ExprId of) {
  return Add({.kind = Kind::kMessage, .label = trainer, .args = {&of, 1}});
}

ExprId ExprTable::PartOf(std::size_t slice, std::size_t slices, ExprId sum) {
  const auto count = static_cast<double>(slices);
  return Add({.kind = Kind::kPart,
              .label = static_cast<std::int32_t>(slice),
              .args = {&sum, 1},
              .factors = {&count, 1}});
}

ExprId ExprTable::Apply(const Op& op, std::int32_t label, const std::vector<ExprId>& args) {
  return Add({.kind = Kind::kOp, .label = label, .args = args}, &op);
}

ExprId ExprTable::Output(ExprId op, std::int32_t label) {
  return Add({.kind = Kind::kOutput, .label = label, .args = {&op, 1}}, At(op).op);
}

void ExprTable::Normalize(std::vector<Term>& terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.of < b.of; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (kept > 0 && terms[kept - 1].of == terms[i].of) {
      terms[kept - 1].factor += terms[i].factor;
    } else {
      terms[kept++] = terms[i];
    }
  }
  terms.resize(kept);
  for (Term& term : terms) term.factor = Rounded(term.factor);
  std::erase_if(terms, [](const Term& term) { return term.factor == 0.0; });
}

// c * (m of trainer 0 + ... + m of trainer N-1), all alike, is N * c * m.
void ExprTable::CollectMeans(std::vector<Term>& terms) const {
  std::map<std::pair<ExprId, double>, std::vector<int>> messages;
  for (const Term& term : terms) {
    const Node& node = At(term.of);
    if (node.kind == Kind::kMessage)
      messages[{ContentOf(node).args.front(), term.factor}].push_back(node.label);
  }
  for (auto& [what, from] : messages) {
    std::sort(from.begin(), from.end());
    const bool all = static_cast<int>(from.size()) == trainers_ && from.front() == 0 &&
                     from.back() == trainers_ - 1 &&
                     std::adjacent_find(from.begin(), from.end()) == from.end();
    if (!all) continue;
    const ExprId of = what.first;
    const double each = what.second;
    std::erase_if(terms, [&](const Term& term) {
      const Node& node = At(term.of);
      return node.kind == Kind::kMessage && ContentOf(node).args.front() == of && term.factor == each;
    });
    terms.push_back({of, each * trainers_});
  }
}

// c * (part 0 of n + ... + part n-1 of n) is c times the sum.
void ExprTable::CollectParts(std::vector<Term>& terms) const {
  std::map<std::pair<ExprId, double>, std::size_t> parts;  // terms are normalized, so each part occurs once
  for (const Term& term : terms) {
    const Content content = ContentOf(term.of);
    if (content.kind == Kind::kPart) ++parts[{content.args.front(), term.factor}];
  }
  for (const auto& found : parts) {
    const std::size_t count = found.second;
    const ExprId sum = found.first.first;
    const double each = found.first.second;
    const auto is_part = [&](const Term& term) {
      const Content content = ContentOf(term.of);
      return content.kind == Kind::kPart && content.args.front() == sum && term.factor == each &&
             content.factors.front() == static_cast<double>(count);
    };
    if (static_cast<std::size_t>(std::count_if(terms.begin(), terms.end(), is_part)) != count) continue;
    std::erase_if(terms, is_part);
    terms.push_back({sum, each});
  }
}

ExprId ExprTable::SumOverTrainers(ExprId each, double scale) {
  std::vector<Term> terms;
  terms.reserve(static_cast<std::size_t>(trainers_));
  for (int t = 0; t < trainers_; ++t) terms.push_back({FromTrainer(t, each), scale});
  return Linear(terms);
}

ExprId ExprTable::Linear(const std::vector<Term>& terms) {
  std::vector<Term> flat;
  for (const Term& term : terms) {
    const Content content = ContentOf(term.of);
    if (content.kind != Kind::kLinear) {
      flat.push_back(term);
      continue;
    }
    for (std::size_t i = 0; i < content.args.size(); ++i)
      flat.push_back({content.args[i], content.factors[i] * term.factor});
  }
  Normalize(flat);
  CollectMeans(flat);
  CollectParts(flat);
  const bool nested = std::any_of(flat.begin(), flat.end(),
                                  [&](const Term& term) { return At(term.of).kind == Kind::kLinear; });
  if (nested) return Linear(flat);  // a collected mean or sum may itself be linear
  Normalize(flat);
  if (flat.size() == 1 && flat.front().factor == 1.0) return flat.front().of;
  std::vector<ExprId> args;
  std::vector<double> factors;
  for (const Term& term : flat) {
    args.push_back(term.of);
    factors.push_back(term.factor);
  }
  return Add({.kind = Kind::kLinear, .args = args, .factors = factors});
}

std::string ExprTable::Describe(ExprId id, int depth) const {
  const Content node = ContentOf(id);
  const auto inner = [&](ExprId arg) { return depth > 0 ? Describe(arg, depth - 1) : std::string("..."); };
  switch (node.kind) {
    case Kind::kLeaf:
      return std::string(codes_.NameOf(static_cast<NameId>(node.label)));
    case Kind::kMessage:
      return StrCat(inner(node.args.front()), " of trainer ", node.label);
    case Kind::kPart:
      return StrCat("part ", node.label, " of ", inner(node.args.front()));
    case Kind::kOutput:
      return Describe(node.args.front(), depth);
    case Kind::kOp:
      return PrintOp(*At(id).op);
    case Kind::kLinear: {
      std::vector<std::string> terms;
      for (std::size_t i = 0; i < node.args.size(); ++i) {
        const std::string term = inner(node.args[i]);
        terms.push_back(
            node.factors[i] == 1.0 ? term : StrCat(static_cast<float>(node.factors[i]), " * (", term, ")"));
      }
      return terms.empty() ? "0" : Join(terms, " + ");
    }
  }
  return "";
}

std::pair<std::string, std::string> ExprTable::Difference(ExprId a, ExprId b) const {
  while (true) {
    const Content left = ContentOf(a);
    const Content right = ContentOf(b);
    const bool alike = left.kind == right.kind && left.label == right.label &&
                       std::ranges::equal(left.factors, right.factors) &&
                       left.args.size() == right.args.size();
    if (!alike) break;
    std::size_t differing = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < left.args.size(); ++i) {
      if (left.args[i] == right.args[i]) continue;
      if (++differing == 1) at = i;
    }
    if (differing == 0) break;
    a = left.args[at];
    b = right.args[at];
  }
  return {Describe(a, kDescribeDepth), Describe(b, kDescribeDepth)};
}

}  // namespace penstock::check
