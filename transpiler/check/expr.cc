#include "transpiler/check/expr.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "framework/text/printer.h"

namespace penstock {
namespace {

constexpr int kFactorBits = 48;  // what a product of two single precision factors needs
constexpr int kDescribeDepth = 3;

// Attributes that do not change what is computed: who wrote the op, and where a table of a lookup lies.
bool SaysWhatIsComputed(const Op& op, std::string_view attr) {
  for (const std::string_view frame :
       {kRoleAttr, kRoleVarAttr, kNameScopeAttr, kDeviceAttr, kCallstackAttr}) {
    if (attr == frame) return false;
  }
  const bool lookup = op.HasInputSlot("W") && op.HasInputSlot("Ids");
  if (!lookup && op.FindAttr("remote_prefetch") == nullptr) return true;
  if (attr == "padding_idx") return op.GetOr<std::int64_t>(attr, -1) != -1;  // -1: no id stands for zeros
  for (const std::string_view place : {"remote_prefetch", "is_distributed", "epmap", "table_names",
                                       "trainer_id", "height_sections", "grad_inplace"}) {
    if (attr == place) return false;
  }
  // How a gradient is kept; the lookup itself is the same.
  return attr != "is_sparse" || Has(op.role(), Role::kBackward);
}

bool IsDefault(const OpDef* def, const NamedAttr& attr) {
  const AttrDef* known = def == nullptr ? nullptr : def->FindAttr(attr.name);
  return known != nullptr && known->default_value && *known->default_value == attr.value;
}

// Without the last bits, in which N times 1/N is not 1.
double Rounded(double factor) {
  int exponent = 0;
  const double part = std::frexp(factor, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(part, kFactorBits)), exponent - kFactorBits);
}

template <typename T>
void AppendBytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::int32_t ExprTable::Intern(std::string_view label) {
  const auto [it, fresh] =
      label_ids_.try_emplace(std::string(label), static_cast<std::int32_t>(labels_.size()));
  if (fresh) labels_.emplace_back(label);
  return it->second;
}

ExprId ExprTable::Add(Node node) {
  std::string key;
  key.reserve(8 + node.args.size() * 12);
  AppendBytes(key, node.kind);
  AppendBytes(key, node.label);
  for (const ExprId arg : node.args) AppendBytes(key, arg);
  for (const double factor : node.factors) AppendBytes(key, factor);
  const auto [it, fresh] = ids_.try_emplace(std::move(key), static_cast<ExprId>(nodes_.size()));
  if (fresh) nodes_.push_back(std::move(node));
  return it->second;
}

ExprId ExprTable::Leaf(std::string_view name) { return Add({.kind = Kind::kLeaf, .label = Intern(name)}); }

ExprId ExprTable::FromTrainer(int trainer, ExprId of) {
  return Add({.kind = Kind::kMessage, .label = trainer, .args = {of}});
}

ExprId ExprTable::Apply(const Op& op, std::string_view label, std::vector<ExprId> args) {
  return Add({.kind = Kind::kOp, .label = Intern(label), .args = std::move(args), .op = &op});
}

ExprId ExprTable::Apply(const Op& op, bool with_shape, std::vector<ExprId> args) {
  const auto [it, fresh] = op_labels_[with_shape ? 1 : 0].try_emplace(&op, 0);
  if (fresh) it->second = Intern(SlotLabel(op, with_shape));
  return Add({.kind = Kind::kOp, .label = it->second, .args = std::move(args), .op = &op});
}

ExprId ExprTable::Output(ExprId op, std::string_view slot, std::size_t index) {
  return Add({.kind = Kind::kOutput,
              .label = Intern(index == 0 ? std::string(slot) : StrCat(slot, "[", index, "]")),
              .args = {op},
              .op = At(op).op});
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
    if (node.kind == Kind::kMessage) messages[{node.args.front(), term.factor}].push_back(node.label);
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
      return node.kind == Kind::kMessage && node.args.front() == of && term.factor == each;
    });
    terms.push_back({of, each * trainers_});
  }
}

ExprId ExprTable::SumOverTrainers(ExprId each, double scale) {
  std::vector<Term> terms;
  for (int t = 0; t < trainers_; ++t) terms.push_back({FromTrainer(t, each), scale});
  return Linear(std::move(terms));
}

ExprId ExprTable::Linear(std::vector<Term> terms) {
  std::vector<Term> flat;
  for (const Term& term : terms) {
    const Node& node = At(term.of);
    if (node.kind != Kind::kLinear) {
      flat.push_back(term);
      continue;
    }
    for (std::size_t i = 0; i < node.args.size(); ++i)
      flat.push_back({node.args[i], node.factors[i] * term.factor});
  }
  Normalize(flat);
  CollectMeans(flat);
  const bool nested = std::any_of(flat.begin(), flat.end(),
                                  [&](const Term& term) { return At(term.of).kind == Kind::kLinear; });
  if (nested) return Linear(std::move(flat));  // the mean of a sum is a sum
  Normalize(flat);
  if (flat.size() == 1 && flat.front().factor == 1.0) return flat.front().of;
  Node node{.kind = Kind::kLinear};
  for (const Term& term : flat) {
    node.args.push_back(term.of);
    node.factors.push_back(term.factor);
  }
  return Add(std::move(node));
}

std::string ExprTable::Label(const Op& op, bool with_shape) const {
  const OpDef* def = ops_.Find(op.type());
  std::vector<const NamedAttr*> attrs;
  for (const NamedAttr& attr : op.attrs()) {
    if (!SaysWhatIsComputed(op, attr.name) || IsDefault(def, attr)) continue;
    if (std::holds_alternative<BlockRef>(attr.value)) continue;  // the block's content stands for it
    if (!with_shape && attr.name == "shape") continue;
    attrs.push_back(&attr);
  }
  std::sort(attrs.begin(), attrs.end(),
            [](const NamedAttr* a, const NamedAttr* b) { return a->name < b->name; });
  std::string label = op.type();
  for (const NamedAttr* attr : attrs) {
    label += ' ';
    label += attr->name;
    label += '=';
    label += AttrToString(attr->value);
  }
  return label;
}

std::string ExprTable::SlotLabel(const Op& op, bool with_shape) const {
  std::string label = Label(op, with_shape);
  for (const bool inputs : {true, false}) {
    std::vector<const Slot*> slots;
    for (const Slot& slot : inputs ? op.inputs() : op.outputs()) {
      if (!slot.args.empty()) slots.push_back(&slot);
    }
    std::sort(slots.begin(), slots.end(), [](const Slot* a, const Slot* b) { return a->name < b->name; });
    for (const Slot* slot : slots) {
      label += StrCat(inputs ? " " : " ->", slot->name, ":", slot->args.size());
    }
  }
  return label;
}

std::string ExprTable::Describe(ExprId id, int depth) const {
  const Node& node = At(id);
  const auto label = [&] { return labels_[static_cast<std::size_t>(node.label)]; };
  const auto inner = [&](ExprId arg) { return depth > 0 ? Describe(arg, depth - 1) : std::string("..."); };
  switch (node.kind) {
    case Kind::kLeaf:
      return label();
    case Kind::kMessage:
      return StrCat(inner(node.args.front()), " of trainer ", node.label);
    case Kind::kOutput:
      return Describe(node.args.front(), depth);
    case Kind::kOp:
      return PrintOp(*node.op);
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
    const Node& left = At(a);
    const Node& right = At(b);
    const bool alike = left.kind == right.kind && left.label == right.label &&
                       left.factors == right.factors && left.args.size() == right.args.size();
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

}  // namespace penstock
