#include "executor/graph/row_chain.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "executor/graph/in_place.h"
#include "executor/graph/infer.h"
#include "framework/base/strings.h"

namespace penstock::exec {
namespace {

bool IsElementwise(const Instruction& instruction) {
  const OpDef& def = *instruction.def;
  return def.keeps_layout() && !def.optimizer().has_value() && def.effects().empty() &&
         !def.reads_only_some() && !instruction.starts_blocks && !instruction.peeked &&
         !instruction.of_first_place && instruction.chain == nullptr;
}

bool HasRows(const TensorDesc& type, int rank, const Shape& rows) {
  return type.shape.rank() == rank && type.shape.First(rows.rank()) == rows;
}

// The shape with one more row in each dimension that counts rows.
Shape WithMoreRows(Shape shape, int dimensions) {
  for (int i = 0; i < dimensions; ++i) shape.Set(i, shape[i] + 1);
  return shape;
}

// Whether inference with other numbers of rows gives outputs that differ in the numbers of rows alone: then
// no input that is read whole is aligned with the rows.
bool RowsAreFree(const Instruction& instruction, const InferContext& context, int rank, const Shape& rows) {
  const Op& op = *instruction.op;
  std::map<std::string, TensorDesc> types;
  for (const Slot& slot : op.inputs()) {
    for (std::size_t j = 0; j < slot.args.size(); ++j) {
      TensorDesc type = context.Input(slot.name.str(), static_cast<int>(j));
      if (HasRows(type, rank, rows)) type.shape = WithMoreRows(type.shape, rows.rank());
      types.emplace(slot.args[j], std::move(type));
    }
  }
  InferContext longer(*instruction.def, op, [&](const std::string& name) -> std::optional<TensorDesc> {
    const auto found = types.find(name);
    return found == types.end() ? std::nullopt : std::optional(found->second);
  });
  if (!instruction.def->Infer(longer).ok()) return false;
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      if (instruction.outputs[i][j] < 0) continue;
      if (longer.outputs()[i][j].shape != WithMoreRows(context.outputs()[i][j].shape, rows.rank()))
        return false;
    }
  }
  return true;
}

}  // namespace

std::optional<RowRoles> RowRolesOf(const Instruction& instruction, const InferContext& context,
                                   int dimensions) {
  if (!IsElementwise(instruction)) return std::nullopt;
  RowRoles roles;
  const Shape* shape = nullptr;  // of all outputs
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      if (instruction.outputs[i][j] < 0) continue;
      const TensorDesc& type = context.outputs()[i][j];
      if (!IsKnownTensor(type) || type.shape.rank() < dimensions) return std::nullopt;
      if (shape != nullptr && *shape != type.shape) return std::nullopt;
      shape = &type.shape;
      roles.cut.push_back(instruction.outputs[i][j]);
    }
  }
  if (shape == nullptr || shape->Count() < 1) return std::nullopt;
  roles.rows = shape->First(dimensions);
  const std::vector<Slot>& inputs = instruction.op->inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = 0; j < instruction.inputs[i].size(); ++j) {
      if (instruction.inputs[i][j] < 0) continue;
      const TensorDesc& type = context.Input(inputs[i].name.str(), static_cast<int>(j));
      if (!IsKnownTensor(type)) return std::nullopt;
      const bool cut = HasRows(type, shape->rank(), roles.rows);
      (cut ? roles.cut : roles.whole).push_back(instruction.inputs[i][j]);
    }
  }
  if (!RowsAreFree(instruction, context, shape->rank(), roles.rows)) return std::nullopt;
  return roles;
}

bool RowCut::Fits(const std::vector<int>& slots, Role role) const {
  return std::ranges::all_of(slots, [&](int slot) {
    const auto found = roles_.find(slot);
    return found == roles_.end() || found->second == role;
  });
}

