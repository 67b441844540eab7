// cudnn_lstm: an LSTM with several layers over sequences of equal length, whose weights are one vector, as in
// cuDNN.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/runtime/random.h"
#include "operators/common/philox.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/lstm_layer.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
i = sigmoid(W_i x + b_i + R_i h + d_i)     f, o likewise     g = tanh(W_g x + b_g + R_g h + d_g)
c = f c + i g                              h = o tanh(c)     at each step; Out = h of the last layer

Input is [steps, sequences, input_size], InitH and InitC are [layers, sequences, hidden_size], and Out is
[steps, sequences, hidden_size]. With is_bidirec, each layer runs in both directions and concatenates the two
outputs; InitH and InitC then have two entries per layer. In training, dropout between layers sets elements to
0 with probability dropout_prob and divides the others by 1 - dropout_prob. With `seed` -1, each run draws a
new seed from the process. Cache keeps the random state for the gradient.

W is [count]. For each layer and direction, it first holds W_i W_f W_g W_o, each [hidden_size, width of the
layer's input], and R_i R_f R_g R_o, each [hidden_size, hidden_size]; after all of these, in the same order,
b_i b_f b_g b_o d_i d_f d_g d_o of each.)";

struct LstmStack {
  Dim layers = 1, directions = 1, input = 0, hidden = 0;

  Dim InputOf(Dim layer) const { return layer == 0 ? input : hidden * directions; }
  Dim WeightsOf(Dim layer) const { return 4 * hidden * (InputOf(layer) + hidden); }
  Dim WeightsBefore(Dim layer, Dim direction) const {
    Dim sum = direction * WeightsOf(layer);
    for (Dim l = 0; l < layer; ++l) sum += directions * WeightsOf(l);
    return sum;
  }
  Dim Count() const { return WeightsBefore(layers, 0) + layers * directions * 8 * hidden; }

  template <typename T>
  LstmWeights<T> At(T* w, Dim layer, Dim direction) const {
    T* const own = w + WeightsBefore(layer, direction);
    return {own, own + 4 * hidden * InputOf(layer),
            w + WeightsBefore(layers, 0) + (layer * directions + direction) * 8 * hidden};
  }
};

template <typename Source>
LstmStack StackOf(const Source& from) {
  return {from.template Attr<int>("num_layers"), from.template Attr<bool>("is_bidirec") ? 2 : 1,
          from.template Attr<int>("input_size"), from.template Attr<int>("hidden_size")};
}

Status InferCudnnLstm(InferContext& c) {
  const LstmStack stack = StackOf(c);
  const Shape& input = c.ShapeOf("Input");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 3));
  if (!Compatible(input[2], stack.input))
    return c.Error("width of Input (", input[2], ") must be input_size (", stack.input, ")");
  if (input[0] != kUnknownDim && input[0] > c.Attr<int>("max_len"))
    return c.Error("steps of Input (", input[0], ") must be at most max_len (", c.Attr<int>("max_len"), ")");
  const Shape state = {stack.layers * stack.directions, input[1], stack.hidden};
  for (const char* slot : {"InitH", "InitC"}) {
    if (!Compatible(c.ShapeOf(slot), state))
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be ", state);
  }
  if (!Compatible(c.ShapeOf("W").Count(), stack.Count()))
    return c.Error("W (", c.ShapeOf("W"), ") must hold ", stack.Count(), " elements");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("last_h", state));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("last_c", state));
  return c.SetShape("Out", {input[0], input[1], stack.hidden * stack.directions});
}

