#include "executor/plan/fuse.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/graph/infer.h"
#include "executor/plan/block_uses.h"
#include "executor/plan/replace_steps.h"

namespace penstock::exec {
namespace {

constexpr char kNormOp[] = "batch_norm", kNormGradOp[] = "batch_norm_grad";
constexpr char kAddOp[] = "elementwise_add", kAddGradOp[] = "elementwise_add_grad";
constexpr char kReluOp[] = "relu", kReluGradOp[] = "relu_grad", kSumOp[] = "sum";
constexpr char kFusedOp[] = "batch_norm_relu", kFusedGradOp[] = "batch_norm_relu_grad";

// The instructions of a chain; -1: absent.
struct Chain {
  int norm = -1, add = -1, relu = -1;
  int sum = -1, relu_grad = -1, add_grad = -1, norm_grad = -1;
  bool addend_is_x = false;  // of add; else its Y

  std::vector<int> Forward() const { return Present({norm, add, relu}); }
  std::vector<int> Gradient() const { return Present({sum, relu_grad, add_grad, norm_grad}); }

 private:
  static std::vector<int> Present(std::vector<int> all) {
    std::erase(all, -1);
    return all;
  }
};

// Finds the chains of a block.
class Chains {
 public:
  Chains(const CompiledBlock& block, const BlockUses& uses, std::span<const TensorDesc> known)
      : uses_(uses),
        types_(WrittenTypes(block, known)),
        taken_(block.instructions.size(), false),
        joined_(block.instructions.size()) {}

  std::vector<Chain> Find() {
    std::vector<Chain> found;
    for (int i = 0; i < uses_.size(); ++i) {
      if (uses_.TypeOf(i) != kNormOp) continue;
      std::optional<Chain> chain = ChainFrom(i);
      if (!chain || !CanStandTogether(*chain)) continue;
      Take(chain->Forward(), chain->relu);
      if (chain->relu_grad >= 0) Take(chain->Gradient(), chain->relu_grad);
      found.push_back(*chain);
    }
    return found;
  }

 private:
  bool IsImage(int slot) const {
    if (slot < 0) return false;
    const TensorDesc& type = types_[static_cast<std::size_t>(slot)];
    return IsKnownTensor(type) && type.dtype == DType::kFp32 && type.lod_level == 0 &&
           type.shape.rank() > 2 && type.shape.Count() > 0;
  }
  bool AreAlike(int a, int b) const {
    return IsImage(a) && IsImage(b) &&
           types_[static_cast<std::size_t>(a)].shape == types_[static_cast<std::size_t>(b)].shape;
  }
  bool IsLast(int instruction) const {
    return uses_.OpOf(instruction).GetOr("data_layout", std::string()) == "NHWC";
  }

  std::optional<Chain> ChainFrom(int norm) const {
    Chain chain = {.norm = norm};
    const int normalised = uses_.Output(norm, "Y");
    if (!IsLast(norm) || !AreAlike(normalised, uses_.Input(norm, "X"))) return std::nullopt;
    if (!uses_.IsPrivate(normalised) || uses_.Readers(normalised).empty()) return std::nullopt;
    const int next = uses_.Readers(normalised).front();
    const bool complete = uses_.TypeOf(next) == kReluOp ? uses_.Readers(normalised).size() == 1
                                                        : AppendAdd(normalised, next, chain);
    if (!complete) return std::nullopt;
    if (chain.add < 0) chain.relu = next;
    if (!AppendGradient(normalised, chain)) return std::nullopt;
    return chain;
  }

  // Whether `next` adds an image to the normalised one for a relu. The gradient may read the latter.
  bool AppendAdd(int normalised, int next, Chain& chain) const {
    if (uses_.TypeOf(next) != kAddOp) return false;
    const int x = uses_.Input(next, "X"), y = uses_.Input(next, "Y"), sum = uses_.Output(next, "Out");
    if (x == y || !AreAlike(x, y) || !uses_.IsPrivate(sum)) return false;
    if (uses_.Readers(sum).size() != 1 || uses_.TypeOf(uses_.Readers(sum).front()) != kReluOp) return false;
    chain.add = next;
    chain.addend_is_x = y == normalised;
    chain.relu = uses_.Readers(sum).front();
    return true;
  }

  // Appends the gradient if there is one. False: it is not the chain's alone.
  bool AppendGradient(int normalised, Chain& chain) const {
    const int result = uses_.Output(chain.relu, "Out");
    for (const int reader : uses_.Readers(result)) {
      if (uses_.TypeOf(reader) != kReluGradOp || uses_.Input(reader, "Out") != result) continue;
      if (chain.relu_grad >= 0) return false;
      chain.relu_grad = reader;
    }
    const std::vector<int>& readers = uses_.Readers(normalised);
    if (chain.relu_grad < 0) return readers.size() == 1;
    int slope = uses_.Output(chain.relu_grad, "X@GRAD");
    int next = OnlyReader(slope);
    if (chain.add >= 0) {
      if (readers.size() != 2 || readers.back() != next || !IsGradOfAdd(next, slope, chain)) return false;
      chain.add_grad = next;
      slope = uses_.Output(next, chain.addend_is_x ? "Y@GRAD" : "X@GRAD");
      next = OnlyReader(slope);
    }
    if (next < 0 || !IsGradOfNorm(next, slope, chain)) return false;
    chain.norm_grad = next;
    AppendSum(chain);
    return true;
  }
  // -1: it is not private, or has other readers.
  int OnlyReader(int slot) const {
    return uses_.IsPrivate(slot) && uses_.Readers(slot).size() == 1 ? uses_.Readers(slot).front() : -1;
  }
  bool IsGradOfAdd(int instruction, int slope, const Chain& chain) const {
    return instruction >= 0 && uses_.TypeOf(instruction) == kAddGradOp &&
           uses_.Input(instruction, "Out@GRAD") == slope &&
           uses_.Input(instruction, "X") == uses_.Input(chain.add, "X") &&
           uses_.Input(instruction, "Y") == uses_.Input(chain.add, "Y");
  }
  bool IsGradOfNorm(int instruction, int slope, const Chain& chain) const {
    if (uses_.TypeOf(instruction) != kNormGradOp || !IsLast(instruction)) return false;
    if (uses_.Input(instruction, "Y@GRAD") != slope) return false;
    if (uses_.Input(instruction, "X") != uses_.Input(chain.norm, "X")) return false;
    return uses_.Input(instruction, "SavedMean") == uses_.Output(chain.norm, "SavedMean") &&
           uses_.Input(instruction, "SavedVariance") == uses_.Output(chain.norm, "SavedVariance");
  }

