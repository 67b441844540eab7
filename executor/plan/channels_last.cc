#include "executor/plan/channels_last.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/graph/infer.h"
#include "executor/plan/layout_cut.h"
#include "executor/plan/lives.h"

namespace penstock::exec {
namespace {

constexpr char kLastSuffix[] = "@last";
constexpr char kTransposeOp[] = "transpose";

// Which arguments are images, in the order of Instruction::inputs or outputs.
using Marks = std::vector<std::vector<bool>>;

// The types of arguments, in the same order.
using Types = std::vector<std::vector<TensorDesc>>;

// How an instruction computes channels last.
struct Form {
  OpRef op;
  Marks inputs, outputs;
  LayoutCost cost;
};

bool MayChoose(const Instruction& instruction) {
  const ChannelsLast* how = instruction.def->channels_last();
  return how != nullptr && how->cost != nullptr;
}

bool IsImageShape(const Shape& shape) {
  return (shape.rank() == 4 || shape.rank() == 5) && shape.Count() > 0;
}

bool IsImage(const TensorDesc& info) {
  return IsKnownTensor(info) && info.lod_level == 0 && IsImageShape(info.shape);
}

// A copy in the other layout costs a pass; one channel or one point needs no transposition.
double CopyNs(const Shape& plain) {
  const bool same = plain[1] == 1 || plain.Product(2, plain.rank()) == 1;
  return static_cast<double>(plain.Count()) * (same ? 0.1 : 0.3);
}

// Finds the form of each instruction, and the values that they read and write.
class Analysis {
 public:
  Analysis(const CompiledBlock& block, std::span<const TensorDesc> known)
      : block_(block),
        known_(known.begin(), known.end()),
        plain_only_(block.slots.size(), false),
        value_of_(block.slots.size(), -1) {
    for (std::size_t s = 0; s < block.slots.size(); ++s) {
      const SlotInfo& slot = block.slots[s];
      if (slot.home != Home::kFrame || slot.written_by_block || slot.view_of >= 0) plain_only_[s] = true;
    }
    for (const int slot : block.imports) plain_only_[static_cast<std::size_t>(slot)] = true;
    for (const RowGroup& group : block.row_groups) plain_only_[static_cast<std::size_t>(group.whole)] = true;
  }

  // Returns the forms of the instructions that shall compute channels last; none of the others. Nullopt: a
  // type cannot be inferred.
  std::optional<std::vector<std::optional<Form>>> Choose() {
    std::vector<std::optional<Form>> forms;
    for (const Instruction& instruction : block_.instructions) {
      const Result<InferContext> inferred = InferenceOf(block_, instruction, known_);
      if (!inferred.ok()) return std::nullopt;
      forms.push_back(FormOf(instruction, *inferred));
      AddOp(instruction, forms.back(), *inferred);
      written_.push_back(inferred->outputs());
    }
    for (const int slot : block_.fetches) Read(slot, LayoutCut::kPlain);
    for (Value& value : values_) cut_.AddValue(value.writer, std::move(value.readers), value.copy);
    const std::vector<bool> last = cut_.Choose();
    std::size_t op = 0;
    for (std::optional<Form>& form : forms) {
      if (form && !last[op++]) form.reset();
    }
    return forms;
  }

  // After Choose: the types of what each instruction writes, images in the plain layout.
  const std::vector<Types>& written() const { return written_; }

 private:
  struct Value {
    int writer = LayoutCut::kPlain;
    std::vector<int> readers;
    double copy = 0;
  };

  const TensorDesc& Known(int slot) const { return known_[static_cast<std::size_t>(slot)]; }