// Dropout between layers.
class LayerDropout {
 public:
  Status Prepare(const KernelSetup& k) {
    probability_ = k.Attr<float>("dropout_prob");
    active_ = probability_ > 0 && !k.Attr<bool>("is_test") && k.Attr<int>("num_layers") > 1;
    seed_ = k.Attr<int>("seed");
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
    k.Bind(cache_);
    if (active_ && !cache_) return k.Error("dropout_prob (", probability_, ") needs input Cache in training");
    return OkStatus();
  }
  // Call it before a forward run: Cache holds the number of forward runs and the key of the last one.
  void Begin(KernelRun& k) {
    if (!active_) return;
    Tensor& cache = k.Var(cache_).As<Tensor>();
    const bool first = !cache.initialized();
    if (first) cache.Reset(DType::kInt64, {2});
    auto* const state = cache.Data<std::int64_t>();
    state[0] = first ? 0 : state[0] + 1;
    key_ = seed_ == -1 ? source_->Next() : PhiloxKey(static_cast<std::uint64_t>(state[0]));
    state[1] = static_cast<std::int64_t>(key_);
  }
  // Call it before a gradient run: restores the key of the forward run.
  Status Recall(KernelRun& k) {
    if (!active_) return OkStatus();
    const auto* const cache = k.Var(cache_).If<Tensor>();
    if (cache == nullptr || !cache->initialized() || cache->count() != 2)
      return FailedPrecondition("E-op-no-value",
                                "cudnn_lstm_grad: Cache holds nothing; cudnn_lstm must run first");
    key_ = static_cast<std::uint64_t>(cache->Data<std::int64_t>()[1]);
    return OkStatus();
  }
  // Multiplies the outputs of `layer`, or their gradient, by the dropout mask.
  template <typename T>
  void Apply(Dim layer, std::vector<T>& values) const {
    if (!active_) return;
    const T kept = probability_ < 1 ? T{1} / static_cast<T>(1 - probability_) : T{0};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const PhiloxWords words = PhiloxBlock(key_, i / 4, static_cast<std::uint32_t>(layer));
      values[i] *=
          static_cast<double>(words[i % 4]) * 0x1p-32 < static_cast<double>(probability_) ? T{0} : kept;
    }
  }

 private:
  std::uint64_t PhiloxKey(std::uint64_t run) const {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(seed_)) << 32 ^ run;
  }
  float probability_ = 0;
  bool active_ = false;
  int seed_ = -1;
  RandomSource* source_ = nullptr;
  In<"Cache"> cache_;
  std::uint64_t key_ = 0;
};

// All layers of the forward pass, with the inputs and saved values of each.
template <typename T>
class LstmStackRun {
 public:
  Status Prepare(const KernelSetup& k) {
    stack_ = StackOf(k);
    k.Bind(input_, init_h_, init_c_, w_);
    steps_ = k[input_].shape[0];
    batch_ = k[input_].shape[1];
    threads_ = k.threads();
    layers_.resize(static_cast<std::size_t>(stack_.layers * stack_.directions));
    inputs_.resize(static_cast<std::size_t>(stack_.layers));
    return dropout_.Prepare(k);
  }
  Status Forward(KernelRun& k, T* last_h, T* last_c, T* out) {
    const Dim states = batch_ * stack_.hidden;
    std::copy_n(std::as_const(k[init_h_]).template Data<T>(), stack_.layers * stack_.directions * states,
                last_h);
    std::copy_n(std::as_const(k[init_c_]).template Data<T>(), stack_.layers * stack_.directions * states,
                last_c);
    const Dim width = stack_.hidden * stack_.directions;
    for (Dim l = 0; l < stack_.layers; ++l) {
      T* to = out;
      if (l + 1 < stack_.layers) {
        std::vector<T>& next = inputs_[static_cast<std::size_t>(l + 1)];
        next.resize(static_cast<std::size_t>(steps_ * batch_ * width));
        to = next.data();
      }
      for (Dim d = 0; d < stack_.directions; ++d) {
        const Dim at = l * stack_.directions + d;
        PENSTOCK_RETURN_IF_ERROR(layer(at).Forward(Sizes(l, d), Weights(k, l, d), InputTo(k, l),
                                                   last_h + at * states, last_c + at * states,
                                                   {to + d * stack_.hidden, width}));
      }
      if (l + 1 < stack_.layers) dropout_.Apply(l, inputs_[static_cast<std::size_t>(l + 1)]);
    }
    return OkStatus();
  }

