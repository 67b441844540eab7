#include "tests/support/toy_ops.h"

#include <algorithm>
#include <cstring>

#include "framework/runtime/block_runner.h"

namespace penstock::test {
namespace {

template <typename Device, typename T>
class Add : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    ++PrepareCount();
    k.Bind(x_, y_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    const T* y = k[y_].template Data<T>();
    T* out = k[out_].template Data<T>();
    const std::int64_t count = k[out_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
};

class Fill : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    value_ = k.Attr<float>("value");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].Span<float>(), value_);
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  float value_ = 0;
};

class Descend : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(param_, grad_, out_);
    scratch_ = k.Workspace(k[param_].shape.Count() * sizeof(float));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    auto* scratch = reinterpret_cast<float*>(k.Workspace(scratch_));
    const std::span<const float> param = std::as_const(k[param_]).Span<float>();
    const std::span<const float> grad = std::as_const(k[grad_]).Span<float>();
    for (std::size_t i = 0; i < param.size(); ++i) scratch[i] = param[i] - grad[i];
    std::memcpy(k[out_].Data<float>(), scratch, param.size_bytes());
    return OkStatus();
  }

 private:
  In<"Param"> param_;
  In<"Grad"> grad_;
  Out<"ParamOut"> out_;
  WorkspaceId scratch_;
};

class Positive : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::vector<float> kept;
    for (const float v : k[x_].Span<float>()) {
      if (v > 0) kept.push_back(v);
    }
    k[out_].Reset(DType::kFp32, {static_cast<Dim>(kept.size())});
    std::ranges::copy(kept, k[out_].Data<float>());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

class Hooked : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    if (PrepareHook()) PrepareHook()();
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (Hook()) Hook()();
    k[out_].CopyFrom(k[x_]);
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

class Failing : public Kernel {
 public:
  Status Prepare(KernelSetup&) override { return OkStatus(); }
  Status Run(KernelRun&) override { return InvalidArgument("E-toy-fail", "toy_fail: it always does"); }
};

class Send : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    Sent().push_back(k[x_]);
    return OkStatus();
  }

 private:
  In<"X"> x_;
};

class Blocks : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    runner_ = k.services().blocks;
    program_ = k.site().program;
    block_ = k.Attr<BlockRef>("sub_block").index;
    return OkStatus();
  }
  Status Run(KernelRun& k) override { return runner_->RunBlock(*program_, block_, k.scope()); }

 private:
  BlockRunner* runner_ = nullptr;
  const Program* program_ = nullptr;
  int block_ = 0;
};

Status InferAdd(InferContext& c) {
  if (!Compatible(c.ShapeOf("X"), c.ShapeOf("Y"))) {
    return c.Error("shape of X (", c.ShapeOf("X"), ") must equal shape of Y (", c.ShapeOf("Y"), ")");
  }
  return c.ShareAll("X", "Out");
}

}  // namespace

void RegisterToyOps(OpRegistry& ops) {
  ops.Add("toy_add")
      .Doc("Sum.", "")
      .Input("X", "", Floats())
      .Input("Y", "", SameTypeAs("X"))
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(InferAdd)
      .Elementwise()
      .Kernel<Cpu, Add, float>()
      .NoGrad();
  ops.Add("toy_fill")
      .Doc("Fill.", "")
      .Output("Out", "", Only(DType::kFp32))
      .Attr("shape", std::vector<std::int64_t>{}, "")
      .Attr("value", 0.0f, "")
      .InferShape([](InferContext& c) {
        return c.SetShape("Out", Shape(c.Attr<std::vector<std::int64_t>>("shape")));
      })
      .KernelForAnyType<Cpu, Fill>()
      .NoGrad();
  ops.Add("toy_step")
      .Doc("Descent.", "")
      .Input("Param", "", Floats())
      .Input("Grad", "", Floats())
      .Output("ParamOut", "", SameTypeAs("Param"))
      .InferShape(SameShape("Param", "ParamOut"))
      .KernelForAnyType<Cpu, Descend>()
      .NoGrad();
  ops.Add("toy_positive")
      .Doc("Filter.", "")
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {kUnknownDim}); })
      .KernelForAnyType<Cpu, Positive>()
      .NoGrad();
  ops.Add("toy_hook")
      .Doc("Copy.", "")
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .KernelForAnyType<Cpu, Hooked>()
      .NoGrad();
  ops.Add("toy_fail")
      .Doc("Fail.", "")
      .Input("X", "", Floats())
      .Output("Out", "", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .KernelForAnyType<Cpu, Failing>()
      .NoGrad();
  ops.Add("toy_send")
      .Doc("Send.", "")
      .Input("X", "", Floats())
      .InferShape([](InferContext&) { return OkStatus(); })
      .KernelForAnyType<Cpu, Send>()
      .Affects({Effect::kStep})
      .NoGrad();
  ops.Add("toy_blocks")
      .Doc("Block.", "")
      .Input("X", "", AnyType(), Optional() | Repeated())
      .RequiredAttr("sub_block", AttrKind::kBlock, "")
      .InferShape([](InferContext&) { return OkStatus(); })
      .KernelForAnyType<Cpu, Blocks>()
      .Affects({Effect::kStep})
      .NoGrad();
}