  std::optional<Form> FormOf(const Instruction& instruction, const InferContext& inferred) const {
    if (instruction.starts_blocks || instruction.def->effects().AreOutside()) return std::nullopt;
    if (instruction.def->reads_only_some() && !AreWritten(instruction)) return std::nullopt;
    Form form;
    if (instruction.def->keeps_layout() && !instruction.def->optimizer().has_value()) {
      if (MarkSameShape(instruction, inferred, form)) {
        form.op = instruction.op;
        return form;
      }
      form = Form();
    }
    const ChannelsLast* how = instruction.def->channels_last();
    if (how == nullptr || !MarkDeclared(instruction, *how, inferred, form)) return std::nullopt;
    Op op = *instruction.op;
    if (!how->convert(inferred, op)) return std::nullopt;
    form.op = std::make_shared<const Op>(std::move(op));
    if (how->cost != nullptr) form.cost = how->cost(inferred);
    return form;
  }

  // Whether all inputs have values: an op before this one writes each.
  bool AreWritten(const Instruction& instruction) const {
    return std::ranges::all_of(instruction.inputs, [this](const std::vector<int>& row) {
      return std::ranges::all_of(row, [this](int slot) {
        if (slot < 0) return true;
        const bool by_block = block_.slots[static_cast<std::size_t>(slot)].written_by_block;
        return value_of_[static_cast<std::size_t>(slot)] >= 0 && !by_block;
      });
    });
  }

  // Calls mark(slot of the op, type, slot) for each argument; false: there is no form. Absent ones are no
  // images.
  template <typename Mark>
  bool MarkAll(const Instruction& instruction, const InferContext& inferred, Form& form,
               const Mark& mark) const {
    bool reads_image = false;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      std::vector<bool>& marks = form.inputs.emplace_back();
      for (const int slot : instruction.inputs[i]) {
        const std::optional<bool> image =
            slot < 0 ? false : mark(instruction.op->inputs()[i].name.str(), Known(slot), false);
        if (!image) return false;
        marks.push_back(*image);
        reads_image |= *image;
      }
    }
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      std::vector<bool>& marks = form.outputs.emplace_back();
      for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
        const int slot = instruction.outputs[i][j];
        const std::optional<bool> image =
            slot < 0 ? false : mark(instruction.op->outputs()[i].name.str(), inferred.outputs()[i][j], true);
        if (!image || (*image && plain_only_[static_cast<std::size_t>(slot)])) return false;
        marks.push_back(*image);
      }
    }
    return reads_image;
  }

  bool MarkDeclared(const Instruction& instruction, const ChannelsLast& how, const InferContext& inferred,
                    Form& form) const {
    return MarkAll(instruction, inferred, form,
                   [&](const std::string& name, const TensorDesc& info, bool) -> std::optional<bool> {
                     if (!how.IsImage(name)) return false;
                     if (!IsImage(info) || info.dtype != DType::kFp32) return std::nullopt;
                     return true;
                   });
  }

  bool MarkSameShape(const Instruction& instruction, const InferContext& inferred, Form& form) const {
    const Shape* image = nullptr;
    return MarkAll(instruction, inferred, form,
                   [&](const std::string&, const TensorDesc& info, bool output) -> std::optional<bool> {
                     if (!IsKnownTensor(info)) return std::nullopt;
                     if (!output && info.shape.Count() == 1) return false;
                     if (!IsImage(info)) return std::nullopt;
                     if (image == nullptr) image = &info.shape;
                     if (info.shape != *image) return std::nullopt;
                     return true;
                   });
  }

  void AddOp(const Instruction& instruction, const std::optional<Form>& form, const InferContext& inferred) {
    const int op = form ? cut_.AddOp(form->cost.plain, form->cost.channels_last) : LayoutCut::kPlain;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      for (std::size_t j = 0; j < instruction.inputs[i].size(); ++j)
        Read(instruction.inputs[i][j], form && form->inputs[i][j] ? op : LayoutCut::kPlain);
    }
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
        const int slot = instruction.outputs[i][j];
        if (slot < 0) continue;
        known_[static_cast<std::size_t>(slot)] = inferred.outputs()[i][j];
        Write(slot, form && form->outputs[i][j] ? op : LayoutCut::kPlain);
      }
    }
  }

  void Read(int slot, int op) {
    if (slot < 0 || !IsImage(Known(slot))) return;
    if (value_of_[static_cast<std::size_t>(slot)] < 0) Write(slot, LayoutCut::kPlain);  // from before the run
    values_[static_cast<std::size_t>(value_of_[static_cast<std::size_t>(slot)])].readers.push_back(op);
  }
  void Write(int slot, int op) {
    if (!IsImage(Known(slot))) return;
    value_of_[static_cast<std::size_t>(slot)] = static_cast<int>(values_.size());
    values_.push_back({op, {}, CopyNs(Known(slot).shape)});
  }

  const CompiledBlock& block_;
  std::vector<TensorDesc> known_;
  std::vector<bool> plain_only_;  // by slot: others may look at it
  std::vector<int> value_of_;     // by slot: its value at this point; -1: none was read or written
  std::vector<Value> values_;
  std::vector<Types> written_;
  LayoutCut cut_;
};

