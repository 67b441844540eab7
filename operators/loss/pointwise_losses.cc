// log_loss, bce_loss, sigmoid_cross_entropy_with_logits, teacher_student_sigmoid_loss, huber_loss and
// hinge_loss: losses of single elements.
#include <algorithm>
#include <cmath>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kLogDoc[] = R"(
Loss = -Labels * log(Predicted + epsilon) - (1 - Labels) * log(1 - Predicted + epsilon)

for probabilities Predicted and labels in [0, 1]. Labels has no gradient.)";

constexpr char kBceDoc[] = R"(
Out = -Label * max(log(X), -100) - (1 - Label) * max(log(1 - X), -100)

for probabilities X and labels in [0, 1]. The divisor of the gradient, X * (1 - X), is at least 1e-12. Label
has no gradient.)";

constexpr char kSigmoidDoc[] = R"(
Out = max(X, 0) - X * Label + log(1 + exp(-|X|))

This is the log loss of sigmoid(X), computed without overflow. Elements whose label is ignore_index yield 0;
with normalize, the others are divided by their number (at least 1). Label has no gradient.)";

constexpr char kTeacherDoc[] = R"(
Let loss(x, z) = max(x, 0) - x * z + log(1 + exp(-|x|)), the log loss of sigmoid(x) for label z.

Y = loss(X, 0)                       where Label < -1: no click, no teacher score
Y = loss(X, 1)                       where Label < 0:  a click, no teacher score
Y = loss(X, 0) + loss(X, Label)      where Label < 1:  no click, the teacher score is Label
Y = loss(X, 1) + loss(X, Label - 1)  elsewhere:        a click, the teacher score is Label - 1

The gradient is 0 unless X is between soft_max_lower_bound and soft_max_up_bound. Label has no gradient.)";

constexpr char kHuberDoc[] = R"(
Residual = Y - X
Out      = Residual^2 / 2                      where |Residual| <= delta
Out      = delta * (|Residual| - delta / 2)    elsewhere)";

constexpr char kHingeDoc[] = R"(
Loss = max(0, 1 - (2 * Labels - 1) * Logits), for labels of 0 and 1. Labels has no gradient.)";

// Out has the shape of the first input, and the second input must have the same shape.
std::function<Status(InferContext&)> Alike(std::string first, std::string second, std::string out) {
  return [first = std::move(first), second = std::move(second), out = std::move(out)](InferContext& c) {
    if (!Compatible(c.ShapeOf(first), c.ShapeOf(second))) {
      return c.Error(second, " (", c.ShapeOf(second), ") must have the shape of ", first, " (",
                     c.ShapeOf(first), ")");
    }
    return c.ShareAll(first, out);
  };
}

// Math provides Out(first, second) for each element, and Dx(first, second, dout) for the gradient of the
// first. The type names the slots.
template <typename Math>
struct Pointwise {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      x_ = k.Input(Math::kFirst);
      y_ = k.Input(Math::kSecond);
      out_ = k.Output(Math::kOut);
      math_.Prepare(k);
      return RequireShape(k, Math::kSecond, k.Input(Math::kFirst).shape);
    }
    Status Run(KernelRun& k) override {
      const T* const x = k[x_].template Data<T>();
      const T* const y = k[y_].template Data<T>();
      T* const out = k[out_].template Data<T>();
      const std::int64_t count = k[x_].count();
      const T share = math_.template Share<T>(y, count);
      for (std::int64_t i = 0; i < count; ++i) out[i] = share * math_.template Out<T>(x[i], y[i]);
      return OkStatus();
    }

   private:
    Operand x_, y_, out_;
    Math math_;
  };

  template <typename Device, typename T>
  class Backward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      x_ = k.Input(Math::kFirst);
      y_ = k.Input(Math::kSecond);
      dout_ = k.Input(std::string(Math::kOut) + kGradSuffix);
      dx_ = k.Output(std::string(Math::kFirst) + kGradSuffix);
      math_.Prepare(k);
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, Math::kSecond, k.Input(Math::kFirst).shape));
      return RequireShape(k, std::string(Math::kOut) + kGradSuffix, k.Input(Math::kFirst).shape);
    }
    Status Run(KernelRun& k) override {
      if (!dx_) return OkStatus();
      const T* const x = k[x_].template Data<T>();
      const T* const y = k[y_].template Data<T>();
      const T* const dout = k[dout_].template Data<T>();
      T* const dx = k[dx_].template Data<T>();
      const std::int64_t count = k[x_].count();
      const T share = math_.template Share<T>(y, count);
      for (std::int64_t i = 0; i < count; ++i) dx[i] = share * dout[i] * math_.template Dx<T>(x[i], y[i]);
      return OkStatus();
    }

   private:
    Operand x_, y_, dout_, dx_;
    Math math_;
  };
};

