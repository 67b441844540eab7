// What an evaluation asks of an op, found out once however often the op is run: programs that were made of
// one another share their ops, and trainers most of them. Names and labels are numbers here.
//
//   OpCodes codes(ops);
//   const OpCode code = codes.Of(op, true);
//   for (const NameId name : codes.Inputs(code)) ...
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/flat_index.h"
#include "framework/base/pointer_map.h"
#include "framework/op/op_registry.h"

namespace penstock::check {

// Numbers texts as they come: equal ones have equal numbers. It keeps the texts.
class TextNumbers {
 public:
  std::int32_t NumberOf(std::string_view text) { return NumberOf(text, FlatHash(text)); }
  // The same of many, for less: what is looked at for each is asked of the memory ahead.
  void NumbersOf(std::span<const std::string_view> texts, std::span<std::int32_t> numbers);
  std::int32_t Find(std::string_view text) const;  // -1 if it has none
  std::string_view Text(std::int32_t number) const { return texts_[static_cast<std::size_t>(number)]; }

 private:
  std::int32_t NumberOf(std::string_view text, std::uint32_t hash);

  std::pmr::monotonic_buffer_resource room_;
  std::vector<std::string_view> texts_;
  FlatIndex numbers_;
};

// The number of a variable's name, in all programs alike.
enum class NameId : std::int32_t { kNone = -1 };

struct OpCode {
  enum class Kind : std::int8_t {
    kAny,      // what it computes is told by its label
    kSilent,   // gives no value to anything
    kMessage,  // stands for what others compute
    kAlgebra,  // makes sums, means and differences, or may
  };
  Kind kind = Kind::kAny;
  // It has blocks, or it does not change all that it writes: its outputs are to be looked at one by one.
  bool special = false;
  std::int32_t label = 0;
  std::uint32_t inputs = 0, outputs = 0;            // how many
  std::uint32_t first_input = 0, first_output = 0;  // where they begin, for OpCodes
};

// Whether an attribute names a block.
bool HasBlocks(const Op& op);

class OpCodes {
 public:
  struct Output {
    NameId name;
    std::int32_t slot;  // the number of its label: the slot, and the place there
  };

  explicit OpCodes(const OpRegistry& ops) : ops_(ops) {}

  NameId Name(std::string_view name) { return static_cast<NameId>(names_.NumberOf(name)); }
  NameId FindName(std::string_view name) const { return static_cast<NameId>(names_.Find(name)); }
  std::string_view NameOf(NameId id) const { return names_.Text(static_cast<std::int32_t>(id)); }
  TextNumbers& labels() { return labels_; }

  // The op is known again by its address: it outlives this.
  OpCode Of(const Op& op, bool with_shape);
  // Of an op that may go earlier.
  OpCode Make(const Op& op, bool with_shape);
  // In the order of the slots' names. Until the next code is made.
  std::span<const NameId> Inputs(const OpCode& code) const {
    return std::span(inputs_).subspan(code.first_input, code.inputs);
  }
  // In the order of the op, those with a name. Until the next code is made.
  std::span<const Output> Outputs(const OpCode& code) const {
    return std::span(outputs_).subspan(code.first_output, code.outputs);
  }
  void Reserve(std::size_t ops);

  // Type, attributes and shape of the slots, as far as they say what is computed: the framework's own
  // attributes, defaults and what says where a table lies are left out. `with_shape`: also attribute shape.
  std::string Label(const Op& op, bool with_shape) const;
  std::int32_t OutputLabel(std::string_view slot, std::size_t index);

 private:
  void AppendLabel(const Op& op, bool with_shape, std::string& label) const;
  // And how many arguments each slot has.
  void AppendSlotLabel(const Op& op, bool with_shape, std::string& label) const;
  bool IsSpecial(const Op& op) const;
  // Of texts_, the arguments of the op whose code is made: the inputs' first.
  void NumberNames(const OpCode& code);

  const OpRegistry& ops_;
  TextNumbers names_, labels_;
  std::vector<NameId> inputs_;   // of all ops, one behind the other
  std::vector<Output> outputs_;  // likewise
  // In the making; kept for their room.
  std::string label_;
  std::vector<std::string_view> texts_;
  std::vector<std::int32_t> numbers_;
  PointerMap<Op, OpCode> known_[2];  // without and with shapes
};

}  // namespace penstock::check
