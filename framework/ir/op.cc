#include "framework/ir/op.h"

#include <algorithm>

namespace penstock {
namespace {

const ArgList kNoArgs;
const std::string kNoName;

// Vectors grow by a few elements at a time. Growing one by one would be most of the cost of making an op, and
// doubling would leave half of the memory unused in each of many ops.
constexpr std::size_t kSlotsAtOnce = 1, kAttrsAtOnce = 3;

template <typename Item>
void MakeRoom(std::vector<Item>& items, std::size_t at_once) {
  if (items.size() == items.capacity()) items.reserve(items.size() + at_once);
}

template <typename Slots>
auto* FindSlot(Slots& slots, std::string_view name) {
  const auto it =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == name; });
  return it == slots.end() ? nullptr : &*it;
}

void SetSlot(std::vector<Slot>& slots, std::string_view name, ArgList args) {
  Word word(name);  // comparing two Words is faster than comparing texts
  for (Slot& slot : slots) {
    if (slot.name != word) continue;
    slot.args = std::move(args);
    return;
  }
  MakeRoom(slots, kSlotsAtOnce);
  Slot& made = slots.emplace_back();
  made.name = std::move(word);
  made.args = std::move(args);
}

const ArgList& ArgsOf(const std::vector<Slot>& slots, std::string_view name) {
  const Slot* slot = FindSlot(slots, name);
  return slot == nullptr ? kNoArgs : slot->args;
}

std::vector<std::string> AllArgs(const std::vector<Slot>& slots) {
  std::vector<std::string> names;
  for (const Slot& slot : slots) names.insert(names.end(), slot.args.begin(), slot.args.end());
  return names;
}

// The same named items in any order.
template <typename Item>
bool SameSet(const std::vector<Item>& a, const std::vector<Item>& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const Item& item) {
    const auto it =
        std::find_if(b.begin(), b.end(), [&](const Item& other) { return other.name == item.name; });
    return it != b.end() && *it == item;
  });
}

void RenameIn(std::vector<Slot>& slots, std::string_view from, const std::string& to) {
  for (Slot& slot : slots) {
    for (std::string& arg : slot.args) {
      if (arg == from) arg = to;
    }
  }
}

}  // namespace

const ArgList& Op::Input(std::string_view slot) const { return ArgsOf(inputs_, slot); }
const ArgList& Op::Output(std::string_view slot) const { return ArgsOf(outputs_, slot); }

const std::string& Op::InputName(std::string_view slot) const {
  const auto& args = Input(slot);
  return args.empty() ? kNoName : args.front();
}

const std::string& Op::OutputName(std::string_view slot) const {
  const auto& args = Output(slot);
  return args.empty() ? kNoName : args.front();
}

bool Op::HasInputSlot(std::string_view slot) const { return FindSlot(inputs_, slot) != nullptr; }
bool Op::HasOutputSlot(std::string_view slot) const { return FindSlot(outputs_, slot) != nullptr; }
std::vector<std::string> Op::InputNames() const { return AllArgs(inputs_); }
std::vector<std::string> Op::OutputNames() const { return AllArgs(outputs_); }

const Attr* Op::FindAttr(std::string_view name) const {
  for (const NamedAttr& attr : attrs_) {
    if (attr.name == name) return &attr.value;
  }
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> Op::RolePairs() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (const auto* names = Get<std::vector<std::string>>(kRoleVarAttr)) {
    for (std::size_t i = 0; i + 1 < names->size(); i += 2) pairs.emplace_back((*names)[i], (*names)[i + 1]);
  }
  return pairs;
}

Op& Op::SetType(Word type) & {
  Touch();
  type_ = std::move(type);
  return *this;
}

Op& Op::AddInput(std::string_view slot, ArgList args) & {
  Touch();
  SetSlot(inputs_, slot, std::move(args));
  return *this;
}

Op& Op::AddOutput(std::string_view slot, ArgList args) & {
  Touch();
  SetSlot(outputs_, slot, std::move(args));
  return *this;
}

Op& Op::RemoveInput(std::string_view slot) & {
  Touch();
  std::erase_if(inputs_, [&](const Slot& s) { return s.name == slot; });
  return *this;
}

Op& Op::Set(std::string_view name, Attr value) & {
  Touch();
  may_name_blocks_ =
      may_name_blocks_ || KindOf(value) == AttrKind::kBlock || KindOf(value) == AttrKind::kBlocks;
  if (name == kRoleAttr) {
    const auto* role = std::get_if<std::int32_t>(&value);
    role_ = role == nullptr ? OpRole::kForward : static_cast<OpRole>(*role);
  }
  Word word(name);
  for (NamedAttr& attr : attrs_) {
    if (attr.name != word) continue;
    attr.value = std::move(value);
    return *this;
  }
  MakeRoom(attrs_, kAttrsAtOnce);
  NamedAttr& made = attrs_.emplace_back();
  made.name = std::move(word);
  made.value = std::move(value);
  return *this;
}

void Op::Reserve(std::size_t inputs, std::size_t outputs, std::size_t attrs) {
  inputs_.reserve(inputs);
  outputs_.reserve(outputs);
  attrs_.reserve(attrs);
}

Op& Op::RemoveAttr(std::string_view name) & {
  Touch();
  std::erase_if(attrs_, [&](const NamedAttr& attr) { return attr.name == name; });
  if (name == kRoleAttr) role_ = OpRole::kForward;
  return *this;
}

Op& Op::SetRolePair(std::string param, std::string grad) & {
  return Set(kRoleVarAttr, std::vector<std::string>{std::move(param), std::move(grad)});
}

Op& Op::SetTarget(bool value) & {
  Touch();
  is_target_ = value;
  return *this;
}

Op& Op::SetLocation(std::string_view where) & {
  location_ = Word::Rare(where);
  return *this;
}

Op& Op::SetMadeBy(Word pass) & {
  made_by_ = std::move(pass);
  return *this;
}

Op& Op::Rename(std::string_view from, const std::string& to, bool attrs) & {
  Touch();
  RenameIn(inputs_, from, to);
  RenameIn(outputs_, from, to);
  if (!attrs) return *this;
  for (NamedAttr& attr : attrs_) {
    if (attr.name != kRoleVarAttr) continue;
    if (auto* names = std::get_if<std::vector<std::string>>(&attr.value)) {
      std::replace(names->begin(), names->end(), std::string(from), to);
    }
  }
  return *this;
}

bool Op::SameAs(const Op& other) const {
  return type_ == other.type_ && is_target_ == other.is_target_ && SameSet(inputs_, other.inputs_) &&
         SameSet(outputs_, other.outputs_) && SameSet(attrs_, other.attrs_);
}

}  // namespace penstock