// Defaults for losses without attributes, and without a factor for all elements.
struct Plain {
  void Prepare(const KernelSetup&) {}
  template <typename T>
  T Share(const T*, std::int64_t) const {
    return T{1};
  }
};

struct LogLoss : Plain {
  static constexpr const char* kFirst = "Predicted";
  static constexpr const char* kSecond = "Labels";
  static constexpr const char* kOut = "Loss";
  void Prepare(const KernelSetup& k) { epsilon = k.Attr<float>("epsilon"); }
  template <typename T>
  T Out(T p, T label) const {
    const T e = static_cast<T>(epsilon);
    return -label * std::log(p + e) - (T{1} - label) * std::log(T{1} - p + e);
  }
  template <typename T>
  T Dx(T p, T label) const {
    const T e = static_cast<T>(epsilon);
    return -label / (p + e) + (T{1} - label) / (T{1} - p + e);
  }
  float epsilon = 0;
};

struct BceLoss : Plain {
  static constexpr const char* kFirst = "X";
  static constexpr const char* kSecond = "Label";
  static constexpr const char* kOut = "Out";
  template <typename T>
  T Out(T p, T label) const {
    return -label * MaxOrNan(std::log(p), T{-100}) - (T{1} - label) * MaxOrNan(std::log(T{1} - p), T{-100});
  }
  template <typename T>
  T Dx(T p, T label) const {
    return (p - label) / MaxOrNan(p * (T{1} - p), static_cast<T>(1e-12));
  }
};

struct SigmoidCrossEntropy {
  static constexpr const char* kFirst = "X";
  static constexpr const char* kSecond = "Label";
  static constexpr const char* kOut = "Out";
  void Prepare(const KernelSetup& k) {
    ignored = static_cast<double>(k.Attr<int>("ignore_index"));
    normalizes = k.Attr<bool>("normalize");
  }
  template <typename T>
  bool Ignores(T label) const {
    return static_cast<double>(label) == ignored;
  }
  template <typename T>
  T Share(const T* labels, std::int64_t count) const {
    if (!normalizes) return T{1};
    const auto counted = std::count_if(labels, labels + count, [this](T label) { return !Ignores(label); });
    return T{1} / static_cast<T>(std::max<std::int64_t>(counted, 1));
  }
  template <typename T>
  T Out(T x, T label) const {
    return Ignores(label) ? T{0} : std::max(x, T{0}) - x * label + std::log1p(std::exp(-std::abs(x)));
  }
  template <typename T>
  T Dx(T x, T label) const {
    return Ignores(label) ? T{0} : T{1} / (T{1} + std::exp(-x)) - label;
  }
  double ignored = -100;
  bool normalizes = false;
};

struct TeacherStudent : Plain {
  static constexpr const char* kFirst = "X";
  static constexpr const char* kSecond = "Label";
  static constexpr const char* kOut = "Y";
  void Prepare(const KernelSetup& k) {
    most = k.Attr<float>("soft_max_up_bound");
    least = k.Attr<float>("soft_max_lower_bound");
  }
  template <typename T>
  static T Loss(T x, T z) {
    return std::max(x, T{0}) - x * z + std::log1p(std::exp(-std::abs(x)));
  }
  template <typename T>
  T Out(T x, T label) const {
    if (label < T{-1}) return Loss(x, T{0});
    if (label < T{0}) return Loss(x, T{1});
    return label < T{1} ? Loss(x, T{0}) + Loss(x, label) : Loss(x, T{1}) + Loss(x, label - T{1});
  }
  template <typename T>
  T Dx(T x, T label) const {
    const T share = T{1} / (T{1} + std::exp(-x));
    const T dx = label < T{-1} ? share : label < T{0} ? share - T{1} : T{2} * share - label;
    return Choose(x > static_cast<T>(least) && x < static_cast<T>(most), dx, T{0}, x);
  }
  float most = 0, least = 0;
};

struct Hinge : Plain {
  static constexpr const char* kFirst = "Logits";
  static constexpr const char* kSecond = "Labels";
  static constexpr const char* kOut = "Loss";
  template <typename T>
  T Out(T x, T label) const {
    return MaxOrNan(T{0}, T{1} - (T{2} * label - T{1}) * x);
  }
  template <typename T>
  T Dx(T x, T label) const {
    const T sign = T{2} * label - T{1};
    return Choose(sign * x < T{1}, -sign, T{0}, sign * x);
  }
};

