#include "tests/support/random_network.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "framework/autodiff/minimize.h"
#include "framework/base/strings.h"
#include "tests/support/network_builder.h"
#include "tests/support/random_classes.h"
#include "tests/support/random_tables.h"

namespace penstock::test {
namespace {

class Layers {
 public:
  Layers(NetworkBuilder& builder, const NetworkOptions& options) : b_(builder), options_(options) {}

  std::string Loss() {
    AddInput();
    if (b_.draw().OneIn(3)) AddImage();
    std::vector<Activation> rows;
    if (options_.tables && b_.draw().OneIn(4)) rows = Tables(b_, options_).Add();
    live_.insert(live_.end(), rows.begin(), rows.end());
    for (int n = b_.draw().Below(b_.draw().OneIn(8) ? 40 : 10); n > 0; --n) AddLayer();
    Activation last = live_.back();
    for (const Activation& row : rows) last = Joined(last, row);  // so that each table is trained
    const std::string out = b_.Apply("mul", {last.name, b_.TrainedParam({last.width, 1})});
    const std::string loss = b_.Apply("mean", {b_.Apply("square", {out})});
    if (!options_.sparse_layers || b_.draw().OneIn(2)) return loss;
    const std::string classes = ManyClasses(b_).Cost(last);
    return b_.Apply("elementwise_add", {loss, b_.Apply("mean", {classes})});
  }

 private:
  Dim Width() {
    static constexpr Dim kSmall[] = {1, 1, 2, 3, 5, 7, 8, 13};
    static constexpr Dim kAny[] = {1,    1,     2,      3,      7,       8,       13,   31,
                                   64,   97,    128,    1021,   4096,    8191,    8192, 8193,
                                   9999, 65537, 100000, 131071, 1000003, 16777216};
    return options_.runnable ? b_.draw().Of(kSmall) : b_.draw().Of(kAny);
  }
  Activation Any() { return b_.draw().OneIn(2) ? live_.back() : b_.draw().Of(live_); }

  void AddInput() {
    const Dim width = Width();
    live_.push_back({b_.Data("x", {kUnknownDim, width}), width});
  }

  // conv2d and batch_norm on an image, one number per channel.
  void AddImage() {
    const Dim channels = b_.draw().Between(1, 3), filters = b_.draw().Between(1, options_.runnable ? 4 : 512);
    const Dim size = b_.draw().Of(std::array<Dim, 3>{1, 3, 5});
    const std::string image = b_.Data("image", {kUnknownDim, channels, 6, 6});
    const std::string conv = b_.Temporary("conv2d.tmp");
    Must(b_.main().Append(Op("conv2d")
                              .AddInput("Input", {image})
                              .AddInput("Filter", {b_.Param({filters, channels, size, size})})
                              .AddOutput("Output", {conv})
                              .Set("strides", std::vector<std::int32_t>{1, 1})
                              .Set("paddings", std::vector<std::int32_t>{2, 2})));
    const std::string normal = b_.draw().OneIn(2) ? BatchNorm(conv, filters) : conv;
    const std::string pooled = b_.Apply("pool2d", {normal},
                                        {{"pooling_type", std::string("avg")},
                                         {"ksize", std::vector<std::int32_t>{1, 1}},
                                         {"global_pooling", true}});
    const std::string flat = b_.Temporary("flatten2.tmp");
    Must(b_.main().Append(Op("flatten2")
                              .AddInput("X", {pooled})
                              .AddOutput("Out", {flat})
                              .AddOutput("XShape", {b_.Temporary("flatten2.shape")})
                              .Set("axis", 1)));
    live_.push_back({flat, filters});
  }

  std::string BatchNorm(const std::string& x, Dim channels) {
    const std::string mean = b_.Persistable(b_.names().Generate("bn.mean"), {channels}, 0.0f);
    const std::string variance = b_.Persistable(b_.names().Generate("bn.variance"), {channels}, 1.0f);
    const std::string y = b_.Temporary("batch_norm.tmp");
    Must(b_.main().Append(Op("batch_norm")
                              .AddInput("X", {x})
                              .AddInput("Scale", {b_.Param({channels})})
                              .AddInput("Bias", {b_.Param({channels})})
                              .AddInput("Mean", {mean})
                              .AddInput("Variance", {variance})
                              .AddOutput("Y", {y})
                              .AddOutput("MeanOut", {mean})
                              .AddOutput("VarianceOut", {variance})
                              .AddOutput("SavedMean", {b_.Temporary("batch_norm.mean")})
                              .AddOutput("SavedVariance", {b_.Temporary("batch_norm.variance")})));
    return y;
  }

  void AddLayer() {
    switch (b_.draw().Below(10)) {
      case 0:
        return Activate(Any());
      case 1:
        return Combine();
      case 2:
        return Concat();
      case 3:
        return LayerNorm(Any());
      case 4:
        return Dropout(Any());
      default:
        return Connected();
    }
  }