bool RowCut::Add(const RowRoles& roles) {
  if (rows_.rank() != 0 && roles.rows != rows_) return false;
  if (!Fits(roles.cut, Role::kCut) || !Fits(roles.whole, Role::kWhole)) return false;
  rows_ = roles.rows;
  for (const int slot : roles.cut) roles_[slot] = Role::kCut;
  for (const int slot : roles.whole) roles_[slot] = Role::kWhole;
  return true;
}

bool RowCut::IsCut(int slot) const {
  const auto found = roles_.find(slot);
  return found != roles_.end() && found->second == Role::kCut;
}

Result<ChainTypes> TypesOfChain(const RowChain& chain, std::vector<TensorDesc> inputs) {
  ChainTypes out;
  out.types = std::move(inputs);
  out.types.resize(chain.block.slots.size());
  out.lod_from.assign(chain.block.slots.size(), -1);
  for (int i = 0; i < chain.inputs; ++i) out.lod_from[static_cast<std::size_t>(i)] = i;
  for (const Instruction& member : chain.block.instructions) {
    PENSTOCK_ASSIGN_OR_RETURN(const InferContext context, InferenceOf(chain.block, member, out.types));
    const std::optional<RowRoles> roles = RowRolesOf(member, context, chain.dimensions);
    out.by_rows = out.by_rows && roles.has_value() && out.cut.Add(*roles);
    for (std::size_t i = 0; i < member.outputs.size(); ++i) {
      for (std::size_t j = 0; j < member.outputs[i].size(); ++j) {
        if (member.outputs[i][j] >= 0)
          out.types[static_cast<std::size_t>(member.outputs[i][j])] = context.outputs()[i][j];
      }
    }
    for (const LodCopy& copy : LodCopiesOf(member, context.lod_shares()))
      out.lod_from[static_cast<std::size_t>(copy.to)] = out.lod_from[static_cast<std::size_t>(copy.from)];
  }
  return out;
}

namespace {

// Whether both have the rows, and one type.
bool AreAlike(const ChainTypes& types, int a, int b) {
  const TensorDesc &first = types.types[static_cast<std::size_t>(a)],
                   &second = types.types[static_cast<std::size_t>(b)];
  return types.cut.IsCut(a) && types.cut.IsCut(b) && first.dtype == second.dtype &&
         first.shape == second.shape;
}

bool Names(const std::vector<std::vector<int>>& arguments, int slot) {
  bool found = false;
  EachSlot(arguments, [&](int named) { found |= named == slot; });
  return found;
}

}  // namespace

std::vector<int> HomesOf(const RowChain& chain, const ChainTypes& types) {
  const std::vector<Instruction>& members = chain.block.instructions;
  const int first_temporary = chain.inputs + chain.outputs;
  std::vector<int> homes(types.types.size(), -1);
  std::vector<int> last_read(types.types.size(), -1);
  for (std::size_t m = 0; m < members.size(); ++m)
    EachSlot(members[m].inputs, [&](int s) { last_read[static_cast<std::size_t>(s)] = static_cast<int>(m); });
  for (std::size_t m = members.size(); m-- > 0;) {
    EachSlot(members[m].outputs, [&](int out) {
      const int home = out < first_temporary ? out : homes[static_cast<std::size_t>(out)];
      if (home < 0) return;
      bool taken = false;
      EachSlot(members[m].inputs, [&](int in) {
        const auto i = static_cast<std::size_t>(in);
        if (taken || in < first_temporary || homes[i] >= 0 || last_read[i] != static_cast<int>(m)) return;
        if (!AreAlike(types, in, out) || !ComputesInPlace(members[m], out, in, true)) return;
        homes[i] = home;
        taken = true;
      });
    });
  }
  return homes;
}