// Writes the block anew with the chosen forms and the copies between layouts.
class Rewriter {
 public:
  // `known`: the types of the slots before the run.
  Rewriter(const OpRegistry& ops, const CompiledBlock& block, std::span<const TensorDesc> known)
      : transpose_(ops.Find(kTransposeOp)),
        types_(known.begin(), known.end()),
        out_(std::make_shared<CompiledBlock>(block)),
        states_(block.slots.size()) {
    out_->instructions.clear();
  }

  std::shared_ptr<const CompiledBlock> Rewrite(const CompiledBlock& block,
                                               const std::vector<std::optional<Form>>& forms,
                                               const std::vector<Types>& written) {
    for (std::size_t i = 0; i < block.instructions.size(); ++i) {
      Add(block.instructions[i], forms[i], written[i]);
      moved_to_.push_back(static_cast<int>(out_->instructions.size()) - 1);
    }
    for (const int slot : block.fetches) NeedPlain(slot, block.instructions.back().position);
    MoveUses();
    return out_;
  }

 private:
  // Where the value of a slot is.
  struct State {
    bool plain = true, last = false;
    int last_slot = -1;  // -1: none was made
    Shape last_shape;    // in the plain layout
  };
  State& state(int slot) { return states_[static_cast<std::size_t>(slot)]; }

  void Add(const Instruction& instruction, const std::optional<Form>& form, const Types& written) {
    Instruction made = instruction;
    for (std::size_t i = 0; i < made.inputs.size(); ++i) {
      for (std::size_t j = 0; j < made.inputs[i].size(); ++j) {
        const int slot = made.inputs[i][j];
        if (slot < 0) continue;
        if (form && form->inputs[i][j]) {
          made.inputs[i][j] = NeedLast(slot, instruction.position);
        } else {
          NeedPlain(slot, instruction.position);
        }
      }
    }
    for (std::size_t i = 0; i < made.outputs.size(); ++i) {
      for (std::size_t j = 0; j < made.outputs[i].size(); ++j) {
        const int slot = made.outputs[i][j];
        if (slot < 0) continue;
        types_[static_cast<std::size_t>(slot)] = written[i][j];
        const bool last = form && form->outputs[i][j];
        if (last) made.outputs[i][j] = LastOf(slot);
        state(slot).last = last;
        state(slot).plain = !last;
      }
    }
    if (form) made.op = Renamed(*form->op, made);
    out_->instructions.push_back(std::move(made));
  }

  // The op with the names of its instruction's slots.
  OpRef Renamed(Op op, const Instruction& instruction) const {
    const auto names = [&](const Slot& slot, const std::vector<int>& slots) {
      std::vector<std::string> args(slot.args.begin(), slot.args.end());
      for (std::size_t j = 0; j < args.size(); ++j) {
        if (slots[j] >= 0) args[j] = Name(slots[j]);
      }
      return args;
    };
    const std::vector<Slot> inputs = op.inputs(), outputs = op.outputs();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      op.AddInput(inputs[i].name.str(), names(inputs[i], instruction.inputs[i]));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      op.AddOutput(outputs[i].name.str(), names(outputs[i], instruction.outputs[i]));
    return std::make_shared<const Op>(std::move(op));
  }

