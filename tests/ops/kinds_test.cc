// Variables of every kind in every slot of every op: a kind that a slot does not accept gives an error that
// says so, and none crashes the process.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/support/temp_dir.h"

namespace penstock::test {
namespace {

// A value of a wrong kind for a slot.
struct Stranger {
  std::string name;
  VarKind kind;
  std::function<void(Variable&)> make;  // null: it has no value
};

void MakeRows(Variable& variable) {
  variable.As<SelectedRows>() = {.rows = {2, 0}, .height = 3, .value = Ramp(DType::kFp32, {2, 3}, 1, 1)};
}

const std::vector<Stranger>& Strangers() {
  static const std::vector<Stranger> all = {
      {"an array", VarKind::kTensorArray,
       [](Variable& v) {
         v.As<TensorArray>() = {Ramp(DType::kFp32, {2, 3}, 1, 1), Tensor()};
       }},
      {"an empty array", VarKind::kTensorArray, [](Variable& v) { v.As<TensorArray>() = {}; }},
      {"rows", VarKind::kSelectedRows, MakeRows},
      {"rows without values", VarKind::kSelectedRows, [](Variable& v) { v.As<SelectedRows>().height = 3; }},
      {"a rank table", VarKind::kRankTable,
       [](Variable& v) {
         v.As<RankTable>().items = {{0, 2}};
       }},
      {"step scopes", VarKind::kStepScopes, [](Variable& v) { v.As<StepScopes>() = {nullptr}; }},
      {"a reader", VarKind::kReader, [](Variable& v) { v.As<Tensor>() = Ramp(DType::kInt64, {1}, 7, 0); }},
      {"raw", VarKind::kRaw, nullptr},
      {"nothing", VarKind::kTensor, nullptr},
  };
  return all;
}

// How a variable is declared.
Var Declared(const std::string& name, VarKind kind, DType type, const Shape& shape) {
  Var var = TensorVar(name, type, shape);
  var.kind = kind;
  if (kind != VarKind::kTensor && kind != VarKind::kSelectedRows && kind != VarKind::kTensorArray)
    var.type.reset();
  var.persistable = true;
  return var;
}

// A program of one op, with its inputs in the scope.
class OneOp {
 public:
  OneOp(const Op& op, const Tensors& inputs) : op_(op) {
    program_.AddBlock(0);
    program_.AddBlock(0);
    program_.MutableBlock(2).set_forward_block(1);
    for (const std::string& name : op.InputNames()) {
      const auto input = inputs.find(name);
      if (input == inputs.end()) continue;
      const Tensor& tensor = input->second;
      Declare(Declared(name, VarKind::kTensor, tensor.dtype(), tensor.shape()));
      scope_.FindOrCreate(name)->As<Tensor>() = tensor.Clone();
    }
    for (const std::string& name : op.OutputNames()) {
      if (program_.FindVar(0, name) == nullptr) program_.MutableBlock(0).SetVar(ControlVar(name));
    }
    const Status status = Infer();  // an op that cannot be inferred is not changed
  }

  // Replaces variable `name` by `stranger`, with or without changing its declaration.
  void Replace(const std::string& name, const Stranger& stranger, bool declare) {
    if (declare) Declare(Declared(name, stranger.kind, DType::kFp32, {2, 3}));
    Variable& variable = *scope_.FindOrCreate(name);
    variable.Clear();
    if (stranger.make != nullptr) stranger.make(variable);
  }
  void Declare(Var var) { program_.MutableBlock(0).SetVar(std::move(var)); }

  Status Infer() { return InferAndDeclare(AllOps(), program_, 0, op_); }
  Status Run() {
    program_.MutableBlock(0).Append(op_);
    exec::Executor executor(AllOps(), {.threads = 1});
    auto result = executor.Run(program_, scope_, {}, {});
    return result.ok() ? OkStatus() : std::move(result).status();
  }

