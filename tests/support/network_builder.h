// Adds data, temporaries, parameters with initial values, and ops to a random network.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "framework/autodiff/op_writer.h"
#include "framework/base/strings.h"
#include "framework/ir/name_scope.h"
#include "framework/ir/unique_name.h"
#include "tests/support/random_network.h"

namespace penstock::test {

inline void Must(const Status& status) { PENSTOCK_CHECK(status.ok(), status.ToString()); }

class NetworkBuilder {
 public:
  NetworkBuilder(const OpRegistry& ops, Draw& draw, RandomNetwork& network)
      : ops_(ops),
        draw_(draw),
        network_(network),
        main_(ops, network.main, scopes_),
        startup_(ops, network.startup, scopes_) {}

  const OpRegistry& ops() const { return ops_; }
  OpWriter& main() { return main_; }
  OpWriter& startup() { return startup_; }
  UniqueNames& names() { return names_; }
  NameScopes& scopes() { return scopes_; }
  Draw& draw() { return draw_; }

  std::string Data(const std::string& name, Shape shape, DType dtype = DType::kFp32) {
    Var var = TensorVar(name, dtype, std::move(shape));
    var.facts.is_data = true;
    var.facts.stop_gradient = true;
    network_.main.MutableBlock(0).SetVar(std::move(var));
    network_.feeds.push_back(name);
    return name;
  }

  // Integers in [0, below).
  std::string Integers(const std::string& key, Shape shape, Dim below) {
    const std::string name = Data(names_.Generate(key), std::move(shape), DType::kInt64);
    network_.below[name] = below;
    return name;
  }

  std::string Temporary(const std::string& key) {
    Var var;
    var.name = names_.Generate(key);
    network_.main.MutableBlock(0).SetVar(var);
    return var.name;
  }

  // A persistable variable, declared in both programs and initialized by the startup program.
  std::string Persistable(std::string name, const Shape& shape, float value, VarFacts facts = {}) {
    Declare(name, shape, std::move(facts));
    Must(startup_.Append(Op("fill_constant")
                             .AddOutput("Out", {name})
                             .Set("shape", shape.dims())
                             .Set("value", value)
                             .Set("dtype", kFp32Number)));
    return name;
  }

  // A sparse table, which only lookups read.
  std::string Table(const Shape& shape) {
    ++network_.tables;
    const std::string name = NewParam(shape, true);
    params_.pop_back();  // no other layer may share it
    return name;
  }
  // A new trainable parameter.
  std::string TrainedParam(const Shape& shape) { return NewParam(shape, true); }
  // A parameter of this shape: mostly new, sometimes an existing one, sometimes frozen.
  std::string Param(const Shape& shape) {
    if (draw_.OneIn(4)) {
      for (const auto& [name, used] : params_) {
        if (used != shape) continue;
        ++network_.shared;
        return name;
      }
    }
    return NewParam(shape, !draw_.OneIn(10));
  }

  // An op with one input X, or X and Y, and one output.
  std::string Apply(const std::string& type, std::vector<std::string> inputs,
                    std::vector<NamedAttr> attrs = {}) {
    static constexpr std::array<const char*, 2> kSlots = {"X", "Y"};
    Op op(type);
    for (std::size_t i = 0; i < inputs.size(); ++i) op.AddInput(kSlots[i], {inputs[i]});
    for (NamedAttr& attr : attrs) op.Set(attr.name, std::move(attr.value));
    const std::string out = Temporary(StrCat(type, ".tmp"));
    Must(main_.Append(op.AddOutput("Out", {out})));
    return out;
  }

 private:
  static constexpr int kFp32Number = 5;  // the number of float32 in attributes

  std::string NewParam(const Shape& shape, bool trainable) {
    ++network_.params;
    network_.frozen += trainable ? 0 : 1;
    const std::string name = ParamName();
    VarFacts facts;
    facts.is_parameter = true;
    facts.trainable = trainable;
    facts.stop_gradient = !trainable;
    if (draw_.OneIn(12)) facts.learning_rate = draw_.OneIn(2) ? 0.5f : 2.0f;
    Declare(name, shape, facts);
    Initialize(name, shape);
    params_.emplace_back(name, shape);
    return name;
  }

  // A name that a user might choose: layer names, scopes with dots and slashes, and names that Fluid would
  // parse.
  std::string ParamName() {
    static constexpr const char* kKeys[] = {"fc.w",        "enc.block1.w", "a:b",          "tower/w",
                                            "w.trainer_0", "x@GRAD_y",     "emb.block0.b", "größe"};
    return draw_.OneIn(3) ? names_.Generate(draw_.Of(kKeys)) : names_.Generate("w");
  }

  void Declare(const std::string& name, const Shape& shape, const VarFacts& facts) {
    for (Program* program : {&network_.main, &network_.startup}) {
      Var var = TensorVar(name, DType::kFp32, shape);
      var.persistable = true;
      var.facts = facts;
      program->MutableBlock(0).SetVar(std::move(var));
    }
  }

  void Initialize(const std::string& name, const Shape& shape) {
    static constexpr const char* kFills[] = {"uniform_random", "gaussian_random",
                                             "truncated_gaussian_random"};
    const bool constant = draw_.OneIn(4);
    Op op(constant ? "fill_constant" : draw_.Of(kFills));
    op.AddOutput("Out", {name}).Set("dtype", kFp32Number);
    if (ops_.Find(op.type())->FindAttr("shape")->kind == AttrKind::kInts) {
      op.Set("shape", std::vector<std::int32_t>(shape.dims().begin(), shape.dims().end()));
    } else {
      op.Set("shape", shape.dims());
    }
    if (constant) {
      op.Set("value", 0.125f);
    } else {
      op.Set("seed", draw_.Between(1, 1000));
    }
    Must(startup_.Append(std::move(op)));
  }

  const OpRegistry& ops_;
  Draw& draw_;
  RandomNetwork& network_;
  UniqueNames names_;
  NameScopes scopes_;
  OpWriter main_, startup_;
  std::vector<std::pair<std::string, Shape>> params_;
};

}  // namespace penstock::test