  int NeedLast(int slot, int position) {
    const int last = LastOf(slot);
    if (!state(slot).last) AddCopy(slot, true, position);
    state(slot).last = true;
    return last;
  }
  void NeedPlain(int slot, int position) {
    if (state(slot).plain) return;
    AddCopy(slot, false, position);
    state(slot).plain = true;
  }

  // The slot that holds a slot's value channels last. A value of another shape gets another.
  int LastOf(int slot) {
    const TensorDesc& type = types_[static_cast<std::size_t>(slot)];
    if (state(slot).last_slot >= 0 && state(slot).last_shape == type.shape) return state(slot).last_slot;
    Shape shape = {type.shape[0]};
    for (int i = 2; i < type.shape.rank(); ++i) shape.Append(type.shape[i]);
    shape.Append(type.shape[1]);
    SlotInfo made;
    made.name = StrCat(Name(slot), kLastSuffix, state(slot).last_slot < 0 ? "" : StrCat(out_->slots.size()));
    made.var = std::make_shared<const Var>(TensorVar(made.name, type.dtype, std::move(shape)));
    out_->slots.push_back(std::move(made));
    state(slot).last_shape = type.shape;
    return state(slot).last_slot = static_cast<int>(out_->slots.size()) - 1;
  }

  // Adds an instruction that copies the slot's value into the other layout.
  void AddCopy(int slot, bool to_last, int position) {
    const int rank = types_[static_cast<std::size_t>(slot)].shape.rank();
    std::vector<std::int32_t> axis = {0};
    if (to_last) {
      for (int i = 2; i < rank; ++i) axis.push_back(i);
      axis.push_back(1);
    } else {
      axis.push_back(rank - 1);
      for (int i = 1; i < rank - 1; ++i) axis.push_back(i);
    }
    const int from = to_last ? slot : state(slot).last_slot, to = to_last ? state(slot).last_slot : slot;
    Instruction copy;
    copy.op = std::make_shared<const Op>(Op(kTransposeOp)
                                             .AddInput("X", {Name(from)})
                                             .AddOutput("Out", {Name(to)})
                                             .Set("axis", Attr(std::move(axis))));
    copy.def = transpose_;
    copy.position = position;
    copy.inputs = {{from}};
    copy.outputs = {{to}};
    out_->instructions.push_back(std::move(copy));
  }
  const std::string& Name(int slot) const { return out_->slots[static_cast<std::size_t>(slot)].name; }

  // The slots that have two layouts are used by other instructions than before.
  void MoveUses() {
    std::vector<bool> measured(out_->slots.size(), true);
    for (std::size_t s = 0; s < states_.size(); ++s) measured[s] = states_[s].last_slot >= 0;
    MoveLives(*out_, moved_to_, measured);
  }

  const OpDef* transpose_;
  std::vector<TensorDesc> types_;  // by slot of the block before, images in the plain layout
  std::shared_ptr<CompiledBlock> out_;
  std::vector<State> states_;  // by slot of the block before
  std::vector<int> moved_to_;  // by instruction of the block before
};

}  // namespace

std::shared_ptr<const CompiledBlock> StoreChannelsLast(const OpRegistry& ops,
                                                       const std::shared_ptr<const CompiledBlock>& block,
                                                       std::span<const TensorDesc> known) {
  if (std::ranges::none_of(block->instructions, MayChoose)) return block;
  Analysis analysis(*block, known);
  const auto forms = analysis.Choose();
  const auto chosen = [](const std::optional<Form>& form) { return form.has_value(); };
  if (!forms || std::ranges::none_of(*forms, chosen)) return block;
  return Rewriter(ops, *block, known).Rewrite(*block, *forms, analysis.written());
}

}  // namespace penstock::exec
