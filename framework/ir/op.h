// One operation: a type, named input and output slots that hold variable names, attributes. Immutable once it
// is in a block: a change replaces it by a new Op under the same OpId, which the block gave it.
//
//   Op op("mul");
//   op.AddInput("X", {"x"}).AddInput("Y", {"w"}).AddOutput("Out", {"h"}).Set("x_num_col_dims", 1);
//   op.Input("X")        {"x"}
//   op.Get<int>("axis")  null if absent or of another kind
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/word.h"
#include "framework/ir/arg_list.h"
#include "framework/ir/attr.h"
#include "framework/ir/role.h"

namespace penstock {

// Identifies an op across edits and copies of its program; it is not the position. 0 is no op.
enum class OpId : std::uint64_t { kNone = 0 };

struct Slot {
  Word name;
  ArgList args;  // variable names; may be empty (a declared slot that is not used)
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct NamedAttr {
  Word name;
  Attr value;
  friend bool operator==(const NamedAttr&, const NamedAttr&) = default;
};

class Op {
 public:
  Op() = default;
  explicit Op(Word type) : type_(std::move(type)) {}

  const std::string& type() const { return type_.str(); }
  // Slots and attributes in the order of the file or of the calls that made them.
  const std::vector<Slot>& inputs() const { return inputs_; }
  const std::vector<Slot>& outputs() const { return outputs_; }
  const std::vector<NamedAttr>& attrs() const { return attrs_; }
  bool is_target() const { return is_target_; }
  bool may_name_blocks() const { return may_name_blocks_; }  // false: no attribute names a block

  // The arguments of a slot; empty if there is no such slot.
  const ArgList& Input(std::string_view slot) const;
  const ArgList& Output(std::string_view slot) const;
  // The first argument; empty text if there is none.
  const std::string& InputName(std::string_view slot) const;
  const std::string& OutputName(std::string_view slot) const;
  bool HasInputSlot(std::string_view slot) const;
  bool HasOutputSlot(std::string_view slot) const;
  std::vector<std::string> InputNames() const;  // of all slots, in order, repeats kept
  std::vector<std::string> OutputNames() const;

  const Attr* FindAttr(std::string_view name) const;  // null if absent
  template <typename T>
  const T* Get(std::string_view name) const {
    const Attr* attr = FindAttr(name);
    return attr == nullptr ? nullptr : std::get_if<T>(attr);
  }
  template <typename T>
  T GetOr(std::string_view name, T otherwise) const {
    const T* value = Get<T>(name);
    return value == nullptr ? otherwise : *value;
  }

  OpRole role() const { return role_; }  // op_role; forward if absent or not a number
  // (param, grad) pairs of op_role_var.
  std::vector<std::pair<std::string, std::string>> RolePairs() const;

  // The user's line: "train.py:12 in model"; empty if unknown.
  const std::string& location() const { return location_.str(); }
  const std::string& made_by() const { return made_by_.str(); }  // the pass that made it; empty: the user did

  // Builders. They drop the wire bytes kept for an unchanged op. The overloads for temporaries return the op
  // itself, so a chain of calls makes one op without copies.
  Op& SetType(Word type) &;
  Op& AddInput(std::string_view slot, ArgList args) &;  // replaces the slot if it is there
  Op& AddOutput(std::string_view slot, ArgList args) &;
  Op& RemoveInput(std::string_view slot) &;
  Op& Set(std::string_view name, Attr value) &;  // replaces or appends
  template <std::same_as<int> Int>
  Op& Set(std::string_view name, Int value) & {  // so that a literal 0 is a number, not a null pointer
    return Set(name, Attr(std::int32_t{value}));
  }
  Op& Set(std::string_view name, const char* value) & { return Set(name, Attr(std::string(value))); }
  Op& RemoveAttr(std::string_view name) &;
  Op& SetRole(OpRole role) & { return Set(kRoleAttr, static_cast<std::int32_t>(role)); }
  Op& SetRolePair(std::string param, std::string grad) &;
  Op& SetTarget(bool value) &;
  Op& SetLocation(std::string_view where) &;
  Op& SetMadeBy(Word pass) &;
  Op&& AddInput(std::string_view slot, ArgList args) && { return std::move(AddInput(slot, std::move(args))); }
  Op&& AddOutput(std::string_view slot, ArgList args) && {
    return std::move(AddOutput(slot, std::move(args)));
  }
  template <typename Value>
  Op&& Set(std::string_view name, Value&& value) && {
    return std::move(Set(name, std::forward<Value>(value)));
  }
  Op&& SetRole(OpRole role) && { return std::move(SetRole(role)); }
  Op&& SetRolePair(std::string param, std::string grad) && {
    return std::move(SetRolePair(std::move(param), std::move(grad)));
  }
  Op&& SetLocation(std::string_view where) && { return std::move(SetLocation(where)); }
  Op&& SetMadeBy(Word pass) && { return std::move(SetMadeBy(std::move(pass))); }
  // Reserves memory.
  void Reserve(std::size_t inputs, std::size_t outputs, std::size_t attrs);
  // Renames every argument `from` to `to`, in inputs, outputs and (with `attrs`) in op_role_var.
  Op& Rename(std::string_view from, const std::string& to, bool attrs) &;

  // The bytes of the OpDesc from which this op was read, if the op is unchanged and would be written
  // differently; otherwise empty.
  const std::string& wire_bytes() const { return wire_bytes_.str(); }
  void set_wire_bytes(std::string_view bytes) { wire_bytes_ = Word::Rare(bytes); }

  // Compares type, slots and attributes, without regard to their order or to locations.
  bool SameAs(const Op& other) const;

 private:
  void Touch() { wire_bytes_.clear(); }

  Word type_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<NamedAttr> attrs_;
  bool is_target_ = false;
  bool may_name_blocks_ = false;
  OpRole role_ = OpRole::kForward;  // cached from attrs_, because it is read most often
  Word made_by_;
  Word location_;
  Word wire_bytes_;
};

using OpRef = std::shared_ptr<const Op>;

}  // namespace penstock