bool MayLieIn(const RowChain& chain, const ChainTypes& types, int output, int input) {
  if (!AreAlike(types, output, input)) return false;
  const std::vector<int> homes = HomesOf(chain, types);
  bool begun = false;  // the memory of the output is in use
  for (const Instruction& member : chain.block.instructions) {
    int written = -1;  // in the memory of the output
    EachSlot(member.outputs, [&](int slot) {
      if (slot == output || homes[static_cast<std::size_t>(slot)] == output) written = slot;
    });
    const bool in_place = !begun && (written < 0 || ComputesInPlace(member, written, input, true));
    if (Names(member.inputs, input) && !in_place) return false;
    begun |= written >= 0;
  }
  return begun;
}

const Instruction& OpAbout(const Instruction& instruction, int slot) {
  if (instruction.chain == nullptr) return instruction;
  int number = 0, found = -1;  // the chain's slots are its inputs, then its outputs
  for (const auto* arguments : {&instruction.inputs, &instruction.outputs}) {
    EachSlot(*arguments, [&](int named) {
      if (named == slot) found = number;
      ++number;
    });
  }
  const std::vector<Instruction>& members = instruction.chain->block.instructions;
  const auto names = [found](const Instruction& one) {
    return Names(one.inputs, found) || Names(one.outputs, found);
  };
  const auto first = std::ranges::find_if(members, names);
  return first == members.end() ? members.back() : *first;
}

namespace {

// Builds the chain's own block, with new numbers for the slots of the outer one.
class ChainBuilder {
 public:
  ChainBuilder(const CompiledBlock& block, std::span<const int> members, const std::vector<bool>& temporary)
      : block_(block), members_(members), temporary_(temporary) {}

  Result<Instruction> Make(std::span<const TensorDesc> types, int dimensions) {
    NumberSlots();
    const Instruction& last = block_.instructions[static_cast<std::size_t>(members_.back())];
    Op op(Type());
    chain_ = std::make_shared<RowChain>(op.type());
    chain_->dimensions = dimensions;
    Instruction made;
    made.position = last.position;
    std::vector<TensorDesc> read;
    for (const int slot : inputs_) {
      op.AddInput(StrCat("X", read.size()), {Name(slot)});
      read.push_back(types[static_cast<std::size_t>(slot)]);
      made.inputs.push_back({slot});
    }
    for (const int slot : outputs_) {
      op.AddOutput(StrCat("Out", made.outputs.size()), {Name(slot)});
      made.outputs.push_back({slot});
    }
    if (last.op->role() != OpRole::kForward) op.SetRole(last.op->role());
    op.SetLocation(last.op->location());
    FillChain();
    PENSTOCK_RETURN_IF_ERROR(Declare(std::move(read)));
    made.op = std::make_shared<const Op>(std::move(op));
    made.def = &chain_->def;
    made.chain = std::move(chain_);
    return made;
  }

 private:
  const Instruction& Member(int index) const { return block_.instructions[static_cast<std::size_t>(index)]; }
  const std::string& Name(int slot) const { return block_.slots[static_cast<std::size_t>(slot)].name; }

  std::string Type() const {
    std::vector<std::string> types;
    for (const int member : members_) types.push_back(Member(member).op->type());
    return Join(types, "+");
  }

  void NumberSlots() {
    std::vector<int> written;
    for (const int member : members_) {
      EachSlot(Member(member).inputs, [&](int slot) {
        if (std::ranges::find(written, slot) == written.end()) AddOnce(inputs_, slot);
      });
      EachSlot(Member(member).outputs, [&](int slot) { AddOnce(written, slot); });
    }
    std::ranges::copy_if(written, std::back_inserter(outputs_),
                         [&](int slot) { return !temporary_[static_cast<std::size_t>(slot)]; });
    const auto number = [this](int slot) { numbers_.emplace(slot, static_cast<int>(numbers_.size())); };
    std::ranges::for_each(inputs_, number);
    std::ranges::for_each(outputs_, number);
    std::ranges::for_each(written, number);
  }
  static void AddOnce(std::vector<int>& slots, int slot) {
    if (std::ranges::find(slots, slot) == slots.end()) slots.push_back(slot);
  }

