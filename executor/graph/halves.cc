#include "executor/graph/halves.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "framework/ir/edit.h"

namespace penstock::exec {
namespace {

constexpr std::int32_t kHalf = static_cast<std::int32_t>(DType::kFp16);
constexpr std::int32_t kFloat = static_cast<std::int32_t>(DType::kFp32);

const Var* FindDeclared(const Program& program, int block, std::string_view name) {
  for (int at = block; at >= 0; at = program.block(at).parent()) {
    if (const Var* var = program.block(at).FindVar(name)) return var;
  }
  return nullptr;
}

// Converts the ops of one block, in their order.
class Converter {
 public:
  Converter(const OpRegistry& ops, const Program& program, int block)
      : ops_(ops), program_(program), block_(block), edit_(program) {}

  Result<Program> Convert() {
    bool changed = false;
    for (const OpEntry& entry : program_.block(block_).ops()) {
      if (ComputesInFloat(*entry.op)) {
        ConvertOp(entry);
        changed = true;
      }
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) converted_.erase(name);
      }
    }
    return changed ? edit_.Apply() : Result<Program>(program_);
  }

 private:
  bool IsHalf(const std::string& name) const {
    const Var* var = FindDeclared(program_, block_, name);
    return var != nullptr && var->kind == VarKind::kTensor && var->type && var->type->dtype == DType::kFp16;
  }
  bool NamesHalf(const std::vector<Slot>& slots) const {
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return std::any_of(slot.args.begin(), slot.args.end(),
                         [&](const std::string& name) { return IsHalf(name); });
    });
  }
  bool ComputesInFloat(const Op& op) const {
    const OpDef* def = ops_.Find(op.type());
    return def != nullptr && def->FindKernel(DeviceKind::kCpu, DType::kFp16) == nullptr &&
           def->FindKernel(DeviceKind::kCpu, DType::kFp32) != nullptr &&
           (NamesHalf(op.inputs()) || NamesHalf(op.outputs()));
  }

  // The float32 variable beside a float16 one, declared at its first use.
  const std::string& FloatOf(const std::string& name) {
    std::string& made = floats_[name];
    if (!made.empty()) return made;
    made = name + "@FP32";
    while (FindDeclared(program_, block_, made) != nullptr) made += "_";
    Var var = *FindDeclared(program_, block_, name);
    var.name = made;
    var.type->dtype = DType::kFp32;
    var.persistable = false;
    var.need_check_feed = false;
    var.facts = {};
    var.wire_bytes = {};
    edit_.block(block_).SetVar(std::move(var));
    return made;
  }

  static Op Cast(const Op& beside, const std::string& from, const std::string& to, std::int32_t in,
                 std::int32_t out) {
    Op cast("cast");
    cast.AddInput("X", {from}).AddOutput("Out", {to}).Set("in_dtype", in).Set("out_dtype", out);
    cast.SetRole(beside.role()).SetLocation(beside.location()).SetMadeBy("compute_halves_in_float");
    return cast;
  }

  void ConvertOp(const OpEntry& entry) {
    BlockEdit& edit = edit_.block(block_);
    Op op = *entry.op;
    for (const Slot& slot : entry.op->inputs()) {
      ArgList args;
      for (const std::string& name : slot.args) {
        if (IsHalf(name) && converted_.insert(name).second) {
          edit.InsertBefore(entry.id, Cast(op, name, FloatOf(name), kHalf, kFloat));
        }
        args.push_back(IsHalf(name) ? FloatOf(name) : name);
      }
      op.AddInput(slot.name.str(), std::move(args));
    }
    for (const Slot& slot : entry.op->outputs()) {
      ArgList args;
      for (const std::string& name : slot.args) {
        if (IsHalf(name)) edit.InsertAfter(entry.id, Cast(op, FloatOf(name), name, kFloat, kHalf));
        args.push_back(IsHalf(name) ? FloatOf(name) : name);
      }
      op.AddOutput(slot.name.str(), std::move(args));
    }
    for (const char* attr : {"dtype", "out_dtype", "in_dtype"}) {
      if (op.GetOr<std::int32_t>(attr, kFloat) == kHalf) op.Set(attr, kFloat);
    }
    edit.Replace(entry.id, std::move(op));
  }

  const OpRegistry& ops_;
  const Program& program_;
  const int block_;
  ProgramEdit edit_;
  std::map<std::string, std::string> floats_;  // float16 variable -> its float32 variable
  std::set<std::string> converted_;            // variables whose float32 variable has their value
};

bool DeclaresHalf(const Program& program, int block) {
  for (int at = block; at >= 0; at = program.block(at).parent()) {
    for (const VarRef& var : program.block(at).vars()) {
      if (var->type && var->type->dtype == DType::kFp16) return true;
    }
  }
  return false;
}

}  // namespace

Result<Program> ComputeHalvesInFloat(const OpRegistry& ops, const Program& program, int block) {
  if (!DeclaresHalf(program, block)) return program;
  return Converter(ops, program, block).Convert();
}

}  // namespace penstock::exec
