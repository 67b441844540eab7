#include "executor/plan/fuse_bias.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/graph/infer.h"
#include "executor/plan/block_uses.h"
#include "executor/plan/replace_steps.h"

namespace penstock::exec {
namespace {

constexpr char kBiasAddOp[] = "elementwise_add";
constexpr char kLayerOp[] = "fc";

// The slots of an op that computes what a bias is added to.
struct ProducerSlots {
  std::string_view type, out;
  bool is_convolution;
};
constexpr ProducerSlots kProducers[] = {{"mul", "Out", false},
                                        {"matmul", "Out", false},
                                        {"conv2d", "Output", true},
                                        {"depthwise_conv2d", "Output", true}};

const ProducerSlots* ProducerOf(const std::string& type) {
  const auto found = std::ranges::find(kProducers, type, &ProducerSlots::type);
  return found == std::end(kProducers) ? nullptr : found;
}

struct BiasChain {
  int producer = -1, add = -1;      // instructions
  int sum = -1, bias = -1;          // slots
  int row_dims = 0;                 // of a product
  std::vector<int> gradients = {};  // instructions that use the type of the product
};

class BiasChains {
 public:
  BiasChains(const CompiledBlock& block, const BlockUses& uses, std::span<const TensorDesc> known)
      : block_(block), uses_(uses), known_(known), joined_(block.instructions.size()) {}

  std::vector<BiasChain> Find() {
    std::vector<BiasChain> found;
    for (int i = 0; i < uses_.size(); ++i) {
      if (uses_.TypeOf(i) != kBiasAddOp) continue;
      std::optional<BiasChain> chain = ChainOf(i);
      if (!chain || !Fits(*chain) || !uses_.CanMove({chain->producer, i}, i, joined_)) continue;
      joined_[static_cast<std::size_t>(i)].push_back(chain->producer);
      found.push_back(*std::move(chain));
    }
    return found;
  }

 private:
  // By the use of slots alone.
  std::optional<BiasChain> ChainOf(int add) const {
    const int product = uses_.Input(add, "X");
    BiasChain chain = {.add = add, .sum = uses_.Output(add, "Out"), .bias = uses_.Input(add, "Y")};
    if (chain.bias < 0 || chain.sum < 0 || chain.bias == product || !uses_.IsPrivate(product))
      return std::nullopt;
    chain.producer = uses_.Writers(product).front();
    const ProducerSlots* const producer = ProducerOf(uses_.TypeOf(chain.producer));
    if (producer == nullptr || chain.producer > add) return std::nullopt;
    if (uses_.Output(chain.producer, producer->out) != product) return std::nullopt;
    if (chain.sum == chain.bias || uses_.Reads(chain.producer, chain.sum)) return std::nullopt;
    for (const int reader : uses_.Readers(product)) {
      if (reader == add) continue;
      if (reader < add || !ReadsTypeAlone(reader, product)) return std::nullopt;
      chain.gradients.push_back(reader);
    }
    return chain;
  }

  bool ReadsTypeAlone(int reader, int slot) const {
    const Instruction& instruction = uses_.At(reader);
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool names = std::ranges::find(instruction.inputs[i], slot) != instruction.inputs[i].end();
      if (names && ReadsElements(instruction, i)) return false;
    }
    return true;
  }

  // By types.
  bool Fits(BiasChain& chain) {
    const TensorDesc* const product = TypeOf(uses_.Input(chain.add, "X"));
    const TensorDesc* const bias = TypeOf(chain.bias);
    if (product == nullptr || bias == nullptr || product->dtype != bias->dtype) return false;
    const bool fits = ProducerOf(uses_.TypeOf(chain.producer))->is_convolution ? IsConvolution(chain.producer)
                                                                               : IsLayer(chain);
    if (!fits || product->shape.Count() == 0 || bias->shape.rank() != 1) return false;
    const int rank = product->shape.rank(), axis = ChannelAxis(chain.producer, rank);
    const auto given = uses_.OpOf(chain.add).GetOr<std::int32_t>("axis", -1);
    if ((given == -1 ? rank - 1 : given) != axis || bias->shape[0] != product->shape[axis]) return false;
    // The sum has the type of the product, if it keeps its own.
    return chain.gradients.empty() || uses_.Writers(chain.sum).size() == 1;
  }

