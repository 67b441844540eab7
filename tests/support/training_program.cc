#include "tests/support/training_program.h"

#include "framework/base/strings.h"

namespace penstock::test {
namespace {

std::string Numbered(std::size_t i) {
  std::string digits = StrCat(i);
  return StrCat("w", std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0'), digits);
}

Op Framed(Op op, OpRole role) {
  op.SetRole(role)
      .Set(kRoleVarAttr, std::vector<std::string>())
      .Set(kNameScopeAttr, "/")
      .Set(kDeviceAttr, "");
  return op;
}

Var Persistable(std::string name, Shape shape) {
  Var var = TensorVar(std::move(name), DType::kFp32, std::move(shape));
  var.persistable = true;
  return var;
}

Op Fill(const std::string& out, const Shape& shape) {
  Op op("fill_constant");
  op.AddOutput("Out", {out})
      .Set("shape", shape.dims())
      .Set("value", 0.5f)
      .Set("dtype", 5)
      .Set("force_cpu", false);
  return Framed(op.Set("str_value", ""), OpRole::kForward);
}

}  // namespace

TrainingProgram MakeTrainingProgram(const std::vector<Shape>& shapes) {
  TrainingProgram out;
  Block& main = out.main.MutableBlock(0);
  Block& startup = out.startup.MutableBlock(0);
  for (Block* block : {&main, &startup}) block->SetVar(Persistable("lr", {1}));
  startup.Append(Fill("lr", {1}));
  main.SetVar(TensorVar("x", DType::kFp32, {-1, 1}));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = Numbered(i);
    Var param = Persistable(name, shapes[i]);
    param.facts.is_parameter = true;
    main.SetVar(param);
    startup.SetVar(param);
    startup.Append(Fill(name, shapes[i]));
    main.SetVar(TensorVar(name + "@GRAD", DType::kFp32, shapes[i]));
    main.Append(Framed(Op("scale").AddInput("X", {"x"}).AddOutput("Out", {"x"}), OpRole::kForward));
  }
  for (std::size_t i = shapes.size(); i-- > 0;) {
    const std::string name = Numbered(i);
    Op grad = Framed(Op("scale").AddInput("X", {name}).AddOutput("Out", {name + "@GRAD"}), OpRole::kBackward);
    main.Append(grad.SetRolePair(name, name + "@GRAD"));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = Numbered(i);
    Op sgd("sgd");
    sgd.AddInput("Param", {name}).AddInput("Grad", {name + "@GRAD"}).AddInput("LearningRate", {"lr"});
    sgd.AddOutput("ParamOut", {name});
    main.Append(Framed(sgd, OpRole::kOptimize).SetRolePair(name, name + "@GRAD"));
  }
  return out;
}

}  // namespace penstock::test
