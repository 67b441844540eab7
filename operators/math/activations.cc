// relu, sigmoid, tanh, sqrt, square: functions of one element.
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"
#include "operators/require_shape.h"

namespace penstock {
namespace {

// Each gives Out(x) and Dx(seen, dout), where `seen` is what the gradient op reads: Out, or X if kReadsX.
struct Relu {
  static constexpr bool kReadsX = false;
  template <typename T>
  static T Out(T x) {
    return x > T{0} ? x : T{0};
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return out > T{0} ? dout : T{0};
  }
};

struct Sigmoid {
  static constexpr bool kReadsX = false;
  template <typename T>
  static T Out(T x) {
    return T{1} / (T{1} + std::exp(-x));
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return dout * out * (T{1} - out);
  }
};

struct Tanh {
  static constexpr bool kReadsX = false;
  template <typename T>
  static T Out(T x) {
    return std::tanh(x);
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return dout * (T{1} - out * out);
  }
};

struct Sqrt {
  static constexpr bool kReadsX = false;
  template <typename T>
  static T Out(T x) {
    return std::sqrt(x);
  }
  template <typename T>
  static T Dx(T out, T dout) {
    return T{0.5} * dout / out;
  }
};

struct Square {
  static constexpr bool kReadsX = true;
  template <typename T>
  static T Out(T x) {
    return x * x;
  }
  template <typename T>
  static T Dx(T x, T dout) {
    return dout * T{2} * x;
  }
};

template <typename Math>
struct Activation {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      x_ = k.Input("X");
      out_ = k.Output("Out");
      if (x_.kind == VarKind::kTensor) return OkStatus();
      return Unimplemented("E-op-rows", k.op().type(),
                           ": selected rows are not supported; use a dense tensor");
    }
    Status Run(KernelRun& k) override {
      const T* const x = k[x_].template Data<T>();
      T* const out = k[out_].template Data<T>();
      const std::int64_t count = k[x_].count();
      for (std::int64_t i = 0; i < count; ++i) out[i] = Math::Out(x[i]);
      return OkStatus();
    }

   private:
    Operand x_, out_;
  };

  template <typename Device, typename T>
  class Backward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      seen_ = k.Input(Math::kReadsX ? "X" : "Out");
      dout_ = k.Input("Out@GRAD");
      dx_ = k.Output("X@GRAD");
      return RequireShape(k, "Out@GRAD", seen_.shape);
    }
    Status Run(KernelRun& k) override {
      if (!dx_) return OkStatus();
      const T* const seen = k[seen_].template Data<T>();
      const T* const dout = k[dout_].template Data<T>();
      T* const dx = k[dx_].template Data<T>();
      const std::int64_t count = k[seen_].count();
      for (std::int64_t i = 0; i < count; ++i) dx[i] = Math::Dx(seen[i], dout[i]);
      return OkStatus();
    }

   private:
    Operand seen_, dout_, dx_;
  };
};

template <typename Math>
void Add(OpRegistry& ops, const std::string& type, std::string summary, const std::string& doc) {
  GradSpec grad{.yields = {"X"}};
  (Math::kReadsX ? grad.reads : grad.reads_outputs) = {Math::kReadsX ? "X" : "Out"};
  OpDef& def = ops.Add(type)
                   .Doc(std::move(summary), doc)
                   .Input("X", "any shape", Floats())
                   .Output("Out", "shaped like X", SameTypeAs("X"))
                   .Attr("use_mkldnn", false, kNoEffect)
                   .Attr("use_cudnn", false, kNoEffect)
                   .InferShape(SameShape("X", "Out"))
                   .Elementwise()
                   .template Kernel<Cpu, Activation<Math>::template Forward, float, double>()
                   .Grad(std::move(grad))
                   .template GradKernel<Cpu, Activation<Math>::template Backward, float, double>();
  // The gradient of an op that reads only Out has no X to be shaped like.
  def.GradDef().InferShape(SameShape(Math::kReadsX ? "X" : "Out", "X@GRAD"));
}

}  // namespace

void RegisterActivations(OpRegistry& ops) {
  Add<Relu>(ops, "relu", "Negative elements become zero.", "Out = max(X, 0); the gradient at 0 is 0");
  Add<Sigmoid>(ops, "sigmoid", "The logistic function of each element.", "Out = 1 / (1 + exp(-X))");
  Add<Tanh>(ops, "tanh", "The hyperbolic tangent of each element.", "Out = tanh(X)");
  Add<Sqrt>(ops, "sqrt", "The square root of each element.", "Out = X ^ 0.5; NaN where X is negative");
  Add<Square>(ops, "square", "The square of each element.", "Out = X * X");
}

}  // namespace penstock
