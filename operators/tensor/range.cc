// range, linspace: evenly spaced numbers.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = Start + i * Step for each i for which this is before End: ceil((End - Start) / Step) numbers,
computed in their own type. Step must not be 0 and must lead from Start towards End.)";

constexpr char kLinspaceDoc[] = R"(
Out holds Num numbers, evenly spaced from Start to Stop, both included; if Num is 1, it holds Start.)";

constexpr std::int32_t kMostSpaced = 1 << 27;
constexpr double kMostNumbers = 1u << 31;

// For ops whose inputs hold one element each and determine the number of elements.
Status InferNumbers(InferContext& c) {
  for (const Slot& slot : c.op().inputs()) {
    if (!Compatible(c.ShapeOf(slot.name).Count(), 1))
      return c.Error(slot.name, " (", c.ShapeOf(slot.name), ") must hold one element");
  }
  return c.SetShape("Out", {kUnknownDim});
}

template <typename Device, typename T>
class RangeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(start_, end_, step_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T start = *k[start_].template Data<T>();
    const T end = *k[end_].template Data<T>();
    const T step = *k[step_].template Data<T>();
    const double numbers = Numbers(start, end, step);
    if (!(numbers >= 0 && numbers <= kMostNumbers)) {
      return InvalidArgument("E-op-range", "range: from Start (", start, ") to End (", end, ") by Step (",
                             step, ") are ", numbers, " numbers; there must be from 0 to 2^31");
    }
    shape_.Set(0, static_cast<Dim>(numbers));
    k[out_].Reset(DTypeOfT<T>::kValue, shape_);
    T* const out = k[out_].template Data<T>();
    for (Dim i = 0; i < shape_[0]; ++i) out[i] = At(start, i, step);
    return OkStatus();
  }

 private:
  static double Numbers(T start, T end, T step) {
    if constexpr (std::is_integral_v<T>) {  // the difference may not fit
      return std::ceil((static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(step));
    } else {
      return static_cast<double>(std::ceil((end - start) / step));
    }
  }
  static T At(T start, Dim i, T step) {
    if constexpr (std::is_integral_v<T>) {  // i * step alone may not fit; the sum does
      return static_cast<T>(static_cast<std::uint64_t>(start) +
                            static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
    } else {
      return start + static_cast<T>(i) * step;
    }
  }
  In<"Start"> start_;
  In<"End"> end_;
  In<"Step"> step_;
  Out<"Out"> out_;
  Shape shape_{1};
};

template <typename Device, typename T>
class LinspaceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(start_, stop_, num_, out_);
    return RequireApart(k, "Out");
  }
  Status Run(KernelRun& k) override {
    const T start = *k[start_].template Data<T>(), stop = *k[stop_].template Data<T>();
    const std::int32_t num = *k[num_].template Data<std::int32_t>();
    if (num < 1 || num > kMostSpaced)
      return InvalidArgument("E-op-range", "linspace: Num (", num, ") must be from 1 to 2^27");
    shape_.Set(0, num);
    MakeShaped(k[out_], DTypeOfT<T>::kValue, shape_);
    T* const out = k[out_].template Data<T>();
    const T step = num == 1 ? T{0} : (stop - start) / static_cast<T>(num - 1);
    for (std::int32_t i = 0; i < num; ++i) out[i] = start + step * static_cast<T>(i);
    return OkStatus();
  }

 private:
  In<"Start"> start_;
  In<"Stop"> stop_;
  In<"Num"> num_;
  Out<"Out"> out_;
  Shape shape_{1};
};

}  // namespace

void RegisterRange(OpRegistry& ops) {
  ops.Add("range")
      .Doc("Evenly spaced numbers.", kDoc)
      .Input("Start", "one element: the first number", Numbers())
      .Input("End", "one element: the end, not included", SameTypeAs("Start"))
      .Input("Step", "one element: the distance between numbers", SameTypeAs("Start"))
      .Output("Out", "the numbers", SameTypeAs("Start"))
      .InferShape(InferNumbers)
      .Kernel<Cpu, RangeKernel, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
  ops.Add("linspace")
      .Doc("A given number of evenly spaced numbers.", kLinspaceDoc)
      .Input("Start", "one element: the first number", Floats())
      .Input("Stop", "one element: the last number", SameTypeAs("Start"))
      .Input("Num", "one element: the number of numbers", Only(DType::kInt32))
      .Output("Out", "the numbers", SameTypeAs("Start"))
      .InferShape(InferNumbers)
      .Kernel<Cpu, LinspaceKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
