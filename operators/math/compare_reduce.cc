// equal_reduce: whether all elements of two tensors are equal.
#include <cmath>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/math/broadcast.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[0] is true if every element of X equals the corresponding element of Y; floats count as equal if they
differ by less than 1e-8. If the shapes differ, the dimensions of the operand of lower rank are aligned with
those of the other, starting at `axis` (-1: with the last ones). An operand is repeated along dimensions that
it lacks or that are 1.)";

Status InferEqualReduce(InferContext& c) {
  const Result<AlignedShapes> shapes = AlignShapes(c.ShapeOf("X"), c.ShapeOf("Y"), c.Attr<int>("axis"));
  if (!shapes.ok()) return c.Error(shapes.status().message());
  return c.SetShape("Out", {1});
}

template <typename Device, typename T>
class EqualReduceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k[y_].shape, k.Attr<int>("axis")));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    const Dim x_step = loops_.x_moves() ? 1 : 0, y_step = loops_.y_moves() ? 1 : 0;
    bool equal = true;
    loops_.ForEachRow([&](Dim, Dim xo, Dim yo) {
      for (Dim i = 0; i < loops_.inner(); ++i) equal = equal && Alike(x[xo + i * x_step], y[yo + i * y_step]);
    });
    *k[out_].template Data<bool>() = equal;
    return OkStatus();
  }

 private:
  static bool Alike(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(static_cast<double>(x - y)) < 1e-8;
    } else {
      return x == y;
    }
  }

  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  BroadcastLoops loops_;
};

}  // namespace

void RegisterCompareReduce(OpRegistry& ops) {
  ops.Add("equal_reduce")
      .Doc("Whether all elements of two tensors are equal.", kDoc)
      .Input("X", "left operand", Numbers())
      .Input("Y", "right operand; its shape is aligned with X's by `axis`", SameTypeAs("X"))
      .Output("Out", "one boolean", Only(DType::kBool))
      .Attr("axis", -1,
            "the dimension of X with which the first dimension of Y is aligned; -1: the last dimensions are "
            "aligned",
            AtLeast(-1))
      .Nan("NaN equals nothing, not even itself.")
      .InferShape(InferEqualReduce)
      .Kernel<Cpu, EqualReduceKernel, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
