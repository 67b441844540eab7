// UpdateByProgram: an optimizer's program with the variables of a key.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "executor/kvstore/optimizer_program.h"
#include "framework/base/strings.h"
#include "framework/ir/block_uses.h"
#include "framework/op/conform.h"
#include "framework/op/infer_context.h"
#include "framework/op/operand_kinds.h"
#include "framework/text/describe.h"
#include "framework/verify/verifier.h"

namespace penstock::kvstore {
namespace {

// Puts a key into the parameter's place. Block kStart is the startup program's main block, and declares what
// lives in the key's scope; block kUpdate is the update's main block, and the blocks that it runs follow.
class KeyProgram {
 public:
  KeyProgram(const OptimizerProgram& given, const KeyFacts& key)
      : given_(given),
        key_(key),
        variable_(key.variable.empty() ? key.key : key.variable),
        type_(key.dtype == DType::kFp16 ? DType::kFp32 : key.dtype),
        placeholder_(*given.update.block(0).FindVar(given.param)->type) {}

  Result<KeyUpdate> Make() {
    made_.param = NameOf(given_.param);
    made_.grad = NameOf(given_.grad);
    for (const std::string& state : given_.states) made_.states.push_back(NameOf(state));
    for (int b = 0; b < given_.update.block_count(); ++b)
      made_.program.AddBlock(b == 0 ? KeyUpdate::kStart : given_.update.block(b).parent() + 1);
    Block& start = made_.program.MutableBlock(KeyUpdate::kStart);
    for (const VarRef& var : given_.start.block(0).vars()) start.SetVar(Fitted(*var));
    for (const OpEntry& entry : given_.start.block(0).ops()) start.Append(Fitted(*entry.op));
    const std::set<std::string> states(given_.states.begin(), given_.states.end());
    for (int b = 0; b < given_.update.block_count(); ++b) {
      const Block& from = given_.update.block(b);
      for (const VarRef& var : from.vars()) {
        const bool is_kept =
            b == 0 && (var->name == given_.param || var->name == given_.grad || states.contains(var->name));
        made_.program.MutableBlock(is_kept ? KeyUpdate::kStart : b + 1).SetVar(Fitted(*var));
      }
      Block& to = made_.program.MutableBlock(b + 1);
      for (const OpEntry& entry : from.ops()) to.Append(Fitted(*entry.op));
    }
    InferTypes(KeyUpdate::kUpdate);
    PENSTOCK_RETURN_IF_ERROR(OfKey(VerifyProgram(made_.program, {.ops = given_.ops})));
    PENSTOCK_RETURN_IF_ERROR(OfKey(CheckKinds()));
    return std::move(made_);
  }

 private:
  std::string NameOf(const std::string& name) const {
    if (name == kEmptyVarName || name.empty()) return name;
    if (name == given_.param) return variable_;
    return StrCat(variable_, "@", name == given_.grad ? "GRAD" : name);
  }

  Var Fitted(const Var& given) const {
    Var var = given;
    var.name = NameOf(given.name);
    var.wire_bytes = Word();
    if (var.type && var.type->dtype == placeholder_.dtype) var.type->dtype = type_;
    if (var.type && var.type->shape == placeholder_.shape) var.type->shape = key_.shape;
    if (given.name == given_.grad && key_.rows) var.kind = VarKind::kSelectedRows;
    return var;
  }

  ArgList Fitted(const ArgList& given) const {
    std::vector<std::string> names;
    for (const std::string& name : given) names.push_back(NameOf(name));
    return names;
  }

  Attr Fitted(const NamedAttr& given) const {
    constexpr std::array<std::string_view, 3> kTypes = {"dtype", "in_dtype", "out_dtype"};
    if (const auto* const block = std::get_if<BlockRef>(&given.value)) return BlockRef{block->index + 1};
    if (const auto* const type = std::get_if<std::int32_t>(&given.value)) {
      const bool is_own = *type == static_cast<std::int32_t>(placeholder_.dtype) &&
                          std::ranges::count(kTypes, given.name.str()) > 0;
      return is_own ? static_cast<std::int32_t>(type_) : *type;
    }
    if (given.name.str() != "shape") return given.value;
    std::vector<std::int64_t> extents;
    if (const auto* const longs = std::get_if<std::vector<std::int64_t>>(&given.value)) extents = *longs;
    if (const auto* const ints = std::get_if<std::vector<std::int32_t>>(&given.value))
      extents.assign(ints->begin(), ints->end());
    if (Shape(extents) != placeholder_.shape) return given.value;
    return std::vector<std::int64_t>(key_.shape.dims().begin(), key_.shape.dims().end());
  }