  void FillChain() {
    CompiledBlock& own = chain_->block;
    own.program = block_.program;
    own.block = block_.block;
    own.slots.resize(numbers_.size());
    for (const auto& [slot, number] : numbers_) {
      SlotInfo& info = own.slots[static_cast<std::size_t>(number)];
      info.name = Name(slot);
      info.var = block_.slots[static_cast<std::size_t>(slot)].var;
    }
    for (const int member : members_) {
      Instruction copy = Member(member);
      for (auto* rows : {&copy.inputs, &copy.outputs}) {
        for (std::vector<int>& row : *rows) {
          for (int& slot : row) slot = slot < 0 ? slot : numbers_.at(slot);
        }
      }
      own.instructions.push_back(std::move(copy));
    }
    chain_->inputs = static_cast<int>(inputs_.size());
    chain_->outputs = static_cast<int>(outputs_.size());
  }

  Status Declare(std::vector<TensorDesc> read) {
    const RowChain* const chain = chain_.get();
    OpDef& def = chain_->def;
    for (int i = 0; i < chain->inputs; ++i) {
      def.Input(StrCat("X", i), "an input of the ops", AnyType(),
                {.shape_only = !ReadsElements(chain->block, i)});
    }
    for (int i = 0; i < chain->outputs; ++i) def.Output(StrCat("Out", i), "an output of the ops", AnyType());
    def.InferShape([chain](InferContext& c) { return InferOutputs(*chain, c); });
    PENSTOCK_ASSIGN_OR_RETURN(const ChainTypes types, TypesOfChain(*chain, std::move(read)));
    DeclareInPlace(types);
    return OkStatus();
  }

  // Whether a member reads the elements of the slot.
  static bool ReadsElements(const CompiledBlock& members, int slot) {
    return std::ranges::any_of(members.instructions, [slot](const Instruction& member) {
      for (std::size_t i = 0; i < member.inputs.size(); ++i) {
        if (exec::ReadsElements(member, i) &&
            std::ranges::find(member.inputs[i], slot) != member.inputs[i].end())
          return true;
      }
      return false;
    });
  }

  static Status InferOutputs(const RowChain& chain, InferContext& c) {
    std::vector<TensorDesc> read;
    for (int i = 0; i < chain.inputs; ++i) read.push_back(c.Input(StrCat("X", i)));
    PENSTOCK_ASSIGN_OR_RETURN(const ChainTypes types, TypesOfChain(chain, std::move(read)));
    for (int i = 0; i < chain.outputs; ++i) {
      const auto slot = static_cast<std::size_t>(chain.inputs + i);
      if (types.lod_from[slot] >= 0) c.ShareLod(StrCat("X", types.lod_from[slot]), StrCat("Out", i));
      c.SetOutput(static_cast<std::size_t>(i), 0, types.types[slot]);
    }
    return OkStatus();
  }

  void DeclareInPlace(const ChainTypes& types) {
    for (int i = 0; i < chain_->outputs; ++i) {
      for (int input = 0; input < chain_->inputs; ++input) {
        if (MayLieIn(*chain_, types, chain_->inputs + i, input))
          chain_->def.InPlace(StrCat("Out", i), StrCat("X", input));
      }
    }
  }

  const CompiledBlock& block_;
  std::span<const int> members_;
  const std::vector<bool>& temporary_;  // by slot of the outer block
  std::vector<int> inputs_, outputs_;   // slots of the outer block
  std::map<int, int> numbers_;          // by slot of the outer block
  std::shared_ptr<RowChain> chain_;
};

}  // namespace

Result<Instruction> MakeChain(const CompiledBlock& block, std::span<const int> members,
                              std::span<const TensorDesc> types, const std::vector<bool>& temporary,
                              int dimensions) {
  return ChainBuilder(block, members, temporary).Make(types, dimensions);
}

}  // namespace penstock::exec