  LstmSizes Sizes(Dim l, Dim direction) const {
    return {steps_, batch_, stack_.InputOf(l), stack_.hidden, direction == 1, threads_};
  }
  LstmWeights<const T> Weights(KernelRun& k, Dim l, Dim direction) const {
    return stack_.At(std::as_const(k[w_]).template Data<T>(), l, direction);
  }
  const T* InputTo(KernelRun& k, Dim l) const {
    return l == 0 ? std::as_const(k[input_]).template Data<T>() : inputs_[static_cast<std::size_t>(l)].data();
  }
  LstmLayer<T>& layer(Dim at) { return layers_[static_cast<std::size_t>(at)]; }
  LayerDropout& dropout() { return dropout_; }
  const LstmStack& stack() const { return stack_; }
  Dim steps() const { return steps_; }
  Dim batch() const { return batch_; }

 private:
  LstmStack stack_;
  In<"Input"> input_;
  In<"InitH"> init_h_;
  In<"InitC"> init_c_;
  In<"W"> w_;
  Dim steps_ = 0, batch_ = 0;
  int threads_ = 1;
  std::vector<LstmLayer<T>> layers_;    // by layer and direction
  std::vector<std::vector<T>> inputs_;  // of each layer except the first
  LayerDropout dropout_;
};

template <typename Device, typename T>
class CudnnLstmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_, last_h_, last_c_);
    for (const char* slot : {"Out", "last_h", "last_c"}) PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, slot));
    return run_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    run_.dropout().Begin(k);
    return run_.Forward(k, k[last_h_].template Data<T>(), k[last_c_].template Data<T>(),
                        k[out_].template Data<T>());
  }

 private:
  LstmStackRun<T> run_;
  Out<"Out"> out_;
  Out<"last_h"> last_h_;
  Out<"last_c"> last_c_;
};

// Runs the forward pass again for the values that each layer saves.
template <typename Device, typename T>
class CudnnLstmGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const LstmStack stack = StackOf(k);
    const Shape& input = k.Input("Input").shape;
    if (input.rank() != 3 || input[2] != stack.input)
      return k.Error("Input (", input, ") must be [steps, sequences, ", stack.input, "]");
    const Shape state = {stack.layers * stack.directions, input[1], stack.hidden};
    for (const char* slot : {"InitH", "InitC"}) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, state));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "W", stack.Count()));
    const Shape out = {input[0], input[1], stack.hidden * stack.directions};
    k.Bind(dout_, dlast_h_, dlast_c_);
    if (dout_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", out));
    if (dlast_h_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "last_h@GRAD", state));
    if (dlast_c_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "last_c@GRAD", state));
    k.Bind(dinput_, dinit_h_, dinit_c_, dw_);
    out_count_ = static_cast<std::size_t>(out.Count());
    state_count_ = static_cast<std::size_t>(state.Count());
    return run_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(run_.dropout().Recall(k));
    h_.resize(state_count_);
    c_.resize(state_count_);
    dvalues_.resize(out_count_);
    PENSTOCK_RETURN_IF_ERROR(run_.Forward(k, h_.data(), c_.data(), dvalues_.data()));
    Load(k, dout_, dvalues_);
    Load(k, dlast_h_, h_);
    Load(k, dlast_c_, c_);
    if (dw_) std::ranges::fill(k[dw_].template Span<T>(), T{0});
    if (dinput_) std::ranges::fill(k[dinput_].template Span<T>(), T{0});
    for (Dim l = run_.stack().layers - 1; l >= 0; --l) PENSTOCK_RETURN_IF_ERROR(Layer(k, l));
    if (dinit_h_) std::ranges::copy(h_, k[dinit_h_].template Data<T>());
    if (dinit_c_) std::ranges::copy(c_, k[dinit_c_].template Data<T>());
    return OkStatus();
  }

 private:
  // Returns the incoming gradient, or 0.
  void Load(KernelRun& k, const Operand& from, std::vector<T>& to) const {
    std::ranges::fill(to, T{0});
    if (from) std::copy_n(std::as_const(k[from]).template Data<T>(), to.size(), to.data());
  }
  // Replaces dvalues_, the gradient of the layer's output, by that of its input.
  Status Layer(KernelRun& k, Dim l) {
    const LstmStack& stack = run_.stack();
    const Dim width = stack.hidden * stack.directions, states = run_.batch() * stack.hidden;
    T* dinput = l > 0 || !dinput_ ? nullptr : k[dinput_].template Data<T>();
    if (l > 0) {
      dbefore_.assign(static_cast<std::size_t>(run_.steps() * run_.batch() * width), T{0});
      dinput = dbefore_.data();
    }
    for (Dim d = 0; d < stack.directions; ++d) {
      const Dim at = l * stack.directions + d;
      const LstmWeights<T> dw =
          dw_ ? stack.At(k[dw_].template Data<T>(), l, d) : LstmWeights<T>{nullptr, nullptr, nullptr};
      PENSTOCK_RETURN_IF_ERROR(
          run_.layer(at).Backward(run_.Sizes(l, d), run_.Weights(k, l, d), run_.InputTo(k, l),
                                  {dvalues_.data() + d * stack.hidden, width}, h_.data() + at * states,
                                  c_.data() + at * states, dinput, dw_ ? &dw : nullptr));
    }
    if (l == 0) return OkStatus();
    run_.dropout().Apply(l - 1, dbefore_);
    std::swap(dvalues_, dbefore_);
    return OkStatus();
  }

  LstmStackRun<T> run_;
  In<"Out@GRAD"> dout_;
  In<"last_h@GRAD"> dlast_h_;
  In<"last_c@GRAD"> dlast_c_;
  Out<"Input@GRAD"> dinput_;
  Out<"InitH@GRAD"> dinit_h_;
  Out<"InitC@GRAD"> dinit_c_;
  Out<"W@GRAD"> dw_;
  std::size_t out_count_ = 0, state_count_ = 0;
  std::vector<T> h_, c_, dvalues_, dbefore_;
};

}  // namespace

