#include "tools/bench/micro/kernel_cases.h"

#include <iterator>
#include <utility>

namespace penstock::bench {
namespace {

using Names = std::vector<std::string>;
using Cases = std::vector<KernelCase>;

// An op whose arguments have the names of their slots.
Op Named(const std::string& type, const std::vector<KernelInput>& inputs, const Names& outputs) {
  Op op(type);
  for (const KernelInput& input : inputs) op.AddInput(input.name, {input.name});
  for (const std::string& name : outputs) op.AddOutput(name, {name});
  return op;
}

KernelInput Ids(std::string name, Shape shape, double below) {
  return {
      .name = std::move(name), .shape = std::move(shape), .low = 0, .high = below, .dtype = DType::kInt64};
}
// Values that are valid probabilities, variances and learning rates.
KernelInput Positive(std::string name, Shape shape) {
  return {.name = std::move(name), .shape = std::move(shape), .low = 0.01, .high = 1};
}

Cases SoftmaxCases() {
  Cases cases;
  for (const Shape& x : {Shape{100, 2073}, Shape{16, 4, 64, 64}, Shape{1024, 10000}})
    cases.push_back({Named("softmax", {{"X", x}}, {"Out"}), {{"X", x}}, {"X"}});
  const Shape planes = {4, 21, 128, 128};
  cases.push_back({Named("softmax", {{"X", planes}}, {"Out"}).Set("axis", 1), {{"X", planes}}, {"X"}});
  for (const Shape& x : {Shape{64, 10}, Shape{100, 2073}, Shape{1024, 10000}}) {
    const std::vector<KernelInput> in = {{"Logits", x}, Ids("Label", {x[0], 1}, static_cast<double>(x[1]))};
    cases.push_back({Named("softmax_with_cross_entropy", in, {"Softmax", "Loss"}), in, {"Logits"}});
  }
  for (const bool second : {false, true}) {
    for (const Shape& x : {Shape{64, 10}, Shape{100, 2073}}) {
      const std::vector<KernelInput> in = {Positive("X", x),
                                           Ids("Label", {x[0], 1}, static_cast<double>(x[1]))};
      Op op =
          second ? Named("cross_entropy2", in, {"Y", "XShape", "MatchX"}) : Named("cross_entropy", in, {"Y"});
      // Only one column of X is read; the gradient is written whole.
      const double label = static_cast<double>(x[0]) * 8, column = static_cast<double>(x[0]) * 4;
      cases.push_back({.op = std::move(op),
                       .inputs = in,
                       .wanted = {"X"},
                       .bytes = label + 3 * column,
                       .gradient_bytes = label + 2 * column + 4 * static_cast<double>(x.Count())});
    }
  }
  return cases;
}

Cases ElementwiseCases() {
  Cases cases;
  for (const char* type : {"relu", "relu6", "sigmoid", "tanh", "gelu", "leaky_relu", "hard_swish", "exp"}) {
    for (const Shape& x : {Shape{100, 256}, Shape{64, 16, 32, 32}})
      cases.push_back({Named(type, {{"X", x}}, {"Out"}), {{"X", x}}, {"X"}});
  }
  const Shape batch = {100, 256};
  for (const char* type : {"sin", "cos", "acos", "asin", "atan", "erf", "selu", "soft_relu", "mish", "stanh",
                           "tanh_shrink", "softshrink", "hard_shrink", "abs", "floor", "round"})
    cases.push_back({Named(type, {{"X", batch}}, {"Out"}), {{"X", batch}}, {"X"}});
  for (const char* type : {"sqrt", "rsqrt", "log1p", "pow"}) {
    const std::vector<KernelInput> in = {Positive("X", batch)};
    Op op = Named(type, in, {"Out"});
    if (op.type() == "pow") op.Set("factor", 1.5f);
    cases.push_back({std::move(op), in, {"X"}});
  }
  struct Pair {
    Shape x, y;
    int axis;
  };
  const std::vector<Pair> pairs = {{{100, 256}, {256}, 1},
                                   {{2560, 512}, {512}, 1},
                                   {{64, 20, 24, 24}, {20}, 1},
                                   {{8, 64, 28, 28}, {8, 64}, 0},
                                   {{1024, 10000}, {10000}, 1},
                                   {{16, 64, 256}, {16, 64, 256}, -1},
                                   {{64, 16, 32, 32}, {64, 16, 32, 32}, -1}};
  for (const char* type : {"elementwise_add", "elementwise_mul", "elementwise_div"}) {
    for (const Pair& pair : pairs) {
      const std::vector<KernelInput> in = {{"X", pair.x}, Positive("Y", pair.y)};
      cases.push_back({Named(type, in, {"Out"}).Set("axis", pair.axis), in, {"X", "Y"}});
    }
  }
  for (const char* type : {"clip", "dropout"}) {
    for (const Shape& x : {Shape{100, 256}, Shape{1024, 1024}}) {
      Op op = Named(type, {{"X", x}}, {"Out"});
      if (op.type() == "clip") op.Set("min", -0.5f).Set("max", 0.5f);
      if (op.type() == "dropout") op.AddOutput("Mask", {"Mask"}).Set("dropout_prob", 0.1f);
      cases.push_back({std::move(op), {{"X", x}}, {"X"}});
    }
  }
  return cases;
}

Cases ReduceCases() {
  Cases cases;
  for (const char* type : {"reduce_sum", "reduce_mean", "reduce_max"}) {
    for (const std::int32_t dim : {1, 0}) {
      for (const Shape& x : {Shape{100, 256}, Shape{2560, 512}}) {
        Op op = Named(type, {{"X", x}}, {"Out"});
        cases.push_back({op.Set("dim", std::vector<std::int32_t>{dim}), {{"X", x}}, {"X"}});
      }
    }
  }
  for (const char* type : {"reduce_sum", "reduce_max"}) {
    const Shape x = {16, 64, 256};
    Op op = Named(type, {{"X", x}}, {"Out"});
    cases.push_back({op.Set("dim", std::vector<std::int32_t>{1}), {{"X", x}}, {"X"}});
  }
  for (const Shape& x : {Shape{1024, 1}, Shape{1024, 1024}})
    cases.push_back({Named("mean", {{"X", x}}, {"Out"}), {{"X", x}}, {"X"}});
  const Shape x = {1024, 1024};
  cases.push_back({Named("squared_l2_norm", {{"X", x}}, {"Out"}), {{"X", x}}, {"X"}});
  cases.push_back({Named("clip_by_norm", {{"X", x}}, {"Out"}).Set("max_norm", 1.0f), {{"X", x}}});
  return cases;
}

Cases NormCases() {
  Cases cases;
  for (const Shape& x : {Shape{16, 64, 256}, Shape{1024, 1024}}) {
    const Dim columns = x[x.rank() - 1];
    const std::vector<KernelInput> in = {{"X", x}, {"Scale", {columns}}, {"Bias", {columns}}};
    cases.push_back({Named("layer_norm", in, {"Y", "Mean", "Variance"}).Set("begin_norm_axis", x.rank() - 1),
                     in,
                     {"X", "Scale", "Bias"}});
  }
  for (const Shape& x : {Shape{64, 64, 8, 8}, Shape{64, 32, 16, 16}, Shape{64, 16, 32, 32},
                         Shape{8, 256, 56, 56}, Shape{8, 64, 112, 112}}) {
    const Shape channels = {x[1]};
    const std::vector<KernelInput> in = {{"X", x},
                                         {"Scale", channels},
                                         {"Bias", channels},
                                         {"Mean", channels},
                                         Positive("Variance", channels)};
    Op op = Named("batch_norm", in, {"Y", "SavedMean", "SavedVariance"});
    op.AddOutput("MeanOut", {"Mean"}).AddOutput("VarianceOut", {"Variance"});
    cases.push_back({std::move(op), in, {"X", "Scale", "Bias"}});
  }
  return cases;
}

Op Pooling(const Shape& x, const char* type, std::int32_t window, std::int32_t stride, std::int32_t padding) {
  return Named("pool2d", {{"X", x}}, {"Out"})
      .Set("pooling_type", type)
      .Set("ksize", std::vector<std::int32_t>{window, window})
      .Set("strides", std::vector<std::int32_t>{stride, stride})
      .Set("paddings", std::vector<std::int32_t>{padding, padding});
}

struct Convolution {
  Dim batch, channels, extent, filters, window;
  std::int32_t stride = 1, padding = 0;
  bool first = false;  // the gradient of its input is not wanted
};

KernelCase Convolved(const Convolution& c) {
  const std::vector<KernelInput> in = {{"Input", {c.batch, c.channels, c.extent, c.extent}},
                                       {"Filter", {c.filters, c.channels, c.window, c.window}}};
  Op op = Named("conv2d", in, {"Output"});
  op.Set("strides", std::vector<std::int32_t>{c.stride, c.stride});
  op.Set("paddings", std::vector<std::int32_t>{c.padding, c.padding});
  const Dim out = (c.extent + 2 * c.padding - c.window) / c.stride + 1;
  const double flops =
      2.0 * static_cast<double>(c.batch * c.filters * out * out * c.channels * c.window * c.window);
  KernelCase made{.op = std::move(op), .inputs = in, .wanted = {"Filter"}, .flops = flops};
  made.gradient_flops = c.first ? flops : 2 * flops;
  if (!c.first) made.wanted.insert("Input");
  return made;
}

Cases ImageCases() {
  Cases cases;
  for (const Shape& x : {Shape{64, 50, 8, 8}, Shape{64, 20, 24, 24}})
    cases.push_back({Pooling(x, "max", 2, 2, 0), {{"X", x}}, {"X"}});
  cases.push_back({Pooling({8, 64, 112, 112}, "max", 3, 2, 1), {{"X", {8, 64, 112, 112}}}, {"X"}});
  cases.push_back({Pooling({64, 64, 28, 28}, "max", 3, 1, 1), {{"X", {64, 64, 28, 28}}}, {"X"}});
  cases.push_back({Pooling({64, 64, 8, 8}, "avg", 8, 1, 0), {{"X", {64, 64, 8, 8}}}, {"X"}});
  for (const std::int32_t windows : {1, 6}) {
    Op op = Pooling({8, 64, 28, 28}, "avg", windows, 1, 0).Set("adaptive", true);
    cases.push_back({std::move(op), {{"X", {8, 64, 28, 28 + windows}}}, {"X"}});
  }
  const Convolution convolutions[] = {{64, 1, 28, 20, 5, 1, 0, true}, {64, 20, 12, 50, 5},
                                      {64, 3, 32, 16, 3, 1, 1, true}, {64, 16, 32, 16, 3, 1, 1},
                                      {64, 16, 32, 32, 3, 2, 1},      {64, 32, 16, 32, 3, 1, 1},
                                      {64, 64, 8, 64, 3, 1, 1},       {8, 3, 224, 64, 7, 2, 3, true},
                                      {8, 64, 56, 64, 3, 1, 1},       {8, 256, 56, 64, 1},
                                      {8, 512, 7, 512, 3, 1, 1}};
  for (const Convolution& c : convolutions) cases.push_back(Convolved(c));
  return cases;
}

Cases ProductCases() {
  Cases cases;
  for (const auto& [m, k, n] : std::initializer_list<std::array<Dim, 3>>{
           {100, 256, 2073}, {64, 800, 500}, {2560, 128, 512}, {1024, 256, 1024}, {1024, 256, 10000}}) {
    const double flops = 2.0 * static_cast<double>(m * k * n);
    const std::vector<KernelInput> in = {{"X", {m, k}}, {"Y", {k, n}}};
    cases.push_back({Named("mul", in, {"Out"}), in, {"X", "Y"}, flops, 2 * flops});
  }
  const Shape heads = {16, 4, 64, 64};
  const double flops = 2.0 * static_cast<double>(heads.Count() * 64);
  for (const bool transposed : {true, false}) {
    const std::vector<KernelInput> in = {{"X", heads}, {"Y", heads}};
    Op op = Named("matmul", in, {"Out"}).Set("transpose_Y", transposed).Set("alpha", 0.125f);
    cases.push_back({std::move(op), in, {"X", "Y"}, flops, 2 * flops});
  }
  const Shape x = {16, 64, 4, 64};
  Op op = Named("transpose2", {{"X", x}}, {"Out", "XShape"});
  cases.push_back({op.Set("axis", std::vector<std::int32_t>{0, 2, 1, 3}), {{"X", x}}, {"X"}});
  return cases;
}

// Lookups read and write only the rows of their ids; a dense gradient is written whole.
KernelCase Lookup(const char* type, Dim height, Dim width, Shape ids, bool sparse) {
  const double count = static_cast<double>(ids.Count()), rows = count * static_cast<double>(width) * 4;
  const std::vector<KernelInput> in = {{"W", {height, width}},
                                       Ids("Ids", std::move(ids), static_cast<double>(height))};
  const double table = 4 * static_cast<double>(height * width);
  return {.op = Named(type, in, {"Out"}).Set("is_sparse", sparse),
          .inputs = in,
          .wanted = {"W"},
          .bytes = count * 8 + 2 * rows,
          .gradient_bytes = count * 8 + 2 * rows + (sparse ? 0 : table)};
}

Cases RecurrentCases() {
  constexpr Dim kRows = 2560, kWords = 80, kState = 128;
  Cases cases = {Lookup("lookup_table", 2073, 32, {100, 1}, true),
                 Lookup("lookup_table", 10000, 128, {2560, 1}, true),
                 Lookup("lookup_table_v2", 10000, 256, {16, 64}, false)};
  const KernelInput hidden = {.name = "X", .shape = {kRows, kState}, .sequence = kWords};
  for (const char* type : {"MAX", "SUM", "AVERAGE"}) {
    Op op = Named("sequence_pool", {hidden}, {"Out", "MaxIndex"}).Set("pooltype", type);
    cases.push_back({std::move(op), {hidden}, {"X"}});
  }
  for (const Dim gates : {Dim{4}, Dim{3}}) {
    const std::vector<KernelInput> in = {
        {.name = "Input", .shape = {kRows, gates * kState}, .sequence = kWords},
        {.name = "Weight", .shape = {kState, gates * kState}, .low = -0.1, .high = 0.1},
        {.name = "Bias", .shape = {1, gates * kState}, .low = -0.1, .high = 0.1}};
    Op op = gates == 4 ? Named("lstm", in, {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"})
                       : Named("gru", in, {"Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"});
    if (gates == 4) op.Set("use_peepholes", false);
    const double flops = 2.0 * static_cast<double>(kRows * kState * gates * kState);
    cases.push_back({std::move(op), in, {"Input", "Weight", "Bias"}, flops, 2 * flops});
  }
  return cases;
}

// An optimizer's op: its state is updated in place.
KernelCase Update(const char* type, const Shape& shape, const Names& states, const Names& powers) {
  std::vector<KernelInput> in = {{"Param", shape}, {"Grad", shape}, Positive("LearningRate", {1})};
  for (const std::string& name : states) in.push_back(Positive(name, shape));
  for (const std::string& name : powers) in.push_back(Positive(name, {1}));
  Op op = Named(type, in, {});
  op.AddOutput("ParamOut", {"Param"});
  for (const Names* group : {&states, &powers}) {
    for (const std::string& name : *group) op.AddOutput(name + "Out", {name});
  }
  if (op.type() == "momentum") op.Set("mu", 0.9f);
  return {.op = std::move(op), .inputs = in};
}

Cases OptimizerCases() {
  Cases cases;
  for (const Shape& shape : {Shape{16}, Shape{64, 64, 3, 3}, Shape{256, 10000}}) {
    cases.push_back(Update("sgd", shape, {}, {}));
  }
  KernelCase rows = Update("sgd", {10000, 128}, {}, {});
  rows.inputs[1] = {.name = "Grad", .shape = {2560, 128}, .height = 10000};
  rows.bytes = 2560 * (8 + 3 * 128 * 4);
  cases.push_back(std::move(rows));
  for (const Shape& shape : {Shape{16}, Shape{64, 64, 3, 3}, Shape{256, 10000}})
    cases.push_back(Update("momentum", shape, {"Velocity"}, {}));
  for (const Shape& shape : {Shape{16}, Shape{64, 64, 3, 3}, Shape{256, 10000}})
    cases.push_back(Update("adam", shape, {"Moment1", "Moment2"}, {"Beta1Pow", "Beta2Pow"}));
  return cases;
}

}  // namespace

std::vector<KernelCase> KernelCases() {
  Cases all;
  for (auto* make : {SoftmaxCases, ElementwiseCases, ReduceCases, NormCases, ImageCases, ProductCases,
                     RecurrentCases, OptimizerCases}) {
    Cases cases = make();
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace penstock::bench