  // The sum of two gradients joins the chain if the addend has a gradient: its memory then holds what both
  // passes over the images read.
  void AppendSum(Chain& chain) const {
    const int slope = uses_.Input(chain.relu_grad, "Out@GRAD");
    if (chain.add_grad < 0 || OnlyReader(slope) != chain.relu_grad) return;
    if (uses_.Output(chain.add_grad, chain.addend_is_x ? "X@GRAD" : "Y@GRAD") < 0) return;
    const int sum = uses_.Writers(slope).front();
    if (uses_.TypeOf(sum) != kSumOp) return;
    const std::vector<std::vector<int>>& arguments = uses_.At(sum).inputs;
    if (arguments.size() != 1 || arguments[0].size() != 2) return;
    const bool written = std::ranges::all_of(
        arguments[0], [&](int slot) { return AreAlike(slot, slope) && uses_.IsWrittenBefore(slot, sum); });
    if (written && uses_.CanMove({sum, chain.relu_grad}, chain.relu_grad, joined_)) chain.sum = sum;
  }

  bool CanStandTogether(const Chain& chain) const {
    for (const std::vector<int>& part : {chain.Forward(), chain.Gradient()}) {
      for (const int member : part) {
        if (taken_[static_cast<std::size_t>(member)]) return false;
      }
    }
    return uses_.CanMove(chain.Forward(), chain.relu, joined_) &&
           (chain.relu_grad < 0 || uses_.CanMove(chain.Gradient(), chain.relu_grad, joined_));
  }

  void Take(const std::vector<int>& members, int at) {
    for (const int member : members) {
      taken_[static_cast<std::size_t>(member)] = true;
      if (member != at) joined_[static_cast<std::size_t>(at)].push_back(member);
    }
  }

  const BlockUses& uses_;
  const std::vector<TensorDesc> types_;
  std::vector<bool> taken_;               // by instruction: a member of a chain
  std::vector<std::vector<int>> joined_;  // by instruction: members that will stand there
};

Instruction FusedForward(const OpRegistry& ops, const CompiledBlock& block, const BlockUses& uses,
                         const Chain& chain) {
  std::vector<NewArgument> inputs;
  if (chain.add >= 0) inputs.push_back({"Addend", uses.Input(chain.add, chain.addend_is_x ? "X" : "Y")});
  return WithArguments(block, RenamedAs(ops, uses.At(chain.norm), kFusedOp), inputs,
                       {{"Y", uses.Output(chain.relu, "Out")}});
}

Instruction FusedGradient(const OpRegistry& ops, const CompiledBlock& block, const BlockUses& uses,
                          const Chain& chain) {
  std::vector<NewArgument> inputs = {{"Y", uses.Output(chain.relu, "Out")},
                                     {"Y@GRAD", uses.Input(chain.relu_grad, "Out@GRAD")}};
  if (chain.sum >= 0) {
    const std::vector<int>& parts = uses.At(chain.sum).inputs[0];
    inputs.back().variable = parts[0];
    inputs.push_back({"MoreGrad", parts[1]});
  }
  std::vector<NewArgument> outputs;
  if (chain.add_grad >= 0) {
    const int addend = uses.Output(chain.add_grad, chain.addend_is_x ? "X@GRAD" : "Y@GRAD");
    if (addend >= 0) outputs.push_back({"Addend@GRAD", addend});
  }
  return WithArguments(block, RenamedAs(ops, uses.At(chain.norm_grad), kFusedGradOp), inputs, outputs);
}

}  // namespace

std::shared_ptr<const CompiledBlock> FuseOps(const OpRegistry& ops,
                                             const std::shared_ptr<const CompiledBlock>& block,
                                             std::span<const TensorDesc> known) {
  const bool may_fuse = std::ranges::any_of(
      block->instructions, [](const Instruction& instruction) { return instruction.op->type() == kNormOp; });
  if (!may_fuse || ops.Find(kFusedOp) == nullptr || ops.Find(kFusedGradOp) == nullptr) return block;
  const BlockUses uses(*block);
  const std::vector<Chain> chains = Chains(*block, uses, known).Find();
  if (chains.empty()) return block;
  BlockWithFewerSteps out(*block, uses);
  for (const Chain& chain : chains) {
    out.Replace(chain.Forward(), chain.relu, FusedForward(ops, *block, uses, chain));
    if (chain.relu_grad >= 0)
      out.Replace(chain.Gradient(), chain.relu_grad, FusedGradient(ops, *block, uses, chain));
  }
  return out.Write();
}

}  // namespace penstock::exec
