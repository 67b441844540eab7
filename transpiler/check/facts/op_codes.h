// The facts about an op that an evaluation needs, computed once per op: programs made from one another share
// their ops, and trainers share most of theirs. Names and labels are represented by numbers.
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

// Assigns consecutive numbers to texts; equal texts get equal numbers. Keeps a copy of each text.
class TextNumbers {
 public:
  std::int32_t NumberOf(std::string_view text) { return NumberOf(text, FlatHash(text)); }
  // The same for many texts, faster: prefetches the memory of each look-up.
  void NumbersOf(std::span<const std::string_view> texts, std::span<std::int32_t> numbers);
  std::int32_t Find(std::string_view text) const;  // -1 if it has no number
  std::string_view Text(std::int32_t number) const { return texts_[static_cast<std::size_t>(number)]; }

 private:
  std::int32_t NumberOf(std::string_view text, std::uint32_t hash);

  std::pmr::monotonic_buffer_resource room_;
  std::vector<std::string_view> texts_;
  FlatIndex numbers_;
};

// The number of a variable's name, the same in all programs.
enum class NameId : std::int32_t { kNone = -1 };

struct OpCode {
  enum class Kind : std::int8_t {
    kAny,      // its label identifies what it computes
    kSilent,   // assigns no value to any variable
    kMessage,  // its outputs are computed by other processes
    kAlgebra,  // may compute a linear combination: sum, mean, difference
  };
  Kind kind = Kind::kAny;
  // It has blocks or leaves some outputs unchanged, so each output must be examined separately.
  bool special = false;
  std::int32_t label = 0;
  std::uint32_t inputs = 0, outputs = 0;            // counts
  std::uint32_t first_input = 0, first_output = 0;  // positions in OpCodes
};

// Whether an attribute names a block.
bool HasBlocks(const Op& op);

class OpCodes {
 public:
  struct Output {
    NameId name;
    std::int32_t slot;  // the number of its label: slot name and index
  };

  explicit OpCodes(const OpRegistry& ops) : ops_(ops) {}

  NameId Name(std::string_view name) { return static_cast<NameId>(names_.NumberOf(name)); }
  NameId FindName(std::string_view name) const { return static_cast<NameId>(names_.Find(name)); }
  std::string_view NameOf(NameId id) const { return names_.Text(static_cast<std::int32_t>(id)); }
  TextNumbers& labels() { return labels_; }

  // Recognises the op by its address, so the op must outlive this object.
  OpCode Of(const Op& op, bool with_shape);
  // The same without remembering the op, which may be destroyed earlier.
  OpCode Make(const Op& op, bool with_shape);
  // In the order of the slots' names. Valid until the next code is made.
  std::span<const NameId> Inputs(const OpCode& code) const {
    return std::span(inputs_).subspan(code.first_input, code.inputs);
  }
  // Named outputs, in the order of the op. Valid until the next code is made.
  std::span<const Output> Outputs(const OpCode& code) const {
    return std::span(outputs_).subspan(code.first_output, code.outputs);
  }
  void Reserve(std::size_t ops);

  // Type, attributes and shape of the slots, as far as they determine what is computed. Leaves out the
  // framework's own attributes, default values and the placement of tables. `with_shape` includes the
  // attribute `shape`.
  std::string Label(const Op& op, bool with_shape) const;
  std::int32_t OutputLabel(std::string_view slot, std::size_t index);

 private:
  void AppendLabel(const Op& op, bool with_shape, std::string& label) const;
  // Appends the number of arguments of each slot.
  void AppendSlotLabel(const Op& op, bool with_shape, std::string& label) const;
  bool IsSpecial(const Op& op) const;
  // Numbers texts_, the arguments of the op whose code is being made, inputs first.
  void NumberNames(const OpCode& code);

  const OpRegistry& ops_;
  TextNumbers names_, labels_;
  std::vector<NameId> inputs_;   // of all ops, concatenated
  std::vector<Output> outputs_;  // likewise
  // Scratch space for the code being made; members so that their memory is reused.
  std::string label_;
  std::vector<std::string_view> texts_;
  std::vector<std::int32_t> numbers_;
  PointerMap<Op, OpCode> known_[2];  // without and with shapes
};

}  // namespace penstock::check
