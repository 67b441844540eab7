#include "transpiler/check/facts/op_codes.h"

#include <algorithm>
#include <array>

#include "framework/roles/attr_names.h"
#include "framework/text/printer.h"
#include "framework/text/row_policy.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

// Calls `visit` with each slot that has arguments, in the order of the slots' names, which usually is their
// order in the op.
template <typename Visit>
void ForEachSlotByName(const std::vector<Slot>& slots, const Visit& visit) {
  const auto before = [](const Slot& a, const Slot& b) { return a.name < b.name; };
  if (std::is_sorted(slots.begin(), slots.end(), before)) {
    for (const Slot& slot : slots) {
      if (!slot.args.empty()) visit(slot);
    }
    return;
  }
  std::vector<const Slot*> sorted;
  sorted.reserve(slots.size());
  for (const Slot& slot : slots) sorted.push_back(&slot);
  std::sort(sorted.begin(), sorted.end(), [&](const Slot* a, const Slot* b) { return before(*a, *b); });
  for (const Slot* slot : sorted) {
    if (!slot->args.empty()) visit(*slot);
  }
}

// False for attributes that do not change the result: the framework's own, and the placement of a lookup's
// table.
bool SaysWhatIsComputed(const Op& op, bool looks_up, std::string_view attr) {
  for (const std::string_view frame :
       {kRoleAttr, kRoleVarAttr, kNameScopeAttr, kDeviceAttr, kCallstackAttr}) {
    if (attr == frame) return false;
  }
  if (!looks_up) return true;
  if (attr == "padding_idx") return op.GetOr<std::int64_t>(attr, -1) != -1;  // -1: no padding id
  for (const std::string_view place :
       {roles::attr::kRemotePrefetch, roles::attr::kEpmap, roles::attr::kTableNames, roles::attr::kTrainerId,
        roles::attr::kHeightSections, std::string_view(kRowPolicyAttr), std::string_view("is_distributed"),
        std::string_view("grad_inplace")}) {
    if (attr == place) return false;
  }
  // is_sparse decides the kind of the gradient; it does not change the lookup itself.
  return attr != "is_sparse" || Has(op.role(), OpRole::kBackward);
}

bool IsDefault(const OpDef* def, const NamedAttr& attr) {
  const AttrDef* known = def == nullptr ? nullptr : def->FindAttr(attr.name);
  return known != nullptr && known->default_value && *known->default_value == attr.value;
}

OpCode::Kind KindOf(const Op& op) {
  const auto is_one_of = [&](const auto& types) {
    return std::find(types.begin(), types.end(), op.type()) != types.end();
  };
  // merge_ids defines the value of a prefetch. A broadcast keeps the value that every rank computes alike.
  constexpr std::array<std::string_view, 5> kSilent = {"send", "send_barrier", "fetch_barrier",
                                                       "listen_and_serv", "prefetch"};
  constexpr std::array<std::string_view, 4> kMessages = {"recv", "distributed_lookup_table", "merge_ids",
                                                         "ref_by_trainer_id"};
  constexpr std::array<std::string_view, 7> kAlgebra = {
      "assign",          "merge_selected_rows", "sum", "scale", "elementwise_add",
      "elementwise_sub", "elementwise_mul"};
  if (is_one_of(kSilent) || AwaitsStream(op) || GivesToOthers(op)) return OpCode::Kind::kSilent;
  if (is_one_of(kMessages) || AddsUp(op)) return OpCode::Kind::kMessage;
  return is_one_of(kAlgebra) ? OpCode::Kind::kAlgebra : OpCode::Kind::kAny;
}

}  // namespace

bool HasBlocks(const Op& op) {
  const auto is_block = [](const NamedAttr& attr) { return std::holds_alternative<BlockRef>(attr.value); };
  return op.may_name_blocks() && std::any_of(op.attrs().begin(), op.attrs().end(), is_block);
}

std::int32_t TextNumbers::Find(std::string_view text) const {
  return static_cast<std::int32_t>(
      numbers_.Find(FlatHash(text), [&](std::size_t number) { return texts_[number] == text; }));
}

void TextNumbers::NumbersOf(std::span<const std::string_view> texts, std::span<std::int32_t> numbers) {
  constexpr std::size_t kSideBySide = 16;
  std::uint32_t hashes[kSideBySide];
  for (std::size_t begin = 0; begin < texts.size(); begin += kSideBySide) {
    const auto of = texts.subspan(begin, std::min(kSideBySide, texts.size() - begin));
    for (std::size_t i = 0; i < of.size(); ++i) numbers_.Prefetch(hashes[i] = FlatHash(of[i]));
    for (std::size_t i = 0; i < of.size(); ++i) {
      const std::int64_t guess = numbers_.Guess(hashes[i]);
      if (guess >= 0) __builtin_prefetch(&texts_[static_cast<std::size_t>(guess)]);
    }
    for (std::size_t i = 0; i < of.size(); ++i) numbers[begin + i] = NumberOf(of[i], hashes[i]);
  }
}

