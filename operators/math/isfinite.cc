// isfinite, isinf, isnan: whether a tensor holds infinities or NaN.
#include <cmath>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For selected rows, their values are checked. Integers are finite.)";

template <bool kInfinities, bool kNans>
struct Holds {
  template <typename T>
  static bool Any(const Tensor& x) {
    if constexpr (std::is_floating_point_v<T>) {
      for (const T value : x.Span<T>()) {
        if ((kInfinities && std::isinf(value)) || (kNans && std::isnan(value))) return true;
      }
    }
    return false;
  }
};

// Out is whether any element matches, or whether none does.
template <typename Test, bool kTrueIfAny>
struct Check {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, out_);
      is_rows_ = k[x_].kind == VarKind::kSelectedRows;
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      const Tensor& x = is_rows_ ? k.Var(x_).template As<SelectedRows>().value : k[x_];
      // Selected rows without a value have no elements.
      *k[out_].template Data<bool>() = (x.initialized() && Test::template Any<T>(x)) == kTrueIfAny;
      return OkStatus();
    }

   private:
    In<"X"> x_;
    Out<"Out"> out_;
    bool is_rows_ = false;
  };
};

template <typename Test, bool kTrueIfAny>
void Add(OpRegistry& ops, const std::string& type, const std::string& summary, const std::string& formula,
         const std::string& nan) {
  ops.Add(type)
      .Doc(summary, formula + "\n" + kDoc)
      .Input("X", "any shape, or selected rows", Numbers(), TensorOrRows())
      .Output("Out", "one boolean", Only(DType::kBool))
      .InferShape([](InferContext& c) {
        c.SetKind("Out", VarKind::kTensor);
        return c.SetShape("Out", {1});
      })
      .Nan(nan)
      .KernelTypeFrom("X")
      .template Kernel<Cpu, Check<Test, kTrueIfAny>::template Forward, float, double, std::int32_t,
                       std::int64_t>()
      .NoGrad();
}

}  // namespace

void RegisterIsfinite(OpRegistry& ops) {
  Add<Holds<true, true>, false>(ops, "isfinite", "Whether all elements are finite.",
                                "Out[0] = no element of X is infinite or NaN", "NaN is not finite.");
  Add<Holds<true, false>, true>(ops, "isinf", "Whether any element is infinite.",
                                "Out[0] = some element of X is infinite", "NaN is not infinite.");
  Add<Holds<false, true>, true>(ops, "isnan", "Whether any element is NaN.",
                                "Out[0] = some element of X is NaN", "NaN is what the op detects.");
}

}  // namespace penstock
