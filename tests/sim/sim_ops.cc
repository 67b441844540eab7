#include "tests/sim/sim_ops.h"

#include <algorithm>
#include <cmath>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace penstock::test {
namespace {

void AddClipping(OpRegistry& ops) {
  ops.Add("squares")
      .Doc("The sum of the squares of X.", "Out")
      .Input("X", "gradient", Floats())
      .Output("Out", "sum", SameTypeAs("X"))
      .InferShape(OutputsAsDeclared())
      .NoGrad();
  ops.Add("exchange_sums")
      .Doc("X of all servers.", "Out")
      .Input("X", "own", Floats(), Repeated())
      .Output("Out", "all", AnyType(), Repeated())
      .RequiredAttr("epmap", AttrKind::kStrings, "owners")
      .RequiredAttr("endpoints", AttrKind::kStrings, "servers")
      .InferShape(OutputsAsDeclared())
      .NoGrad();
  ops.Add("clip_factor")
      .Doc("By what gradients are multiplied whose squares add up to the sum of X.", "Out")
      .Input("X", "sums of squares", Floats(), Repeated())
      .Output("Out", "factor", SameTypeAs("X"))
      .InferShape(OutputsAsDeclared())
      .NoGrad();
  ops.Add("times")
      .Doc("X times one Factor.", "Out")
      .Input("X", "gradient", Floats())
      .Input("Factor", "a number", Floats())
      .Output("Out", "product", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad()
      .Elementwise();
}

std::unique_ptr<OpRegistry> MakeSimOps() {
  auto ops = std::make_unique<OpRegistry>();
  ops->Add("sum")
      .Doc("X added up.", "Out")
      .Input("X", "addends", AnyType(), Repeated())
      .Output("Out", "sum", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad()
      .Elementwise();
  ops->Add("scale")
      .Doc("X times a factor.", "Out")
      .Input("X", "factor", Floats())
      .Output("Out", "product", SameTypeAs("X"))
      .Attr("scale", 1.0f, "factor")
      .InferShape(SameShape("X", "Out"))
      .NoGrad()
      .Elementwise();
  for (const char* type : {"elementwise_add", "elementwise_sub", "elementwise_mul"}) {
    ops->Add(type)
        .Doc("X and Y, element by element.", "Out")
        .Input("X", "left", Floats())
        .Input("Y", "right", Floats())
        .Output("Out", "result", SameTypeAs("X"))
        .InferShape(SameShape("X", "Out"))
        .NoGrad()
        .Elementwise();
  }
  ops->Add("ref_by_trainer_id")
      .Doc("The one of X that TrainerId says.", "Out")
      .Input("X", "one a trainer", Floats(), Repeated())
      .Input("TrainerId", "which", Integers())
      .Output("Out", "that one", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .NoGrad()
      .Elementwise();
  AddClipping(*ops);
  const auto optimizer = [&](const char* type) -> OpDef& {
    return ops->Add(type)
        .Doc("An update.", "ParamOut")
        .Input("Param", "parameter", Floats())
        .Input("Grad", "gradient", Floats())
        .Input("LearningRate", "rate", Floats())
        .Output("ParamOut", "parameter", SameTypeAs("Param"))
        .InferShape(SameShape("Param", "ParamOut"))
        .NoGrad()
        .Optimizes("Param", "Grad")
        .Elementwise();
  };
  const auto state = [](OpDef& op, const char* slot, StateSlicing slicing) {
    op.Input(slot, "state", Floats())
        .Output(std::string(slot) + "Out", "state", SameTypeAs(slot))
        .State(slot, "state", slicing, slot);
  };
  optimizer("sgd");
  optimizer("broken");
  state(optimizer("momentum").Attr("mu", 0.9f, "decay"), "Velocity", StateSlicing::kWithParam);
  OpDef& adam = optimizer("adam");
  state(adam, "Moment1", StateSlicing::kWithParam);
  state(adam, "Moment2", StateSlicing::kWithParam);
  state(adam, "Beta1Pow", StateSlicing::kWhole);
  state(adam, "Beta2Pow", StateSlicing::kWhole);
  PENSTOCK_CHECK(ops->Finish().ok(), "the ops are declared well");
  return ops;
}

class ToyOp {
 public:
  ToyOp(const Op& op, Scope& scope, const std::function<void()>& meanwhile)
      : op_(op), scope_(scope), meanwhile_(meanwhile) {}

  Status Run() {
    if (op_.type() == "sum") return Sum();
    if (op_.type() == "scale") return Scale();
    if (op_.type() == "ref_by_trainer_id") return RefByTrainerId();
    if (op_.type() == "squares") return Squares();
    if (op_.type() == "clip_factor") return ClipFactor();
    if (op_.type() == "times") return Times();
    if (op_.type() == "elementwise_add") return Combine([](float x, float y) { return x + y; });
    if (op_.type() == "elementwise_sub") return Combine([](float x, float y) { return x - y; });
    if (op_.type() == "elementwise_mul") return Combine([](float x, float y) { return x * y; });
    if (op_.type() == "sgd")
      return Update([&](std::size_t i, float g, float lr) { return lr * g + 0 * static_cast<float>(i); });
    if (op_.type() == "momentum") return Momentum();
    if (op_.type() == "adam") return Adam();
    return Unimplemented("E-toy", op_.type(), " cannot be computed")
        .With(StrCat("written at ", op_.location()));
  }

 private:
  Tensor& In(const char* slot, std::size_t i = 0) { return scope_.Find(op_.Input(slot)[i])->As<Tensor>(); }
  Tensor& Out(const char* slot, const Tensor& like) {
    Tensor& out = scope_.Find(op_.Output(slot)[0])->As<Tensor>();
    if (!out.initialized() || out.shape() != like.shape()) out = Tensor(like.dtype(), like.shape());
    return out;
  }

  static void AddRows(const SelectedRows& x, std::vector<float>& total) {
    const auto width = static_cast<std::size_t>(x.value.shape().RowWidth());
    for (std::size_t i = 0; i < x.rows.size() * width; ++i)
      total[static_cast<std::size_t>(x.rows[i / width]) * width + i % width] += x.value.Data<float>()[i];
  }
  // Of rows, into a tensor.
  Status SumRows() {
    const ArgList& names = op_.Input("X");
    const SelectedRows& first = *scope_.Find(names[0])->If<SelectedRows>();
    Tensor total(DType::kFp32, first.value.shape().WithRows(first.height));
    const auto to = total.Span<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    for (const std::string& name : names) {
      const SelectedRows& x = *scope_.Find(name)->If<SelectedRows>();
      const Dim width = total.shape().RowWidth();
      for (std::size_t i = 0; i < x.rows.size(); ++i) {
        for (Dim j = 0; j < width; ++j)
          total.Data<float>()[x.rows[i] * width + j] +=
              x.value.Data<float>()[static_cast<Dim>(i) * width + j];
      }
    }
    Out("Out", total).CopyFrom(total);
    return OkStatus();
  }
  Status SumCounters() {
    std::int64_t total = 0;
    for (std::size_t k = 0; k < op_.Input("X").size(); ++k) total += In("X", k).Span<std::int64_t>()[0];
    Out("Out", In("X")).Span<std::int64_t>()[0] = total;
    return OkStatus();
  }
  Status Sum() {
    if (scope_.Find(op_.Input("X")[0])->Is<SelectedRows>()) return SumRows();
    if (In("X").dtype() == DType::kInt64) return SumCounters();
    const Tensor first = In("X").Clone();  // Out may be one of the addends
    std::vector<float> total(first.Span<float>().begin(), first.Span<float>().end());
    for (std::size_t k = 1; k < op_.Input("X").size(); ++k) {
      if (const auto* rows = scope_.Find(op_.Input("X")[k])->If<SelectedRows>()) {
        AddRows(*rows, total);
        continue;
      }
      const auto x = In("X", k).Span<float>();
      if (x.size() != total.size()) return InvalidArgument("E-toy-shape", "sum of different shapes");
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += x[i];
    }
    const auto out = Out("Out", first).Span<float>();
    std::copy(total.begin(), total.end(), out.begin());
    return OkStatus();
  }
  Status Scale() {
    const Tensor x = In("X");
    Tensor& out = Out("Out", x);
    for (std::size_t i = 0; i < x.Span<float>().size(); ++i)
      out.Span<float>()[i] = x.Span<float>()[i] * op_.GetOr<float>("scale", 1);
    return OkStatus();
  }
  Status RefByTrainerId() {
    const Tensor x = In("X", static_cast<std::size_t>(In("TrainerId").Span<std::int64_t>()[0]));
    Out("Out", x).CopyFrom(x);
    return OkStatus();
  }
  Status Squares() {
    const Tensor x = In("X");
    float sum = 0;
    for (const float value : x.Span<float>()) sum += value * value;
    Out("Out", Tensor(DType::kFp32, {1})).Span<float>()[0] = sum;
    return OkStatus();
  }
  Status ClipFactor() {
    float sum = 0;
    for (std::size_t i = 0; i < op_.Input("X").size(); ++i) sum += In("X", i).Span<float>()[0];
    Out("Out", Tensor(DType::kFp32, {1})).Span<float>()[0] = 1 / std::max(1.0f, std::sqrt(sum));
    return OkStatus();
  }
  Status Times() {
    const Tensor x = In("X");
    Tensor& out = Out("Out", x);
    const float factor = In("Factor").Span<float>()[0];
    for (std::size_t i = 0; i < x.Span<float>().size(); ++i)
      out.Span<float>()[i] = x.Span<float>()[i] * factor;
    return OkStatus();
  }
  template <typename Function>
  Status Combine(Function function) {
    const Tensor x = In("X"), y = In("Y");
    Tensor& out = Out("Out", x);
    for (std::size_t i = 0; i < x.Span<float>().size(); ++i)
      out.Span<float>()[i] = function(x.Span<float>()[i], y.Span<float>()[i]);
    return OkStatus();
  }
  template <typename Step>
  Status Update(Step step) {
    Tensor& param = In("Param");
    const auto p = param.Span<float>();
    const auto g = In("Grad").Span<float>();
    if (p.size() != g.size()) return InvalidArgument("E-toy-shape", "gradient and parameter differ in shape");
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (i == p.size() / 2) meanwhile_();
      p[i] -= step(i, g[i], In("LearningRate").Span<float>()[0]);
    }
    return OkStatus();
  }
  Status Momentum() {
    const auto v = In("Velocity").Span<float>();
    const float mu = op_.GetOr<float>("mu", 0.9f);
    return Update([&](std::size_t i, float g, float lr) {
      v[i] = mu * v[i] + g;
      return lr * v[i];
    });
  }
  Status Adam() {
    const auto m = In("Moment1").Span<float>();
    const auto v = In("Moment2").Span<float>();
    float& b1 = In("Beta1Pow").Span<float>()[0];
    float& b2 = In("Beta2Pow").Span<float>()[0];
    PENSTOCK_RETURN_IF_ERROR(Update([&](std::size_t i, float g, float lr) {
      m[i] = 0.9f * m[i] + 0.1f * g;
      v[i] = 0.999f * v[i] + 0.001f * g * g;
      return lr * std::sqrt(1 - b2) / (1 - b1) * m[i] / (std::sqrt(v[i]) + 1e-8f);
    }));
    b1 *= 0.9f;
    b2 *= 0.999f;
    return OkStatus();
  }

  const Op& op_;
  Scope& scope_;
  const std::function<void()>& meanwhile_;
};

class SimBlock : public PreparedBlock {
 public:
  SimBlock(SimBlockRunner& runner, const Program& program, int block)
      : runner_(runner), program_(program), block_(block) {}
  Status Run(Scope& scope) override { return runner_.RunBlock(program_, block_, scope); }

 private:
  SimBlockRunner& runner_;
  const Program program_;
  const int block_;
};

}  // namespace

const OpRegistry& SimOps() {
  static const std::unique_ptr<OpRegistry> ops = MakeSimOps();
  return *ops;
}

Status SimBlockRunner::RunBlock(const Program& program, int block, Scope& scope) {
  if (before) before(program, block, scope);
  for (const OpEntry& entry : program.block(block).ops())
    PENSTOCK_RETURN_IF_ERROR(ToyOp(*entry.op, scope, meanwhile).Run());
  return OkStatus();
}

Result<std::unique_ptr<PreparedBlock>> SimBlockRunner::PrepareBlock(const Program& program, int block,
                                                                    std::vector<std::string>) {
  return std::unique_ptr<PreparedBlock>(std::make_unique<SimBlock>(*this, program, block));
}

}  // namespace penstock::test