template <typename Device, typename T>
class HuberKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, residual_, out_);
    delta_ = static_cast<T>(k.Attr<float>("delta"));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "Residual"));
    return RequireShape(k, "Y", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    T* const residual = k[residual_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      residual[i] = y[i] - x[i];
      const T size = std::abs(residual[i]);
      out[i] = size <= delta_ ? size * size / T{2} : delta_ * (size - delta_ / T{2});
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Residual"> residual_;
  Out<"Out"> out_;
  T delta_ = 0;
};

template <typename Device, typename T>
class HuberGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(residual_, dout_, dx_, dy_);
    delta_ = static_cast<T>(k.Attr<float>("delta"));
    return RequireShape(k, "Out@GRAD", k[residual_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const residual = k[residual_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    const std::int64_t count = k[residual_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      const T slope = std::clamp(residual[i], -delta_, delta_) * dout[i];
      if (dx != nullptr) dx[i] = -slope;
      if (dy != nullptr) dy[i] = slope;
    }
    return OkStatus();
  }

 private:
  In<"Residual"> residual_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  T delta_ = 0;
};

Status InferHuber(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(Alike("X", "Y", "Out")(c));
  return c.ShareAll("X", "Residual");
}

Status InferHuberGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Residual", "X@GRAD"));
  return c.ShareAll("Residual", "Y@GRAD");
}

template <typename Math>
OpDef& WithKernels(OpDef& def) {
  return def.InferShape(Alike(Math::kFirst, Math::kSecond, Math::kOut))
      .template Kernel<Cpu, Pointwise<Math>::template Forward, float, double>()
      .Grad({.reads = {Math::kFirst, Math::kSecond}, .yields = {Math::kFirst}})
      .template GradKernel<Cpu, Pointwise<Math>::template Backward, float, double>();
}

}  // namespace

void RegisterPointwiseLosses(OpRegistry& ops) {
  WithKernels<LogLoss>(ops.Add("log_loss")
                           .Doc("The log loss of probabilities.", kLogDoc)
                           .Input("Predicted", "probabilities", Floats())
                           .Input("Labels", "0 or 1, shaped like Predicted", SameTypeAs("Predicted"))
                           .Output("Loss", "shaped like Predicted", SameTypeAs("Predicted"))
                           .RequiredAttr("epsilon", AttrKind::kFloat, "keeps logarithms finite", AtLeast(0)));
  WithKernels<BceLoss>(ops.Add("bce_loss")
                           .Doc("The log loss of probabilities, with clamped logarithms.", kBceDoc)
                           .Input("X", "probabilities", Floats())
                           .Input("Label", "0 or 1, shaped like X", SameTypeAs("X"))
                           .Output("Out", "shaped like X", SameTypeAs("X")));
  WithKernels<SigmoidCrossEntropy>(
      ops.Add("sigmoid_cross_entropy_with_logits")
          .Doc("The log loss of the sigmoid of X.", kSigmoidDoc)
          .Input("X", "logits", Floats())
          .Input("Label", "0 or 1, shaped like X", SameTypeAs("X"))
          .Output("Out", "shaped like X", SameTypeAs("X"))
          .Attr("normalize", false, "whether to divide by the number of elements that are not ignored")
          .Attr("ignore_index", -100, "elements with this label are ignored")
          .Nan("a label of NaN is not ignore_index: its element is NaN and is not ignored."));
  WithKernels<TeacherStudent>(ops.Add("teacher_student_sigmoid_loss")
                                  .Doc("The log loss of clicks and of teacher scores.", kTeacherDoc)
                                  .Input("X", "logits", Floats())
                                  .Input("Label", "shaped like X", SameTypeAs("X"))
                                  .Output("Y", "shaped like X", SameTypeAs("X"))
                                  .Attr("soft_max_up_bound", 15.0f, "the gradient is 0 for larger X")
                                  .Attr("soft_max_lower_bound", -15.0f, "the gradient is 0 for smaller X"));
  WithKernels<Hinge>(ops.Add("hinge_loss")
                         .Doc("The hinge loss.", kHingeDoc)
                         .Input("Logits", "scores", Floats())
                         .Input("Labels", "0 or 1, shaped like Logits", SameTypeAs("Logits"))
                         .Output("Loss", "shaped like Logits", SameTypeAs("Logits")));
  ops.Add("huber_loss")
      .Doc("The Huber loss: quadratic for small errors, linear for large ones.", kHuberDoc)
      .Input("X", "predictions", Floats())
      .Input("Y", "targets, shaped like X", SameTypeAs("X"))
      .Output("Residual", "Y - X", SameTypeAs("X"), Intermediate())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .RequiredAttr("delta", AttrKind::kFloat, "the largest error with a quadratic loss", AtLeast(0))
      .InferShape(InferHuber)
      .Kernel<Cpu, HuberKernel, float, double>()
      .Grad({.reads_outputs = {"Residual"}, .yields = {"X", "Y"}})
      .GradKernel<Cpu, HuberGradKernel, float, double>()
      .GradDef()
      .InferShape(InferHuberGrad);
}

}  // namespace penstock
