// tdm_child, tdm_sampler: the children of nodes in a tree of items, and samples of nodes on and beside the
// path to an item.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/runtime/random.h"
#include "operators/common/element_type.h"
#include "operators/common/philox.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr char kChildDoc[] = R"(
Row n of TreeInfo describes node n: its item (0: none), its layer, its parent, and its child_nums children (0:
none). Child holds the children of each node in X, and LeafMask whether each of them has an item. Node 0, and
nodes whose first child is 0, have no children.)";

constexpr char kSamplerDoc[] = R"(
Row i of Travel is the path to item i: one node per layer, then 0 after the end of the path. Layer holds the
nodes of all layers; those of layer l are from layer_offset_lod[l] to layer_offset_lod[l + 1]. For each item
of X and each layer, Out has the node on the path (with output_positive) and neg_samples_num_list[l] other
nodes of that layer, drawn uniformly without repetition. Labels are 1 for the node on the path and 0 for the
others. After the end of a path, Mask, Out and Labels are 0. If seed is 0, each run draws a new seed from the
process. The samples differ from Fluid's.)";

Status RequireIntegerType(InferContext& c, const char* attr) {
  const int type = c.Attr<int>(attr);
  if (type == static_cast<int>(DType::kInt32) || type == static_cast<int>(DType::kInt64)) return OkStatus();
  return c.Error(attr, " (", type, ") must be the number of i32 or i64");
}

Status InferTdmChild(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireIntegerType(c, "dtype"));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("TreeInfo", 2));
  const int children = c.Attr<int>("child_nums");
  if (!Compatible(c.ShapeOf("TreeInfo")[1], Dim{3} + children))
    return c.Error("TreeInfo (", c.ShapeOf("TreeInfo"), ") must have 3 + child_nums (", children,
                   ") columns");
  const Shape out = Concat(c.ShapeOf("X"), {children});
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Child", out));
  return c.SetShape("LeafMask", out);
}

// Writes numbers of type T to an output of i32 or i64.
inline void PutInteger(Tensor& to, Dim at, std::int64_t value) {
  if (to.dtype() == DType::kInt32) {
    to.Data<std::int32_t>()[at] = static_cast<std::int32_t>(value);
  } else {
    to.Data<std::int64_t>()[at] = value;
  }
}

std::int64_t NodeAt(KernelRun& k, Operand from, Dim at) {
  return k[from].dtype() == DType::kInt32 ? std::as_const(k[from]).Data<std::int32_t>()[at]
                                          : std::as_const(k[from]).Data<std::int64_t>()[at];
}

Status NoNode(const char* type, std::int64_t node, Dim nodes) {
  return InvalidArgument("E-op-index", type, ": node ", node, " must be in [0, ", nodes, ")");
}

template <typename Device, typename T>
class TdmChildKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, tree_, child_, mask_);
    children_ = k.Attr<int>("child_nums");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const Dim nodes = k[tree_].shape()[0], width = k[tree_].shape()[1];
    const Dim count = k[x_].count();
    for (Dim i = 0; i < count; ++i) {
      if (x[i] < 0 || x[i] >= nodes) return NoNode("tdm_child", x[i], nodes);
      const Dim own = x[i] * width + 3;
      const bool has = x[i] != 0 && NodeAt(k, tree_, own) != 0;
      for (Dim j = 0; j < children_; ++j) {
        const std::int64_t node = has ? NodeAt(k, tree_, own + j) : 0;
        if (node < 0 || node >= nodes) return NoNode("tdm_child", node, nodes);
        PutInteger(k[child_], i * children_ + j, node);
        PutInteger(k[mask_], i * children_ + j, has && NodeAt(k, tree_, node * width) != 0 ? 1 : 0);
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"TreeInfo"> tree_;
  Out<"Child"> child_;
  Out<"LeafMask"> mask_;
  Dim children_ = 1;
};

// Returns the number of nodes per item in Out, or an error.
template <typename Context>
Result<Dim> SampledNodes(const Context& c, const Shape& travel, const Shape& layer) {
  const Ints samples = c.template Attr<Ints>("neg_samples_num_list");
  const Ints offsets = c.template Attr<Ints>("layer_offset_lod");
  if (samples.empty() || offsets.size() != samples.size() + 1)
    return c.Error("layer_offset_lod has ", offsets.size(),
                   " entries; there must be one more than neg_samples_num_list (", samples.size(), ")");
  if (travel.rank() != 2 || !Compatible(travel[1], static_cast<Dim>(samples.size())))
    return c.Error("Travel (", travel, ") must be [items, layers]; the number of layers is ", samples.size());
  Dim all = 0;
  for (std::size_t l = 0; l < samples.size(); ++l) {
    const std::int64_t nodes = std::int64_t{offsets[l + 1]} - offsets[l];
    if (offsets[0] != 0 || nodes < 1 || samples[l] < 0 || samples[l] >= nodes)
      return c.Error("neg_samples_num_list holds ", samples[l], " for layer ", l, ", which has ", nodes,
                     " nodes; it must be from 0 to below that");
    all += samples[l] + (c.template Attr<bool>("output_positive") ? 1 : 0);
  }
  if (!Compatible(layer.Count(), offsets.back()))
    return c.Error("Layer (", layer, ") must hold the ", offsets.back(), " nodes of layer_offset_lod");
  return all;
}

Status InferTdmSampler(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireIntegerType(c, "dtype"));
  PENSTOCK_ASSIGN_OR_RETURN(const Dim nodes, SampledNodes(c, c.ShapeOf("Travel"), c.ShapeOf("Layer")));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const Shape out = {c.ShapeOf("X").Count(), nodes};
  for (const char* slot : {"Out", "Labels", "Mask"}) PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, out));
  return OkStatus();
}