  void Connected() {
    const Activation in = Any();
    // Often the same width again, so that parameters can be shared.
    const Dim width = b_.draw().OneIn(2) ? in.width : Width();
    std::string out = b_.Apply("mul", {in.name, b_.Param({in.width, width})});
    if (!b_.draw().OneIn(3)) out = b_.Apply("elementwise_add", {out, b_.Param({width})}, {{"axis", 1}});
    live_.push_back({out, width});
    if (b_.draw().OneIn(2)) Activate(live_.back());
  }

  void Activate(const Activation& in) {
    static constexpr const char* kTypes[] = {"relu", "tanh", "sigmoid", "softmax", "square"};
    live_.push_back({b_.Apply(b_.draw().Of(kTypes), {in.name}), in.width});
  }

  void Combine() {
    static constexpr const char* kTypes[] = {"elementwise_add", "elementwise_mul", "elementwise_sub"};
    const Activation a = Any();
    for (const Activation& b : live_) {
      if (b.width != a.width) continue;
      live_.push_back({b_.Apply(b_.draw().Of(kTypes), {a.name, b.name}), a.width});
      return;
    }
  }

  Activation Joined(const Activation& a, const Activation& b) {
    const std::string out = b_.Temporary("concat.tmp");
    Must(b_.main().Append(
        Op("concat").AddInput("X", {a.name, b.name}).AddOutput("Out", {out}).Set("axis", 1)));
    return {out, a.width + b.width};
  }

  void Concat() {
    const Activation a = Any();
    live_.push_back(Joined(a, Any()));
  }

  void LayerNorm(const Activation& in) {
    const std::string y = b_.Temporary("layer_norm.tmp");
    Must(b_.main().Append(Op("layer_norm")
                              .AddInput("X", {in.name})
                              .AddInput("Scale", {b_.Param({in.width})})
                              .AddInput("Bias", {b_.Param({in.width})})
                              .AddOutput("Y", {y})
                              .AddOutput("Mean", {b_.Temporary("layer_norm.mean")})
                              .AddOutput("Variance", {b_.Temporary("layer_norm.variance")})));
    live_.push_back({y, in.width});
  }

  void Dropout(const Activation& in) {
    const std::string out = b_.Temporary("dropout.tmp");
    Must(b_.main().Append(Op("dropout")
                              .AddInput("X", {in.name})
                              .AddOutput("Out", {out})
                              .AddOutput("Mask", {b_.Temporary("dropout.mask")})
                              .Set("dropout_prob", 0.25f)
                              .Set("fix_seed", true)
                              .Set("seed", b_.draw().Between(1, 99))));
    live_.push_back({out, in.width});
  }

  NetworkBuilder& b_;
  const NetworkOptions& options_;
  std::vector<Activation> live_;
};

// Adds everything after the forward part.
class Trainer {
 public:
  Trainer(const OpRegistry& ops, NetworkBuilder& builder, RandomNetwork& network)
      : ops_(ops), b_(builder), network_(network) {}

  void Minimize() {
    const OptimizerSpec spec = Spec();
    const Result<BackwardResult> backward =
        OptimizerBackward(ops_, network_.main, b_.names(), {.loss = network_.loss});
    Must(backward.status());
    std::vector<ParamGrad> pairs = backward->params_grads;
    if (b_.draw().OneIn(4)) {
      const bool together = ops_.Find("reduce_sum") != nullptr && b_.draw().OneIn(2);
      together ? ClipTogether(pairs) : Clip(pairs);
    }
    const Naming naming{b_.names(), b_.scopes()};
    Must(ApplyGradients(ops_, network_.main, network_.startup, naming, spec, std::move(pairs)).status());
  }

 private:
  OptimizerSpec Spec() {
    OptimizerSpec spec;
    const OpDef& optimizer = *b_.draw().Of(PlainOptimizers(ops_));
    spec.op_type = network_.optimizer = optimizer.type();
    for (const AttrDef& attr : optimizer.attrs()) {
      if (!attr.default_value && attr.kind == AttrKind::kFloat) spec.attrs.push_back({attr.name, 0.75f});
    }
    spec.learning_rate = 0.01f;
    if (b_.draw().OneIn(4)) spec.learning_rate = Schedule();
    if (b_.draw().OneIn(3)) spec.regularizer = Decay();
    for (const VarRef& var : network_.main.main().vars()) {
      if (var->facts.is_parameter && b_.draw().OneIn(16)) spec.param_regularizers[var->name] = Decay();
    }
    network_.decayed = spec.regularizer || !spec.param_regularizers.empty();
    return spec;
  }

  Regularizer Decay() {
    // The op `sign` may be missing in the registry.
    const bool l1 = ops_.Find("sign") != nullptr && b_.draw().OneIn(2);
    return {.kind = l1 ? Regularizer::Kind::kL1 : Regularizer::Kind::kL2, .coefficient = 0.0005f};
  }