std::int32_t TextNumbers::NumberOf(std::string_view text, std::uint32_t hash) {
  const std::int64_t known = numbers_.Find(hash, [&](std::size_t number) { return texts_[number] == text; });
  if (known >= 0) return static_cast<std::int32_t>(known);
  numbers_.Add(hash, texts_.size());
  auto* kept = static_cast<char*>(room_.allocate(text.size() + 1, 1));
  std::copy(text.begin(), text.end(), kept);
  texts_.emplace_back(kept, text.size());
  return static_cast<std::int32_t>(texts_.size()) - 1;
}

void OpCodes::Reserve(std::size_t ops) {
  constexpr std::size_t kInputs = 3;  // of most ops
  inputs_.reserve(kInputs * ops);
  outputs_.reserve(ops);
  for (auto& known : known_) known.Reserve(ops);
}

OpCode OpCodes::Of(const Op& op, bool with_shape) {
  const auto [code, fresh] = known_[with_shape ? 1 : 0].Emplace(&op, {});
  if (fresh) *code = Make(op, with_shape);
  return *code;
}

OpCode OpCodes::Make(const Op& op, bool with_shape) {
  OpCode code{.kind = KindOf(op),
              .special = IsSpecial(op),
              .first_input = static_cast<std::uint32_t>(inputs_.size()),
              .first_output = static_cast<std::uint32_t>(outputs_.size())};
  if (code.kind == OpCode::Kind::kSilent) return code;
  label_.clear();
  AppendSlotLabel(op, with_shape, label_);
  code.label = labels_.NumberOf(label_);
  texts_.clear();
  ForEachSlotByName(op.inputs(), [&](const Slot& slot) {
    texts_.insert(texts_.end(), slot.args.begin(), slot.args.end());
  });
  code.inputs = static_cast<std::uint32_t>(texts_.size());
  for (const Slot& slot : op.outputs()) {
    for (std::size_t i = 0; i < slot.args.size(); ++i) {
      if (slot.args[i] == kEmptyVarName) continue;
      texts_.push_back(slot.args[i]);
      outputs_.push_back({NameId::kNone, OutputLabel(slot.name, i)});
    }
  }
  code.outputs = static_cast<std::uint32_t>(outputs_.size()) - code.first_output;
  NumberNames(code);
  return code;
}

void OpCodes::NumberNames(const OpCode& code) {
  numbers_.resize(texts_.size());
  names_.NumbersOf(texts_, numbers_);
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto name = static_cast<NameId>(numbers_[i]);
    if (i < code.inputs) {
      inputs_.push_back(name);
    } else {
      outputs_[code.first_output + i - code.inputs].name = name;
    }
  }
}

std::int32_t OpCodes::OutputLabel(std::string_view slot, std::size_t index) {
  return index == 0 ? labels_.NumberOf(slot) : labels_.NumberOf(StrCat(slot, "[", index, "]"));
}

// Whether Evaluation::Unchanged or AddHandedOn may apply.
bool OpCodes::IsSpecial(const Op& op) const {
  if (HasBlocks(op)) return true;
  const OpDef* def = ops_.Find(op.type());
  if (def == nullptr) return true;
  const auto reads = [&](const std::string& name) {
    return std::ranges::any_of(
        op.inputs(), [&](const Slot& slot) { return std::ranges::find(slot.args, name) != slot.args.end(); });
  };
  return std::ranges::any_of(op.outputs(), [&](const Slot& slot) {
    const SlotDef* output = def->FindOutput(slot.name);
    return output != nullptr && output->intermediate && std::ranges::any_of(slot.args, reads);
  });
}

std::string OpCodes::Label(const Op& op, bool with_shape) const {
  std::string label;
  AppendLabel(op, with_shape, label);
  return label;
}

void OpCodes::AppendLabel(const Op& op, bool with_shape, std::string& label) const {
  const OpDef* def = ops_.Find(op.type());
  std::vector<const NamedAttr*> attrs;
  const bool looks_up = (op.HasInputSlot("W") && op.HasInputSlot("Ids")) ||
                        op.FindAttr(roles::attr::kRemotePrefetch) != nullptr;
  for (const NamedAttr& attr : op.attrs()) {
    if (!SaysWhatIsComputed(op, looks_up, attr.name) || IsDefault(def, attr)) continue;
    if (std::holds_alternative<BlockRef>(attr.value)) continue;  // the label has the block's content instead
    if (!with_shape && attr.name == "shape") continue;
    attrs.push_back(&attr);
  }
  std::sort(attrs.begin(), attrs.end(),
            [](const NamedAttr* a, const NamedAttr* b) { return a->name < b->name; });
  label += op.type();
  for (const NamedAttr* attr : attrs) {
    label += ' ';
    label += attr->name;
    label += '=';
    label += AttrToString(attr->value);
  }
}

void OpCodes::AppendSlotLabel(const Op& op, bool with_shape, std::string& label) const {
  AppendLabel(op, with_shape, label);
  for (const bool inputs : {true, false}) {
    ForEachSlotByName(inputs ? op.inputs() : op.outputs(), [&](const Slot& slot) {
      label += inputs ? " " : " ->";
      label += slot.name;
      label += ':';
      AppendTo(label, slot.args.size());
    });
  }
}

}  // namespace penstock::check