void RegisterCudnnLstm(OpRegistry& ops) {
  ops.Add("cudnn_lstm")
      .Doc("An LSTM with several layers over sequences of equal length.", kDoc)
      .Input("Input", "[steps, sequences, input_size]", Floats())
      .Input("InitH", "initial hidden states, [layers * directions, sequences, hidden_size]",
             SameTypeAs("Input"))
      .Input("InitC", "initial cells, of the same shape", SameTypeAs("Input"))
      .Input("W", "all weights and biases", SameTypeAs("Input"))
      .Input("Cache", "the random state of dropout", AnyType(), Optional() | OfKind(VarKind::kRaw))
      .Output("Out", "[steps, sequences, hidden_size * directions]", SameTypeAs("Input"), Apart())
      .Output("last_h", "final hidden states", SameTypeAs("Input"), Apart())
      .Output("last_c", "final cells", SameTypeAs("Input"), Apart())
      .Attr("max_len", 20, "the largest number of steps of Input", AtLeast(1))
      .Attr("dropout_prob", 0.0f, "the probability that an element between layers is set to 0", AtLeast(0))
      .Attr("is_bidirec", false, "whether each layer runs in both directions")
      .Attr("input_size", 10, "the width of Input", AtLeast(1))
      .Attr("hidden_size", 100, "the width of the hidden state", AtLeast(1))
      .Attr("num_layers", 1, "the number of layers", AtLeast(1))
      .Attr("is_test", false, "whether to skip dropout")
      .Attr("seed", -1, "the seed of dropout; -1: a new seed for each run")
      .Affects({Effect::kRandom})
      .InferShape(InferCudnnLstm)
      .Kernel<Cpu, CudnnLstmKernel, float, double>()
      .Grad({.reads = {"Input", "InitH", "InitC", "W", "Cache"},
             .reads_outputs = {"Out"},
             .yields = {"Input", "InitH", "InitC", "W"},
             .apart = {"Input", "InitH", "InitC", "W"}})
      .GradKernel<Cpu, CudnnLstmGradKernel, float, double>();
}

}  // namespace penstock
