// randint, randperm, sampling_id: random integers.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/shape_attr.h"
#include "operators/random/draws.h"

namespace penstock {
namespace {

constexpr char kSeed[] = R"(
Seed 0 takes a new seed from the process at every run. The numbers are not those that Fluid draws from the
same seed.)";

constexpr char kIntDoc[] = R"(
Out has the shape in attribute shape and holds integers of the uniform distribution over [low, high).)";

constexpr char kPermDoc[] = R"(
Out holds a random permutation of 0 ... n - 1.)";

constexpr char kSamplingDoc[] = R"(
Each row of X is a distribution over its columns; Out holds one random column index per row, drawn from it:
the first column at which the cumulative sum of the row exceeds a number drawn uniformly from [min, max), or
the last column if there is none.)";

template <typename Device, typename T>
class RandIntKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    low_ = k.Attr<std::int32_t>("low");
    const std::int64_t high = k.Attr<std::int32_t>("high");
    if (low_ >= high) return k.Error("low (", low_, ") must be below high (", high, ")");
    count_ = static_cast<std::uint64_t>(high - low_);
    shape_.Prepare(k);
    draws_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(shape_.Make(k));
    draws_.Start();
    for (T& out : k[out_].template Span<T>())
      out = static_cast<T>(low_ + static_cast<std::int64_t>(draws_.Below(count_)));
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  std::int64_t low_ = 0;
  std::uint64_t count_ = 1;
  GivenShape shape_;
  Draws draws_;
};

template <typename Device, typename T>
class RandPermKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    draws_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    draws_.Start();
    draws_.Shuffle(k[out_].template Data<T>(), k[out_].count());
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  Draws draws_;
};

Status InferSampling(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  if (c.ShapeOf("X")[1] == 0) return c.Error("X (", c.ShapeOf("X"), ") must have a column");
  const float min = c.Attr<float>("min"), max = c.Attr<float>("max");
  if (!(min <= max)) return c.Error("min (", min, ") must be at most max (", max, ")");
  return c.SetShape("Out", {c.ShapeOf("X")[0]});
}

template <typename Device, typename T>
class SamplingIdKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    min_ = k.Attr<float>("min");
    span_ = k.Attr<float>("max") - min_;
    draws_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    draws_.Start();
    const T* row = k[x_].template Data<T>();
    const Dim columns = k[x_].shape()[1];
    for (std::int64_t& out : k[out_].template Span<std::int64_t>()) {
      double left = min_ + span_ * draws_.Share();
      out = columns - 1;
      for (Dim j = 0; j < columns; ++j) {
        left -= static_cast<double>(row[j]);
        if (!(left < 0)) continue;
        out = j;
        break;
      }
      row += columns;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  double min_ = 0, span_ = 1;
  Draws draws_;
};

OpDef& FinishDraw(OpDef& def) {
  return def.Attr("seed", 0, "chooses the numbers; 0: a new seed at every run")
      .Affects({Effect::kRandom})
      .NoGrad();
}
OpDef& FinishIntegers(OpDef& def) {
  return FinishDraw(def.Output("Out", "the integers", TypeFromAttr("dtype")))
      .Attr("dtype", static_cast<std::int32_t>(DType::kInt64),
            "Out's element type, as Fluid numbers them: i32 or i64")
      .KernelTypeFrom("Out");
}

}  // namespace

void RegisterRandomIntegers(OpRegistry& ops) {
  FinishIntegers(WithShapeInputs(ops.Add("randint").Doc("Random integers, even over an interval.",
                                                        StrCat(kIntDoc, kSeed))))
      .Attr("shape", std::vector<std::int64_t>(), "Out's shape; -1 where it comes from tensors", AtLeast(-1))
      .RequiredAttr("low", AttrKind::kInt, "the least number")
      .RequiredAttr("high", AttrKind::kInt, "above all numbers")
      .InferShape(InferGivenShape)
      .Kernel<Cpu, RandIntKernel, std::int32_t, std::int64_t>();
  FinishIntegers(
      ops.Add("randperm").Doc("The numbers below n in an order of chance.", StrCat(kPermDoc, kSeed)))
      .RequiredAttr("n", AttrKind::kInt, "how many numbers", AtLeast(1))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {c.Attr<int>("n")}); })
      .Kernel<Cpu, RandPermKernel, std::int32_t, std::int64_t>();
  FinishDraw(ops.Add("sampling_id")
                 .Doc("Draws a column of each row, by the row's distribution.", StrCat(kSamplingDoc, kSeed))
                 .Input("X", "[rows, columns]: shares, which add up to 1", Floats())
                 .Output("Out", "[rows]", Only(DType::kInt64)))
      .Attr("min", 0.0f, "the least number that is drawn")
      .Attr("max", 1.0f, "above all numbers that are drawn")
      .Nan("a sum that is NaN passes no number, so the last column is drawn.")
      .InferShape(InferSampling)
      .KernelTypeFrom("X")
      .Kernel<Cpu, SamplingIdKernel, float, double>();
}

}  // namespace penstock