template <typename Device, typename T>
class TdmSamplerKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, travel_, layer_, out_, labels_, mask_);
    samples_ = k.Attr<Ints>("neg_samples_num_list");
    offsets_ = k.Attr<Ints>("layer_offset_lod");
    positive_ = k.Attr<bool>("output_positive");
    seed_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(k.Attr<int>("seed")));
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
    if (k[travel_].dtype != k[layer_].dtype ||
        (k[travel_].dtype != DType::kInt32 && k[travel_].dtype != DType::kInt64))
      return k.Error("Travel and Layer must both be i32, or i64");
    drawn_.reserve(static_cast<std::size_t>(*std::ranges::max_element(samples_)));
    return SampledNodes(k, k[travel_].shape, k[layer_].shape).status();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const std::uint64_t key = seed_ != 0 ? seed_ : source_->Next();
    std::uint64_t draws = 0;
    Dim at = 0;
    const Dim count = k[x_].count();
    const Dim nodes = k[travel_].shape()[0], depth = k[travel_].shape()[1];
    for (Dim i = 0; i < count; ++i) {
      if (x[i] < 0 || x[i] >= nodes) return NoNode("tdm_sampler", x[i], nodes);
      for (std::size_t l = 0; l < samples_.size(); ++l) {
        const std::int64_t own = NodeAt(k, travel_, x[i] * depth + static_cast<Dim>(l));
        if (positive_) Put(k, at++, own, 1, own != 0);
        drawn_.clear();
        for (std::int32_t s = 0; s < samples_[l]; ++s) {
          const std::int64_t node = own == 0 ? 0 : Draw(k, l, own, key, draws);
          Put(k, at++, node, 0, own != 0);
        }
      }
    }
    return OkStatus();
  }

 private:
  // Draws a node of the layer that is neither on the path nor drawn before. The layer has more nodes than are
  // drawn; if Layer lists a node several times, after some attempts a node is drawn again.
  std::int64_t Draw(KernelRun& k, std::size_t l, std::int64_t own, std::uint64_t key, std::uint64_t& draws) {
    constexpr int kTries = 1000;
    const auto nodes = static_cast<std::uint64_t>(offsets_[l + 1] - offsets_[l]);
    std::int64_t node = 0;
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t share = PhiloxBlock(key, draws++)[0];
      node = NodeAt(k, layer_, offsets_[l] + static_cast<Dim>(share * nodes >> 32));
      if (node != own && std::ranges::find(drawn_, node) == drawn_.end()) break;
    }
    drawn_.push_back(node);
    return node;
  }
  void Put(KernelRun& k, Dim at, std::int64_t node, std::int64_t label, bool is_there) {
    PutInteger(k[out_], at, is_there ? node : 0);
    if (labels_) PutInteger(k[labels_], at, is_there ? label : 0);
    PutInteger(k[mask_], at, is_there ? 1 : 0);
  }

  In<"X"> x_;
  In<"Travel"> travel_;
  In<"Layer"> layer_;
  Out<"Out"> out_;
  Out<"Labels"> labels_;
  Out<"Mask"> mask_;
  Ints samples_, offsets_;
  bool positive_ = true;
  std::uint64_t seed_ = 0;
  RandomSource* source_ = nullptr;
  std::vector<std::int64_t> drawn_;
};

}  // namespace

void RegisterTdm(OpRegistry& ops) {
  ops.Add("tdm_child")
      .Doc("The children of nodes in a tree.", kChildDoc)
      .Input("X", "nodes, any shape", Integers())
      .Input("TreeInfo", "[nodes, 3 + child_nums]", Integers())
      .Output("Child", "the dimensions of X, then child_nums", TypeFromAttr("dtype"), Apart())
      .Output("LeafMask", "1 where the child has an item", TypeFromAttr("dtype"), Apart())
      .RequiredAttr("child_nums", AttrKind::kInt, "the largest number of children of a node", AtLeast(1))
      .Attr("dtype", static_cast<std::int32_t>(DType::kInt32), "the element type of the outputs: i32 or i64")
      .InferShape(InferTdmChild)
      .KernelTypeFrom("X")
      .Kernel<Cpu, TdmChildKernel, std::int32_t, std::int64_t>()
      .NoGrad();
  ops.Add("tdm_sampler")
      .Doc("Samples nodes on and beside the paths to items.", kSamplerDoc)
      .Input("X", "items, [n, 1]", Integers())
      .Input("Travel", "[items, layers]: the path to each item", Integers())
      .Input("Layer", "the nodes of all layers", Integers())
      .Output("Out", "[n, nodes per item]", TypeFromAttr("dtype"), Apart())
      .Output("Labels", "1 for nodes on the path", TypeFromAttr("dtype"), Apart() | Optional())
      .Output("Mask", "0 after the end of the path", TypeFromAttr("dtype"), Apart())
      .Attr("output_positive", true, "whether Out includes the nodes on the path")
      .Attr("neg_samples_num_list", Ints(), "the number of other nodes, for each layer")
      .Attr("layer_offset_lod", Ints(), "the beginning of each layer in Layer, and the end of the last one")
      .Attr("seed", 0, "the seed of the samples; 0: a new seed for each run")
      .Affects({Effect::kRandom})
      .Attr("dtype", static_cast<std::int32_t>(DType::kInt32), "the element type of the outputs: i32 or i64")
      .InferShape(InferTdmSampler)
      .KernelTypeFrom("X")
      .Kernel<Cpu, TdmSamplerKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