  // rate = 0.001 * step, with the count of steps kept in the program, by either op that counts.
  std::string Schedule() {
    network_.schedule = true;
    const std::string steps =
        b_.Persistable(b_.names().Generate("steps"), {1}, b_.draw().OneIn(2) ? 0.0f : 4.0f);
    const std::string rate = b_.Temporary("rate");
    b_.main().SetRole(OpRole::kLrSched);
    const float step = b_.draw().OneIn(4) ? 2.0f : 1.0f;
    const bool increments = ops_.Find("increment") != nullptr && b_.draw().OneIn(2);
    Op count = increments ? Op("increment").Set("step", step) : Op("scale").Set("bias", step);
    Must(b_.main().Append(std::move(count.AddInput("X", {steps}).AddOutput("Out", {steps}))));
    Must(b_.main().Append(Op("scale").AddInput("X", {steps}).AddOutput("Out", {rate}).Set("scale", 0.001f)));
    b_.main().SetRole(OpRole::kForward);
    return rate;
  }

  // Halves some gradients, in Fluid's scope for ops that stay on trainers.
  void Clip(std::vector<ParamGrad>& pairs) {
    const NameScopes::Guard guard(b_.scopes(), "gradient_clip_@CLIP");
    for (auto& [param, grad] : pairs) {
      if (b_.draw().OneIn(3)) continue;
      network_.clipped = true;
      const std::string clipped = b_.Temporary("clip.tmp");
      b_.main().SetRole(OpRole::kOptimize, {param, grad});
      Must(
          b_.main().Append(Op("scale").AddInput("X", {grad}).AddOutput("Out", {clipped}).Set("scale", 0.5f)));
      grad = clipped;
    }
    b_.main().SetRole(OpRole::kForward);
  }

  std::string Applied(Op op) {
    const std::string out = b_.Temporary(op.type() + ".tmp");
    Must(b_.main().Append(std::move(op.AddOutput("Out", {out}))));
    return out;
  }

  // Divides gradients by the root of the sum of their squares, if that is large.
  void ClipTogether(std::vector<ParamGrad>& pairs) {
    const NameScopes::Guard guard(b_.scopes(), "gradient_clip_@CLIP");
    std::vector<std::string> sums;
    for (const auto& [param, grad] : pairs) {
      b_.main().SetRole(OpRole::kOptimize, {param, grad});
      const std::string square = Applied(Op("square").AddInput("X", {grad}));
      sums.push_back(Applied(Op("reduce_sum").AddInput("X", {square}).Set("reduce_all", true)));
    }
    const std::string norm = Applied(Op("sqrt").AddInput("X", {Applied(Op("sum").AddInput("X", sums))}));
    const std::string most =
        Applied(Op("fill_constant").Set("shape", std::vector<std::int64_t>{1}).Set("value", 5.0f));
    const std::string larger = Applied(Op("elementwise_max").AddInput("X", {most}).AddInput("Y", {norm}));
    const std::string factor = Applied(Op("elementwise_div").AddInput("X", {most}).AddInput("Y", {larger}));
    for (auto& [param, grad] : pairs) {
      b_.main().SetRole(OpRole::kOptimize, {param, grad});
      grad = Applied(Op("elementwise_mul").AddInput("X", {grad}).AddInput("Y", {factor}));
    }
    network_.clipped = network_.clipped_together = true;
    b_.main().SetRole(OpRole::kForward);
  }

  const OpRegistry& ops_;
  NetworkBuilder& b_;
  RandomNetwork& network_;
};

}  // namespace

std::vector<const OpDef*> PlainOptimizers(const OpRegistry& ops) {
  std::vector<const OpDef*> plain;
  for (const OpDef* def : ops.All()) {
    if (!def->optimizer()) continue;
    const OptimizerDef& optimizer = *def->optimizer();
    std::set<std::string> made = {optimizer.param_slot, optimizer.grad_slot, optimizer.rate_slot};
    for (const StateDef& state : optimizer.states) made.insert(state.slot);
    const bool others = std::any_of(def->inputs().begin(), def->inputs().end(), [&](const SlotDef& slot) {
      return !slot.optional && !made.contains(slot.name);
    });
    if (!others) plain.push_back(def);
  }
  return plain;
}

RandomNetwork MakeRandomNetwork(const OpRegistry& ops, std::uint64_t seed, const NetworkOptions& options) {
  Draw draw(seed);
  RandomNetwork network;
  NetworkBuilder builder(ops, draw, network);
  network.loss = Layers(builder, options).Loss();
  Trainer(ops, builder, network).Minimize();
  network.main.mutable_meta().random_seed = network.startup.mutable_meta().random_seed = draw.Below(100);
  return network;
}

}  // namespace penstock::test