const OpRegistry& ToyOps() {
  static const OpRegistry* ops = [] {
    auto* made = new OpRegistry();
    RegisterToyOps(*made);
    const Status status = made->Finish();
    PENSTOCK_CHECK(status.ok(), status.ToString());
    return made;
  }();
  return *ops;
}

std::function<void()>& Hook() {
  static std::function<void()> hook;
  return hook;
}

std::function<void()>& PrepareHook() {
  static std::function<void()> hook;
  return hook;
}

std::vector<Tensor>& Sent() {
  static std::vector<Tensor> sent;
  return sent;
}

std::atomic<int>& PrepareCount() {
  static std::atomic<int> count{0};
  return count;
}

void ToyProgram::Data(const std::string& name, Shape shape, DType type) {
  Var var = TensorVar(name, type, std::move(shape));
  var.facts.is_data = true;
  program.MutableBlock(0).SetVar(std::move(var));
}

void ToyProgram::Persistable(const std::string& name, Shape shape) {
  Var var = TensorVar(name, DType::kFp32, std::move(shape));
  var.persistable = true;
  program.MutableBlock(0).SetVar(std::move(var));
}

void ToyProgram::Temporary(const std::string& name, Shape shape, int block) {
  program.MutableBlock(block).SetVar(TensorVar(name, DType::kFp32, std::move(shape)));
}

void ToyProgram::Add(const std::string& type, std::vector<std::pair<std::string, std::string>> in,
                     std::vector<std::pair<std::string, std::string>> out, int block,
                     std::vector<NamedAttr> attrs, const std::string& location) {
  Op op(type);
  for (auto& [slot, name] : in) op.AddInput(slot, {name});
  for (auto& [slot, name] : out) op.AddOutput(slot, {name});
  for (NamedAttr& attr : attrs) op.Set(attr.name, attr.value);
  op.SetLocation(location);
  program.MutableBlock(block).Append(std::move(op));
}

ToyProgram TwoAdds() {
  ToyProgram p;
  p.Data("x", {-1, 2});
  p.Data("y", {-1, 2});
  p.Temporary("h", {-1, 2});
  p.Temporary("out", {-1, 2});
  p.Add("toy_add", {{"X", "x"}, {"Y", "y"}}, {{"Out", "h"}});
  p.Add("toy_add", {{"X", "h"}, {"Y", "x"}}, {{"Out", "out"}}, 0, {}, "train.py:42 in model");
  return p;
}

std::vector<exec::Feed> TwoFeeds(Dim rows, float x, float y) {
  return {{"x", Filled({rows, 2}, x)}, {"y", Filled({rows, 2}, y)}};
}

Tensor Filled(const Shape& shape, float value) {
  Tensor tensor(DType::kFp32, shape);
  std::ranges::fill(tensor.Span<float>(), value);
  return tensor;
}

Tensor Values(std::vector<float> values, Shape shape) {
  if (shape.rank() == 0) shape = {static_cast<Dim>(values.size())};
  Tensor tensor(DType::kFp32, shape);
  std::ranges::copy(values, tensor.Data<float>());
  return tensor;
}

}  // namespace penstock::test