 private:
  Op op_;
  Program program_;
  Scope scope_;
};

// Whether a slot that accepts `taken` may be declared as a kind that the op rejects at run time.
bool MayBeDeclared(KindSet taken, VarKind stranger) {
  const bool tall = taken.Has(VarKind::kTensor) || taken.Has(VarKind::kSelectedRows);
  return taken.Has(stranger) || (tall && stranger == VarKind::kSelectedRows);
}

// Runs the op with each wrong kind as each input, declared and undeclared. A slot that does not accept it
// must give an error, at the latest at run time; if `fits` is false, the op has other faults that it may
// report first.
void ExpectRefusesInputs(const Op& op, const Tensors& inputs, const Stranger& stranger, bool fits) {
  const OpDef& def = *AllOps().Find(op.type());
  for (const Slot& slot : op.inputs()) {
    if (slot.args.empty() || slot.args.front() == kEmptyVarName) continue;
    const KindSet taken = def.FindInput(slot.name)->kinds;
    for (const bool declare : {true, false}) {
      OneOp one(op, inputs);
      one.Replace(slot.args.front(), stranger, declare);
      const Status status = one.Run();
      const std::string what = StrCat(op.type(), " with ", stranger.name, " as ", slot.name, ": ");
      EXPECT_NE(status.code(), StatusCode::kInternal) << what << status.ToString();
      if (taken.Has(stranger.kind)) continue;
      const bool declarable = MayBeDeclared(taken, stranger.kind);
      if (fits && declare && !declarable) {
        EXPECT_EQ(one.Infer().id(), "E-op-kind") << what;
      }
      // A reader holds a number at run time, and a raw variable holds nothing.
      if (stranger.make == nullptr || stranger.kind == VarKind::kReader) continue;
      EXPECT_FALSE(status.ok()) << what;
      if (fits && !declarable) {
        EXPECT_EQ(status.id(), "E-op-kind") << what << status.ToString();
      }
    }
  }
}

void ExpectRefusesOutputs(const Op& op, const Tensors& inputs, const Stranger& stranger) {
  const OpDef& def = *AllOps().Find(op.type());
  for (const Slot& slot : op.outputs()) {
    if (slot.args.empty() || slot.args.front() == kEmptyVarName) continue;
    OneOp one(op, inputs);
    one.Replace(slot.args.front(), stranger, true);
    const Status status = one.Run();
    const std::string what = StrCat(op.type(), " with ", stranger.name, " as ", slot.name, ": ");
    EXPECT_NE(status.code(), StatusCode::kInternal) << what << status.ToString();
    // A variable that is declared as a tensor may get the kind that the op makes.
    const KindSet given = def.FindOutput(slot.name)->kinds;
    if (stranger.kind == VarKind::kTensor || MayBeDeclared(given, stranger.kind)) continue;
    EXPECT_FALSE(status.ok()) << what;
  }
}

void ExpectRefuses(const Op& op, const Tensors& inputs, bool fits) {
  for (const Stranger& stranger : Strangers()) {
    ExpectRefusesInputs(op, inputs, stranger, fits);
    ExpectRefusesOutputs(op, inputs, stranger);
  }
}

Attr SomeAttr(const AttrDef& attr, const TempDir& dir) {
  switch (attr.kind) {
    case AttrKind::kFloat:
      return 1.0f;
    case AttrKind::kString:
      return attr.check.domain.empty() ? dir / "file" : attr.check.domain.front();
    case AttrKind::kInts:
      return std::vector<std::int32_t>{1};
    case AttrKind::kFloats:
      return std::vector<float>{1};
    case AttrKind::kStrings:
      return std::vector<std::string>{"a"};
    case AttrKind::kBool:
      return true;
    case AttrKind::kBools:
      return std::vector<bool>{true};
    case AttrKind::kBlock:
      return BlockRef{1};
    case AttrKind::kBlocks:
      return std::vector<BlockRef>{{1}};
    case AttrKind::kLong:
      return std::int64_t{1};
    case AttrKind::kLongs:
      return std::vector<std::int64_t>{1};
    default:
      return std::int32_t{1};
  }
}

// The op with an argument in each slot and all required attributes.
Op WithEverything(const OpDef& def, const TempDir& dir, Tensors& inputs) {
  Op op(def.type());
  for (const SlotDef& slot : def.inputs()) {
    op.AddInput(slot.name, {slot.name});
    const bool one_type = slot.type.kind == TypeRule::Kind::kOneOf;
    Tensor& zeros = inputs[slot.name] = Tensor(one_type ? slot.type.types.front() : DType::kFp32, {2, 3});
    std::memset(zeros.raw(), 0, zeros.bytes());
  }
  for (const SlotDef& slot : def.outputs()) {
    op.AddOutput(slot.name, {def.FindInput(slot.name) == nullptr ? slot.name : slot.name + "Out"});
  }
  for (const AttrDef& attr : def.attrs()) {
    if (!attr.default_value) op.Set(attr.name, SomeAttr(attr, dir));
  }
  return op;
}

TEST(Kinds, EachSlotRefusesUnsupportedKinds) {
  ForEachOp([](const Op& op, const Tensors& inputs) { ExpectRefuses(op, inputs, true); });
}

TEST(Kinds, NoOpEndsTheProcess) {
  const TempDir dir;
  for (const OpDef* def : AllOps().All()) {
    SCOPED_TRACE(def->type());
    if (def->type() == "feed" || def->type() == "fetch") continue;  // the caller of the program does it
    Tensors inputs;
    const Op op = WithEverything(*def, dir, inputs);
    ExpectRefuses(op, inputs, false);
  }
}

}  // namespace
}  // namespace penstock::test
