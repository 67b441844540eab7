#include "tools/bench/core/network.h"

#include "framework/autodiff/minimize.h"
#include "framework/autodiff/op_writer.h"
#include "framework/base/strings.h"

namespace penstock::bench {
namespace {

constexpr Dim kUnits = 8;

void Must(const Status& status) { PENSTOCK_CHECK(status.ok(), status.ToString()); }

class Builder {
 public:
  Builder(const OpRegistry& ops, Network& network)
      : network_(network), main_(ops, network.main, scopes_), startup_(ops, network.startup, scopes_) {}

  UniqueNames& names() { return names_; }
  NameScopes& scopes() { return scopes_; }

  void Data(const std::string& name, DType type, Dim width) {
    Var var = TensorVar(name, type, {kUnknownDim, width});
    var.facts.is_data = var.facts.stop_gradient = true;
    network_.main.MutableBlock(0).SetVar(std::move(var));
  }

  std::string Param(const Shape& shape) {
    std::string name = names_.Generate("fc.w");
    for (Program* program : {&network_.main, &network_.startup}) {
      Var var = TensorVar(name, DType::kFp32, shape);
      var.persistable = true;
      var.facts.is_parameter = true;
      program->MutableBlock(0).SetVar(std::move(var));
    }
    Must(startup_.Append(Op("uniform_random")
                             .AddOutput("Out", {name})
                             .Set("shape", shape.dims())
                             .Set("dtype", 5)
                             .Set("seed", 1)));
    return name;
  }

  std::string Apply(Op op, const char* out_slot = "Out") {
    Var out;
    out.name = names_.Generate("fc.tmp");
    network_.main.MutableBlock(0).SetVar(out);
    Must(main_.Append(op.AddOutput(out_slot, {out.name})));
    return out.name;
  }

  std::string Connected(const std::string& x, const char* activation) {
    const std::string product = Apply(Op("mul").AddInput("X", {x}).AddInput("Y", {Param({kUnits, kUnits})}));
    const std::string sum =
        Apply(Op("elementwise_add").AddInput("X", {product}).AddInput("Y", {Param({kUnits})}).Set("axis", 1));
    return Apply(Op(activation).AddInput("X", {sum}));
  }

 private:
  Network& network_;
  UniqueNames names_;
  NameScopes scopes_;
  OpWriter main_, startup_;
};

}  // namespace

Network MakeNetwork(const OpRegistry& ops, int params) {
  Network network;
  Builder builder(ops, network);
  builder.Data("x", DType::kFp32, kUnits);
  builder.Data("y", DType::kInt64, 1);
  std::string last = "x";
  for (int layers = params / 2; layers > 1; --layers) last = builder.Connected(last, "relu");
  last = builder.Connected(last, "softmax");
  const std::string cost =
      builder.Apply(Op("cross_entropy").AddInput("X", {last}).AddInput("Label", {"y"}), "Y");
  const std::string loss = builder.Apply(Op("mean").AddInput("X", {cost}));
  Must(Minimize(ops, network.main, network.startup, {builder.names(), builder.scopes()},
                {.op_type = "sgd", .learning_rate = 0.1f}, {.loss = loss})
           .status());
  return network;
}

}  // namespace penstock::bench
