// average_accumulates: sums of a parameter's values over a window of steps, for their average.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
sum_1 accumulates param each step, and is added to sum_2 every 16384 steps, so that small values are not lost
in large sums. When num_accumulates has reached min_average_window and min(max_average_window, num_updates *
average_window), a new window begins: sum_3 is set to the sum so far, sum_1 and sum_2 to 0, and
old_num_accumulates to the number of values in sum_3. The average is (sum_1 + sum_2 + sum_3) /
(num_accumulates + old_num_accumulates).)";

constexpr std::int64_t kStepsBetweenMoves = 16384;

constexpr const char* kSums[] = {"sum_1", "sum_2", "sum_3"};
constexpr const char* kCounts[] = {"num_accumulates", "old_num_accumulates", "num_updates"};

Status InferAverage(InferContext& c) {
  for (const char* sum : kSums) {
    const std::string in = StrCat("in_", sum);
    if (!Compatible(c.ShapeOf(in), c.ShapeOf("param"))) {
      return c.Error("shape of ", in, " (", c.ShapeOf(in), ") must equal shape of param (",
                     c.ShapeOf("param"), ")");
    }
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(in, StrCat("out_", sum)));
  }
  for (const char* count : kCounts) {
    const std::string in = StrCat("in_", count);
    if (!Compatible(c.ShapeOf(in).Count(), 1))
      return c.Error(in, " (", c.ShapeOf(in), ") must hold one element");
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll(in, StrCat("out_", count)));
  }
  return OkStatus();
}

template <typename Device, typename T>
class AverageKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    param_ = k.Input("param");
    for (std::size_t i = 0; i < 3; ++i) {
      sums_in_[i] = k.Input(StrCat("in_", kSums[i]));
      sums_out_[i] = k.Output(StrCat("out_", kSums[i]));
      counts_in_[i] = k.Input(StrCat("in_", kCounts[i]));
      counts_out_[i] = k.Output(StrCat("out_", kCounts[i]));
    }
    window_ = static_cast<double>(k.Attr<float>("average_window"));
    longest_ = k.Attr<std::int64_t>("max_average_window");
    shortest_ = k.Attr<std::int64_t>("min_average_window");
    if (shortest_ <= longest_) return OkStatus();
    return k.Error("min_average_window (", shortest_, ") must be at most max_average_window (", longest_,
                   ")");
  }
  Status Run(KernelRun& k) override {
    std::int64_t counts[3];
    for (std::size_t i = 0; i < 3; ++i) counts[i] = *k[counts_in_[i]].template Data<std::int64_t>();
    auto& [accumulated, old_accumulated, updates] = counts;
    for (const std::int64_t count : {updates, accumulated}) {
      if (count < 0 || count == std::numeric_limits<std::int64_t>::max())
        return InvalidArgument("E-op-average", "average_accumulates: a count of steps is ", count);
    }
    ++updates;
    ++accumulated;
    const bool moves = updates % kStepsBetweenMoves == 0;
    const auto full = static_cast<double>(std::min<std::int64_t>(
        longest_, static_cast<std::int64_t>(std::min(static_cast<double>(updates) * window_, 9e18))));
    const bool ends = accumulated >= shortest_ && static_cast<double>(accumulated) >= full;
    Add(k, moves, ends);
    if (ends) {
      old_accumulated = accumulated;
      accumulated = 0;
    }
    for (std::size_t i = 0; i < 3; ++i) *k[counts_out_[i]].template Data<std::int64_t>() = counts[i];
    return OkStatus();
  }

 private:
  void Add(KernelRun& k, bool moves, bool ends) {
    const T* const param = k[param_].template Data<T>();
    const T* in[3];
    T* out[3];
    for (std::size_t s = 0; s < 3; ++s) {
      in[s] = k[sums_in_[s]].template Data<T>();
      out[s] = k[sums_out_[s]].template Data<T>();
    }
    const std::int64_t count = k[param_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      T first = in[0][i] + param[i], second = in[1][i], third = in[2][i];
      if (moves) {
        second += first;
        first = 0;
      }
      if (ends) {
        third = first + second;
        first = second = 0;
      }
      out[0][i] = first;
      out[1][i] = second;
      out[2][i] = third;
    }
  }

  Operand param_, sums_in_[3], sums_out_[3], counts_in_[3], counts_out_[3];
  double window_ = 0;
  std::int64_t longest_ = 0, shortest_ = 0;
};

}  // namespace

void RegisterAverageAccumulates(OpRegistry& ops) {
  OpDef& def = ops.Add("average_accumulates")
                   .Doc("Sums of a parameter's values over a window of steps.", kDoc)
                   .Input("param", "the parameter", Floats());
  for (const char* sum : kSums)
    def.Input(StrCat("in_", sum), "a sum, shaped like param", SameTypeAs("param"));
  for (const char* count : kCounts) def.Input(StrCat("in_", count), "one element", Only(DType::kInt64));
  for (const char* sum : kSums)
    def.Output(StrCat("out_", sum), "its new value; names the same variable", SameTypeAs("param"));
  for (const char* count : kCounts)
    def.Output(StrCat("out_", count), "its new value; names the same variable", Only(DType::kInt64));
  def.Attr("average_window", 0.0f, "the window's share of all steps", AtLeast(0))
      .RequiredAttr("max_average_window", AttrKind::kLong, "the longest window", AtLeast(1))
      .Attr("min_average_window", std::int64_t{10000}, "the shortest window", AtLeast(1))
      .InferShape(InferAverage)
      .Elementwise()
      .NoGrad()
      .Kernel<Cpu, AverageKernel, float, double>();
}

}  // namespace penstock