  Op Fitted(const Op& given) const {
    Op op{Word(given.type())};
    for (const Slot& slot : given.inputs()) op.AddInput(slot.name.str(), Fitted(slot.args));
    for (const Slot& slot : given.outputs()) op.AddOutput(slot.name.str(), Fitted(slot.args));
    for (const NamedAttr& attr : given.attrs()) {
      if (attr.name.str() != "op_role_var" && attr.name.str() != "op_callstack")
        op.Set(attr.name.str(), Fitted(attr));
    }
    op.SetLocation(given.location());
    return op;
  }

  Status OfKey(const Status& fits) const {
    if (fits.ok()) return fits;
    Status why = InvalidArgument("E-kv-program-key", "the optimizer's program cannot update key ", key_.key,
                                 ", ", DTypeName(key_.dtype), key_.shape,
                                 key_.rows ? " with gradients of rows" : "", ": ", fits.message());
    for (const std::string& detail : fits.details()) why.With(detail);
    return why;
  }

  // Whether each op takes rows where the key's gradient, or what follows from it, is rows. The verification
  // lets a tensor stand for them.
  Status CheckKinds() const {
    for (int block = KeyUpdate::kUpdate; key_.rows && block < made_.program.block_count(); ++block) {
      const std::vector<OpEntry>& ops = made_.program.block(block).ops();
      for (std::size_t i = 0; i < ops.size(); ++i)
        PENSTOCK_RETURN_IF_ERROR(CheckKindsOf(*ops[i].op, block, static_cast<int>(i)));
    }
    return OkStatus();
  }

  Status CheckKindsOf(const Op& op, int block, int position) const {
    const OpDef* const def = given_.ops->Find(op.type());
    for (const Slot& slot : op.inputs()) {
      const SlotDef* const input = def == nullptr ? nullptr : def->FindInput(slot.name.str());
      for (const std::string& name : slot.args) {
        const Var* const var = made_.program.FindVar(block, name);
        if (input == nullptr || var == nullptr || input->kinds.Has(var->kind)) continue;
        return AtOp(KindError(*def, *input, name, var->kind), made_.program, block, position, op);
      }
    }
    return OkStatus();
  }

  // Temporaries get the types that follow from the key's. Errors are those of the verification behind it.
  void InferTypes(int block) {
    if (!inferred_.insert(block).second) return;
    for (std::size_t i = 0; i < made_.program.block(block).ops().size(); ++i) {
      const OpRef op = made_.program.block(block).ops()[i].op;
      for (const int started : StartedBlocks(*op)) InferTypes(started);
      const OpDef* const def = given_.ops->Find(op->type());
      if (def == nullptr || !def->has_infer_shape() || !def->CheckOp(*op).ok()) continue;
      const std::optional<Op> conformed = Conformed(*def, *op);
      InferContext context(*def, conformed ? *conformed : *op,
                           [&](const std::string& name) -> std::optional<TensorDesc> {
                             const Var* const var = made_.program.FindVar(block, name);
                             return var == nullptr ? std::nullopt : std::optional(DescOf(*var));
                           });
      if (!def->Infer(context).ok()) continue;
      for (std::size_t s = 0; s < op->outputs().size(); ++s) {
        for (std::size_t a = 0; a < op->outputs()[s].args.size(); ++a)
          SetType(block, op->outputs()[s].args[a], context.outputs()[s][a]);
      }
    }
  }

  void SetType(int block, const std::string& name, const TensorDesc& inferred) {
    const int at = made_.program.BlockOfVar(block, name);
    if (at <= KeyUpdate::kStart) return;  // of the key's scope, or no name
    Var var = *made_.program.block(at).FindVar(name);
    if (!var.type || !inferred.has_type) return;
    var.kind = inferred.kind;
    var.type->dtype = inferred.dtype;
    var.type->shape = inferred.shape;
    made_.program.MutableBlock(at).SetVar(std::move(var));
  }

  const OptimizerProgram& given_;
  const KeyFacts& key_;
  const std::string variable_;
  const DType type_;
  const TensorType placeholder_;
  KeyUpdate made_;
  std::set<int> inferred_;  // blocks
};

}  // namespace

Result<KeyUpdate> UpdateByProgram(const OptimizerProgram& program, const KeyFacts& key) {
  return KeyProgram(program, key).Make();
}

}  // namespace penstock::kvstore