  int ChannelAxis(int producer, int rank) const {
    if (!ProducerOf(uses_.TypeOf(producer))->is_convolution) return rank - 1;
    return uses_.OpOf(producer).GetOr("data_format", std::string()) == "NHWC" ? rank - 1 : 1;
  }

  bool IsConvolution(int producer) {
    const TensorDesc* const filter = TypeOf(uses_.Input(producer, "Filter"));
    return uses_.OpOf(producer).Input("Bias").empty() && filter != nullptr && filter->shape.Count() > 0;
  }

  // Whether the product has one matrix as its right factor, and its left factor in rows.
  bool IsLayer(BiasChain& chain) {
    const Op& op = uses_.OpOf(chain.producer);
    const TensorDesc* const x = TypeOf(uses_.Input(chain.producer, "X"));
    const TensorDesc* const y = TypeOf(uses_.Input(chain.producer, "Y"));
    if (x == nullptr || y == nullptr || y->shape.rank() != 2) return false;
    if (op.type() == "mul") {
      chain.row_dims = op.GetOr<std::int32_t>("x_num_col_dims", 1);
      return op.GetOr<std::int32_t>("y_num_col_dims", 1) == 1;
    }
    chain.row_dims = x->shape.rank() - 1;
    return chain.row_dims > 0 && !op.GetOr("transpose_X", false) && !op.GetOr("transpose_Y", false) &&
           op.GetOr("alpha", 1.0f) == 1.0f;
  }

  // The type of a slot; null unless it is a tensor of known shape. Most blocks need no type.
  const TensorDesc* TypeOf(int slot) {
    if (slot < 0) return nullptr;
    if (types_.empty()) types_ = WrittenTypes(block_, known_);
    const TensorDesc& type = types_[static_cast<std::size_t>(slot)];
    return IsKnownTensor(type) ? &type : nullptr;
  }

  const CompiledBlock& block_;
  const BlockUses& uses_;
  const std::span<const TensorDesc> known_;
  std::vector<TensorDesc> types_;         // by slot; empty: not inferred yet
  std::vector<std::vector<int>> joined_;  // by instruction: the product that will stand there
};

// The product and the sum as one instruction.
Instruction LayerOf(const OpRegistry& ops, const CompiledBlock& block, const BlockUses& uses,
                    const BiasChain& chain) {
  Instruction made = uses.At(chain.producer);
  Op op(kLayerOp);
  for (const NamedAttr& attr : made.op->attrs()) {
    if (made.def->FindAttr(attr.name) == nullptr) op.Set(attr.name, attr.value);
  }
  op.Set("in_num_col_dims", chain.row_dims);
  op.SetLocation(made.op->location());
  made.op = std::make_shared<const Op>(std::move(op));
  made.def = ops.Find(kLayerOp);
  made.inputs.clear();
  made.outputs.clear();
  return WithArguments(block, made,
                       {{"Input", uses.Input(chain.producer, "X")},
                        {"W", uses.Input(chain.producer, "Y")},
                        {"Bias", chain.bias}},
                       {{"Out", chain.sum}});
}

}  // namespace

std::shared_ptr<const CompiledBlock> FuseBias(const OpRegistry& ops,
                                              const std::shared_ptr<const CompiledBlock>& block,
                                              std::span<const TensorDesc> known) {
  const bool may_fuse = std::ranges::any_of(block->instructions, [](const Instruction& instruction) {
    return ProducerOf(instruction.op->type()) != nullptr;
  });
  if (!may_fuse || ops.Find(kLayerOp) == nullptr) return block;
  const BlockUses uses(*block);
  const std::vector<BiasChain> chains = BiasChains(*block, uses, known).Find();
  if (chains.empty()) return block;
  BlockWithFewerSteps out(*block, uses);
  for (const BiasChain& chain : chains) {
    const ProducerSlots& producer = *ProducerOf(uses.TypeOf(chain.producer));
    out.Replace({chain.producer, chain.add}, chain.add,
                producer.is_convolution
                    ? WithArguments(*block, uses.At(chain.producer), {{"Bias", chain.bias}},
                                    {{producer.out.data(), chain.sum}})
                    : LayerOf(ops, *block, uses, chain));
    for (const int gradient : chain.gradients)
      out.Replace({gradient}, gradient,
                  WithInput(*block, uses.At(gradient), uses.Input(chain.add, "X"), chain.sum));
  }
  return out.Write();
}

}  // namespace penstock::exec
