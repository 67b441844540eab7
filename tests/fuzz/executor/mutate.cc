#include "tests/fuzz/executor/mutate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/all_ops.h"

namespace penstock::fuzz {
namespace {

constexpr DType kTypes[] = {DType::kFp32,  DType::kFp32,  DType::kInt64, DType::kInt64,
                            DType::kFp64,  DType::kInt32, DType::kInt16, DType::kBool,
                            DType::kUInt8, DType::kInt8,  DType::kFp16,  DType::kSizeT};
constexpr VarKind kKinds[] = {VarKind::kTensor,      VarKind::kTensor,     VarKind::kSelectedRows,
                              VarKind::kTensorArray, VarKind::kStepScopes, VarKind::kRankTable,
                              VarKind::kRaw,         VarKind::kReader};

DraftBlock& AnyBlock(Draft& draft, Draw& draw) {
  // Prefers block 0, which runs first and most.
  if (draft.blocks.size() == 1 || draw.OneIn(2)) return draft.blocks[0];
  return draft.blocks[static_cast<std::size_t>(draw.Below(static_cast<int>(draft.blocks.size())))];
}

template <typename T>
T* AnyOf(std::vector<T>& list, Draw& draw) {
  return list.empty() ? nullptr : &list[static_cast<std::size_t>(draw.Below(static_cast<int>(list.size())))];
}

// A variable that is visible in the block; in half of all cases one of the block itself.
std::string AnyName(const Draft& draft, const DraftBlock& block, Draw& draw) {
  const std::vector<Var>* vars = &block.vars;
  if (vars->empty() || draw.OneIn(3)) vars = &draft.blocks[0].vars;
  if (vars->empty()) return "nothing";
  return (*vars)[static_cast<std::size_t>(draw.Below(static_cast<int>(vars->size())))].name;
}

const Var* Declared(const Draft& draft, const DraftBlock& block, const std::string& name) {
  for (const DraftBlock* in : {&block, &draft.blocks[0]}) {
    for (const Var& var : in->vars) {
      if (var.name == name) return &var;
    }
  }
  return nullptr;
}

// A variable of the same element type as `name`, if a few tries find one.
std::string NameLike(const Draft& draft, const DraftBlock& block, const std::string& name, Draw& draw) {
  const Var* old = Declared(draft, block, name);
  std::string found = AnyName(draft, block, draw);
  for (int i = 0; i < 6; ++i) {
    const Var* var = Declared(draft, block, found);
    if (old == nullptr || var == nullptr || !old->type || !var->type) break;
    if (var->kind == old->kind && var->type->dtype == old->type->dtype && found != name) break;
    found = AnyName(draft, block, draw);
  }
  return found;
}

std::int64_t OddInteger(Draw& draw, std::int64_t old) {
  static constexpr std::int64_t kOdd[] = {0, 1, -1, 2, 3, 4, 5, 7, 8, 16, -2, -100, 100, 1000, 65536};
  switch (draw.Below(5)) {
    case 0:
      return old < std::numeric_limits<std::int64_t>::max() ? old + 1 : old;
    case 1:
      return old > std::numeric_limits<std::int64_t>::min() ? old - 1 : old;
    case 2:
      if (draw.OneIn(3)) {
        static constexpr std::int64_t kHuge[] = {std::numeric_limits<std::int32_t>::max(),
                                                 std::numeric_limits<std::int32_t>::min(),
                                                 std::numeric_limits<std::int64_t>::max(),
                                                 std::numeric_limits<std::int64_t>::min(),
                                                 std::int64_t{1} << 31,
                                                 std::int64_t{1} << 33,
                                                 (std::int64_t{1} << 62) + 1};
        return draw.Of(kHuge);
      }
      [[fallthrough]];
    default:
      return draw.Of(kOdd);
  }
}

float OddFloat(Draw& draw) {
  static constexpr float kOdd[] = {0.0f,
                                   1.0f,
                                   -1.0f,
                                   0.5f,
                                   2.0f,
                                   1e-8f,
                                   1e30f,
                                   -1e30f,
                                   3.7f,
                                   std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN(),
                                   100.0f};
  return draw.Of(kOdd);
}

std::string OddString(Draw& draw) {
  static constexpr const char* kOdd[] = {"",
                                         "SUM",
                                         "AVERAGE",
                                         "MAX",
                                         "LAST",
                                         "FIRST",
                                         "SQRT",
                                         "tanh",
                                         "sigmoid",
                                         "relu",
                                         "identity",
                                         "VALID",
                                         "SAME",
                                         "EXPLICIT",
                                         "NCHW",
                                         "NHWC",
                                         "constant",
                                         "reflect",
                                         "edge",
                                         "max",
                                         "avg",
                                         "upscale_in_train",
                                         "downgrade_in_infer",
                                         "channel",
                                         "element",
                                         "all",
                                         "IOB",
                                         "float32",
                                         "nonsense",
                                         "mean",
                                         "IOE"};
  return draw.Of(kOdd);
}

template <typename T>
T OddValue(const Draft& draft, Draw& draw, const T& old) {
  if constexpr (std::is_same_v<T, bool>) {
    return !old;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(OddInteger(draw, old));
  } else if constexpr (std::is_same_v<T, float>) {
    return OddFloat(draw);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return OddString(draw);
  } else if constexpr (std::is_same_v<T, BlockRef>) {
    return BlockRef{draw.Between(-1, static_cast<int>(draft.blocks.size()))};
  } else {
    using Element = typename T::value_type;
    T list = old;
    const int at = draw.Below(static_cast<int>(list.size()) + 1);
    const bool inside = at < static_cast<int>(list.size());
    switch (draw.Below(4)) {
      case 0:
        list.push_back(OddValue<Element>(draft, draw, Element{}));
        return list;
      case 1:
        if (inside) list.erase(list.begin() + at);
        return list;
      case 2:
        if (draw.OneIn(4)) list.clear();
        return list;
      default:
        if (inside)
          list[static_cast<std::size_t>(at)] =
              OddValue<Element>(draft, draw, list[static_cast<std::size_t>(at)]);
        return list;
    }
  }
}

Attr OddAttr(const Draft& draft, Draw& draw, const Attr& old) {
  return std::visit([&](const auto& value) { return Attr(OddValue(draft, draw, value)); }, old);
}

Attr ZeroOf(AttrKind kind) {
  Attr attrs[] = {Attr(std::int32_t{0}),
                  Attr(0.0f),
                  Attr(std::string()),
                  Attr(std::vector<std::int32_t>()),
                  Attr(std::vector<float>()),
                  Attr(std::vector<std::string>()),
                  Attr(false),
                  Attr(std::vector<bool>()),
                  Attr(BlockRef{}),
                  Attr(std::int64_t{0}),
                  Attr(std::vector<BlockRef>()),
                  Attr(std::vector<std::int64_t>())};
  return attrs[static_cast<std::size_t>(kind)];
}

void ChangeAttr(Draft& draft, const Draft&, Draw& draw) {
  Op* op = AnyOf(AnyBlock(draft, draw).ops, draw);
  if (op == nullptr) return;
  const OpDef* def = AllOps().Find(op->type());
  // An attribute of the schema that the op omits.
  if (def != nullptr && !def->attrs().empty() && draw.OneIn(2)) {
    const AttrDef& attr = draw.Of(def->attrs());
    const Attr* given = op->FindAttr(attr.name);
    const Attr old = given != nullptr ? *given : attr.default_value ? *attr.default_value : ZeroOf(attr.kind);
    op->Set(attr.name, attr.check.rule == nullptr || draw.OneIn(3) ? OddAttr(draft, draw, old) : old);
    return;
  }
  if (op->attrs().empty()) return;
  const NamedAttr attr = draw.Of(op->attrs());
  if (draw.OneIn(12)) {
    op->RemoveAttr(attr.name);
  } else {
    op->Set(attr.name, OddAttr(draft, draw, attr.value));
  }
}

// Replaces the arguments of one slot, inputs and outputs alike.
void SetSlot(Op& op, bool input, const std::string& slot, std::vector<std::string> args) {
  if (input) {
    op.AddInput(slot, ArgList(std::move(args)));
  } else {
    op.AddOutput(slot, ArgList(std::move(args)));
  }
}

void ChangeArgument(Draft& draft, const Draft&, Draw& draw) {
  DraftBlock& block = AnyBlock(draft, draw);
  Op* op = AnyOf(block.ops, draw);
  if (op == nullptr) return;
  const bool input = draw.OneIn(2);
  const std::vector<Slot>& slots = input ? op->inputs() : op->outputs();
  if (slots.empty()) return;
  const Slot slot = draw.Of(slots);
  std::vector<std::string> args(slot.args);
  const std::size_t at =
      args.empty() ? 0 : static_cast<std::size_t>(draw.Below(static_cast<int>(args.size())));
  switch (draw.Below(10)) {
    case 0:
      args.push_back(AnyName(draft, block, draw));
      break;
    case 1:
      if (!args.empty()) args.erase(args.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      if (!args.empty()) args[at] = kEmptyVarName;
      break;
    case 3:
      if (!args.empty()) args.push_back(args[at]);
      break;
    case 4: {  // the arguments of another slot of the op: two slots with one variable
      const std::vector<Slot>& others = draw.OneIn(2) ? op->inputs() : op->outputs();
      if (others.empty()) return;
      const Slot other = draw.Of(others);
      if (!args.empty() && !other.args.empty()) args[at] = other.args.front();
      break;
    }
    case 5: {  // two slots swap their arguments
      const Slot other = draw.Of(slots);
      SetSlot(*op, input, other.name, std::vector<std::string>(slot.args));
      args = std::vector<std::string>(other.args);
      break;
    }
    case 6:
      if (!args.empty()) args[at] = AnyName(draft, block, draw);
      break;
    default:
      if (!args.empty()) args[at] = NameLike(draft, block, args[at], draw);
  }
  SetSlot(*op, input, slot.name, std::move(args));
}

void ChangeShape(Shape& shape, Draw& draw) {
  const int at = shape.rank() == 0 ? 0 : draw.Below(shape.rank());
  switch (draw.Below(5)) {
    case 0:
      shape = Concat(Shape{OddExtent(draw)}, shape);
      break;
    case 1:
      shape.Append(draw.Between(1, 3));
      break;
    case 2:
      if (shape.rank() > 0) shape = Concat(shape.First(at), shape.From(at + 1));
      break;
    default:
      if (shape.rank() > 0) shape.Set(at, OddExtent(draw));
  }
}

void ChangeVar(Draft& draft, const Draft&, Draw& draw) {
  Var* var = AnyOf(AnyBlock(draft, draw).vars, draw);
  if (var == nullptr) return;
  switch (draw.Below(10)) {
    case 0:
      var->kind = draw.Of(kKinds);
      if (!var->type && draw.OneIn(2)) var->type = TensorType{};
      break;
    case 1:
      var->persistable = !var->persistable;
      break;
    case 2:
      var->facts.is_data = !var->facts.is_data;
      break;
    case 3:
      if (draw.OneIn(4)) var->type.reset();
      break;
    case 4:
    case 5:
      if (var->type) var->type->dtype = draw.Of(kTypes);
      break;
    case 6:
      if (var->type) var->type->lod_level = draw.Below(4);
      break;
    default:
      if (var->type) ChangeShape(var->type->shape, draw);
  }
}

void ChangeOrder(Draft& draft, const Draft&, Draw& draw) {
  DraftBlock& block = AnyBlock(draft, draw);
  std::vector<Op>& ops = block.ops;
  if (ops.empty()) return;
  const auto at = [&] { return static_cast<std::ptrdiff_t>(draw.Below(static_cast<int>(ops.size()))); };
  switch (draw.Below(5)) {
    case 0:
      ops.erase(ops.begin() + at());
      break;
    case 1: {
      const Op again = ops[static_cast<std::size_t>(at())];
      ops.insert(ops.begin() + at(), again);
      break;
    }
    case 2:
      std::swap(ops[static_cast<std::size_t>(at())], ops[static_cast<std::size_t>(at())]);
      break;
    case 3: {
      const std::ptrdiff_t from = at();
      const Op moved = ops[static_cast<std::size_t>(from)];
      ops.erase(ops.begin() + from);
      AnyBlock(draft, draw).ops.push_back(moved);
      break;
    }
    default: {
      const std::ptrdiff_t i = at();
      std::rotate(ops.begin() + std::min(i, at()), ops.begin() + i, ops.begin() + i + 1);
    }
  }
}

void ChangeBlock(Draft& draft, const Draft&, Draw& draw) {
  const int count = static_cast<int>(draft.blocks.size());
  if (count == 1) return;
  DraftBlock& block = draft.blocks[static_cast<std::size_t>(draw.Between(1, count - 1))];
  switch (draw.Below(4)) {
    case 0:
      block.parent = draw.Below(count);
      break;
    case 1:  // adds a variable of the enclosing block as input or output
      if (const Var* var = AnyOf(draft.blocks[0].vars, draw)) block.vars.push_back(*var);
      break;
    case 2:
      if (const Var* var = AnyOf(block.vars, draw)) draft.blocks[0].vars.push_back(*var);
      break;
    default:
      if (!block.vars.empty())
        block.vars.erase(block.vars.begin() + draw.Below(static_cast<int>(block.vars.size())));
  }
}

void ChangeType(Draft& draft, const Draft&, Draw& draw) {
  static const std::vector<const OpDef*> all = AllOps().All();
  Op* op = AnyOf(AnyBlock(draft, draw).ops, draw);
  if (op == nullptr) return;
  // Prefers an op with the same slots.
  for (int i = 0; i < 60; ++i) {
    const OpDef* def = draw.Of(all);
    const bool takes =
        std::ranges::all_of(op->inputs(), [&](const Slot& s) { return def->FindInput(s.name) != nullptr; });
    const bool gives =
        std::ranges::all_of(op->outputs(), [&](const Slot& s) { return def->FindOutput(s.name) != nullptr; });
    if (!takes || !gives || def->type() == op->type()) continue;
    op->SetType(def->type());
    return;
  }
}

std::string NewVar(Draft& draft, DraftBlock& block, Draw& draw) {
  const std::string name = StrCat("new", draft.blocks.size(), "_", block.vars.size());
  Shape shape;
  for (int i = draw.Between(0, 3); i > 0; --i) shape.Append(draw.Between(1, 4));
  Var var = TensorVar(name, draw.Of(kTypes), shape);
  var.facts.is_data = draw.OneIn(4);
  block.vars.push_back(std::move(var));
  return name;
}

// Any op, with slots filled with existing variables.
void InsertAnyOp(Draft& draft, const Draft&, Draw& draw) {
  static const std::vector<const OpDef*> all = AllOps().All();
  DraftBlock& block = AnyBlock(draft, draw);
  const OpDef& def = *draw.Of(all);
  Op op(def.type());
  const auto fill = [&](const SlotDef& slot, bool input) {
    if (slot.optional && draw.OneIn(2)) return;
    std::vector<std::string> args;
    for (int n = slot.repeated ? draw.Between(1, 3) : 1; n > 0; --n)
      args.push_back(!input && draw.OneIn(2) ? NewVar(draft, block, draw) : AnyName(draft, block, draw));
    SetSlot(op, input, slot.name, std::move(args));
  };
  for (const SlotDef& slot : def.inputs()) fill(slot, true);
  for (const SlotDef& slot : def.outputs()) fill(slot, false);
  for (const AttrDef& attr : def.attrs()) {
    if (attr.default_value && !draw.OneIn(6)) continue;
    op.Set(attr.name, OddAttr(draft, draw, attr.default_value ? *attr.default_value : ZeroOf(attr.kind)));
  }
  block.ops.insert(block.ops.begin() + draw.Below(static_cast<int>(block.ops.size()) + 1), std::move(op));
}

// An op of another program with its variables, some of which are replaced by ours.
void InsertDonorsOp(Draft& draft, const Draft& donor, Draw& draw) {
  const DraftBlock& theirs = donor.blocks[0];
  if (theirs.ops.empty()) return;
  DraftBlock& block = AnyBlock(draft, draw);
  const int begin = draw.Below(static_cast<int>(theirs.ops.size()));
  const int end = std::min(begin + draw.Between(1, 4), static_cast<int>(theirs.ops.size()));
  const int at =
      draw.OneIn(2) ? static_cast<int>(block.ops.size()) : draw.Below(static_cast<int>(block.ops.size()) + 1);
  for (int i = begin; i < end; ++i) {
    Op op = theirs.ops[static_cast<std::size_t>(i)];
    for (const bool input : {true, false}) {
      const std::vector<Slot> slots = input ? op.inputs() : op.outputs();
      for (const Slot& slot : slots) {
        std::vector<std::string> args(slot.args);
        for (std::string& name : args) {
          const Var* var = Declared(donor, theirs, name);
          if (Declared(draft, block, name) == nullptr && var != nullptr) block.vars.push_back(*var);
          if (draw.OneIn(3)) name = NameLike(draft, block, name, draw);
        }
        SetSlot(op, input, slot.name, std::move(args));
      }
    }
    block.ops.insert(block.ops.begin() + std::min(at + i - begin, static_cast<int>(block.ops.size())),
                     std::move(op));
  }
}

}  // namespace

Dim OddExtent(Draw& draw) {
  static constexpr Dim kOdd[] = {-1, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17, 100, -1};
  if (draw.OneIn(30)) return OddInteger(draw, 1);
  return draw.Of(kOdd);
}

void Mutate(Draft& draft, const Draft& donor, Draw& draw) {
  static constexpr std::array<void (*)(Draft&, const Draft&, Draw&), 14> kChanges = {
      ChangeAttr, ChangeAttr,  ChangeArgument, ChangeArgument, ChangeArgument,
      ChangeVar,  ChangeVar,   ChangeVar,      ChangeOrder,    ChangeBlock,
      ChangeType, InsertAnyOp, InsertDonorsOp, InsertDonorsOp};
  draw.Of(kChanges)(draft, donor, draw);
}

}  // namespace penstock::fuzz
