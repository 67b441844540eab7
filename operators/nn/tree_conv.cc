// tree_conv: a convolution over trees, whose window is a node and its descendants up to a depth.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/gemm.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[b, u] = the sum over the nodes v of u's window, and over k, of eta_k(v) * NodesVector[b, v] . Filter[:, k]

EdgeSet[b] lists edges (parent, child); nodes are numbered from 1, and the list ends before the first edge
that contains a 0. The window of a node consists of the node, at depth 0, and its descendants at depths below
max_depth. A node at depth d that is the i-th of n children has the weights

eta_t = (max_depth - d) / max_depth
eta_l = (1 - eta_t) * (i - 1) / (n - 1)
eta_r = (1 - eta_t) * (1 - eta_l)

in the order l, r, t along the second dimension of Filter. For an only child, eta_l is (1 - eta_t) / 2. A tree
with E edges has E + 1 nodes; further rows of Out are 0. A node number that is not a row of NodesVector is an
error. A node with several parents counts once.

Mou et al.: "Convolutional neural networks over tree structures for programming language processing", AAAI
2016.)";

constexpr Dim kWeights = 3;  // eta_l, eta_r and eta_t

Status InferTreeConv(InferContext& c) {
  const Shape &nodes = c.ShapeOf("NodesVector"), &edges = c.ShapeOf("EdgeSet"), &filter = c.ShapeOf("Filter");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("NodesVector", 3));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Filter", 4));
  if (!Compatible(edges, Shape{nodes[0], kUnknownDim, 2}))
    return c.Error("EdgeSet (", edges, ") must be [trees, edges, 2], and NodesVector (", nodes,
                   ") [trees, nodes, features]");
  if (!Compatible(filter[0], nodes[2]) || !Compatible(filter[1], kWeights))
    return c.Error("Filter (", filter,
                   ") must be [features, 3, output size, filters], of the features of NodesVector (", nodes,
                   ")");
  return c.SetShape("Out", {nodes[0], nodes[1], filter[2], filter[3]});
}

// The windows of one tree. Its arrays grow only for a larger tree.
class TreeWindows {
 public:
  void Prepare(Dim max_depth) { max_depth_ = static_cast<double>(max_depth); }

  // Reads `edges`, at most `count` pairs. kInvalidArgument: an edge names a node beyond `nodes`.
  Status Read(const std::string& type, const std::int32_t* edges, Dim count, Dim nodes) {
    Dim used = 0;
    for (; used < count && edges[2 * used] != 0 && edges[2 * used + 1] != 0; ++used) {
      for (const std::int32_t node : {edges[2 * used], edges[2 * used + 1]}) {
        if (node < 0 || node > nodes)
          return InvalidArgument("E-op-index", type, ": edge ", used, " names node ", node, " of ", nodes);
      }
    }
    rows_ = std::min(used + 1, nodes);
    begins_.assign(static_cast<std::size_t>(nodes + 2), 0);
    for (Dim e = 0; e < used; ++e) ++begins_[static_cast<std::size_t>(edges[2 * e]) + 1];
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    children_.resize(static_cast<std::size_t>(used));
    next_.assign(begins_.begin(), begins_.end());
    for (Dim e = 0; e < used; ++e)
      children_[next_[static_cast<std::size_t>(edges[2 * e])]++] = static_cast<std::size_t>(edges[2 * e + 1]);
    seen_.assign(static_cast<std::size_t>(nodes + 1), 0);
    return OkStatus();
  }

  // Calls visit(row of the root, row of the node, {eta_l, eta_r, eta_t}) for each node of each window.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (std::size_t root = 1; root <= static_cast<std::size_t>(rows_); ++root) {
      const auto row = static_cast<Dim>(root - 1);
      const double top[kWeights] = {0, 0, 1};
      visit(row, row, top);
      seen_[root] = root;
      pending_.assign(1, {root, 0});
      while (!pending_.empty()) {
        const auto [node, depth] = pending_.back();
        pending_.pop_back();
        if (depth + 1 < max_depth_) VisitChildren(root, node, depth + 1, visit);
      }
    }
  }

 private:
  struct Pending {
    std::size_t node;
    double depth;
  };

  template <typename Visit>
  void VisitChildren(std::size_t root, std::size_t node, double depth, Visit& visit) {
    const std::size_t begin = begins_[node], end = begins_[node + 1];
    const auto siblings = static_cast<double>(end - begin);
    for (std::size_t at = begin; at < end; ++at) {
      const std::size_t child = children_[at];
      if (seen_[child] == root) continue;
      seen_[child] = root;
      const double share = siblings == 1 ? 0.5 : static_cast<double>(at - begin) / (siblings - 1);
      const double upper = (max_depth_ - depth) / max_depth_, left = (1 - upper) * share;
      const double weights[kWeights] = {left, (1 - upper) * (1 - left), upper};
      visit(static_cast<Dim>(root - 1), static_cast<Dim>(child - 1), weights);
      pending_.push_back({child, depth});
    }
  }

  double max_depth_ = 2;
  Dim rows_ = 0;                                // the number of rows of Out that have a window
  std::vector<std::size_t> begins_, children_;  // children of node i: from begins_[i] to begins_[i + 1]
  std::vector<std::size_t> next_;               // by node: the position in children_ of its next child
  std::vector<std::size_t> seen_;               // by node: the root of the window that visited it last
  std::vector<Pending> pending_;
};

// The arguments of both kernels, and the windows of one tree as rows of a matrix.
template <typename T>
class TreeConvolution {
 public:
  Status Prepare(KernelSetup& k) {
    type_ = k.op().type();
    k.Bind(nodes_, edges_, filter_);
    const Shape &x = k[nodes_].shape, &w = k[filter_].shape, &e = k[edges_].shape;
    if (x.rank() != 3 || w.rank() != 4 || e.rank() != 3 || e[0] != x[0] || e[2] != 2 || w[0] != x[2] ||
        w[1] != kWeights)
      return k.Error("NodesVector (", x, "), EdgeSet (", e, ") and Filter (", w, ") do not fit each other");
    rows_ = x[1];
    out_ = {x[0], x[1], w[2], w[3]};
    features_ = x[2];
    width_ = w[2] * w[3];
    windows_.Prepare(k.Attr<std::int32_t>("max_depth"));
    options_ = {.threads = k.threads()};
    matrix_ = k.Workspace(static_cast<std::size_t>(rows_ * depth()) * sizeof(T));
    return OkStatus();
  }
  Dim trees() const { return out_[0]; }
  Dim rows() const { return rows_; }
  Dim features() const { return features_; }
  Dim depth() const { return features_ * kWeights; }  // length of a window
  Dim width() const { return width_; }                // length of a row of Out
  const GemmOptions& options() const { return options_; }
  const Shape& out() const { return out_; }
  TreeWindows& windows() { return windows_; }

  T* Matrix(KernelRun& k) const { return reinterpret_cast<T*>(k.Workspace(matrix_)); }
  MatrixView<const T> Filter(KernelRun& k) const {
    return RowMajor(std::as_const(k[filter_]).template Data<T>(), depth(), width_);
  }
  Status ReadEdges(KernelRun& k, Dim tree) {
    const Dim count = k[edges_].shape()[1];
    const std::int32_t* const edges = std::as_const(k[edges_]).template Data<std::int32_t>();
    return windows_.Read(type_, edges + tree * count * 2, count, rows_);
  }
  // Matrix[u, (f, k)] = the sum of eta_k(v) * NodesVector[tree, v, f] over the window of u.
  void FillMatrix(KernelRun& k, Dim tree) {
    const T* const x = std::as_const(k[nodes_]).template Data<T>() + tree * rows_ * features_;
    T* const matrix = Matrix(k);
    std::fill_n(matrix, rows_ * depth(), T{0});
    windows_.ForEach([&](Dim root, Dim node, const double* weights) {
      T* to = matrix + root * depth();
      for (Dim f = 0; f < features_; ++f) {
        for (Dim w = 0; w < kWeights; ++w) *to++ += static_cast<T>(weights[w]) * x[node * features_ + f];
      }
    });
  }

 private:
  std::string type_;
  In<"NodesVector"> nodes_;
  In<"EdgeSet"> edges_;
  In<"Filter"> filter_;
  Shape out_;
  Dim rows_ = 0, features_ = 0, width_ = 0;
  TreeWindows windows_;
  GemmOptions options_;
  WorkspaceId matrix_;
};

template <typename Device, typename T>
class TreeConvKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    return tree_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    T* out = k[out_].template Data<T>();
    for (Dim b = 0; b < tree_.trees(); ++b, out += tree_.rows() * tree_.width()) {
      PENSTOCK_RETURN_IF_ERROR(tree_.ReadEdges(k, b));
      tree_.FillMatrix(k, b);
      PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor<const T>(tree_.Matrix(k), tree_.rows(), tree_.depth()),
                                       tree_.Filter(k), RowMajor(out, tree_.rows(), tree_.width()),
                                       tree_.options()));
    }
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  TreeConvolution<T> tree_;
};

template <typename Device, typename T>
class TreeConvGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dnodes_, dfilter_);
    PENSTOCK_RETURN_IF_ERROR(tree_.Prepare(k));
    return RequireShape(k, "Out@GRAD", tree_.out());
  }
  Status Run(KernelRun& k) override {
    const Dim rows = tree_.rows(), depth = tree_.depth(), width = tree_.width();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    for (const Operand made : std::initializer_list<Operand>{dnodes_, dfilter_}) {
      if (made) std::ranges::fill(k[made].template Span<T>(), T{0});
    }
    GemmOptions adds = tree_.options();
    adds.add = true;
    for (Dim b = 0; b < tree_.trees(); ++b, dout += rows * width) {
      PENSTOCK_RETURN_IF_ERROR(tree_.ReadEdges(k, b));
      const MatrixView<T> matrix = RowMajor(tree_.Matrix(k), rows, depth);
      if (dfilter_) {
        tree_.FillMatrix(k, b);
        PENSTOCK_RETURN_IF_ERROR(Gemm<T>(Transposed(RowMajor<const T>(matrix.data, rows, depth)),
                                         RowMajor(dout, rows, width),
                                         RowMajor(k[dfilter_].template Data<T>(), depth, width), adds));
      }
      if (!dnodes_) continue;
      PENSTOCK_RETURN_IF_ERROR(
          Gemm<T>(RowMajor(dout, rows, width), Transposed(tree_.Filter(k)), matrix, tree_.options()));
      AddToNodes(matrix.data, k[dnodes_].template Data<T>() + b * rows * tree_.features());
    }
    return OkStatus();
  }

 private:
  void AddToNodes(const T* dmatrix, T* dnodes) {
    const Dim features = tree_.features();
    tree_.windows().ForEach([&](Dim root, Dim node, const double* weights) {
      const T* from = dmatrix + root * tree_.depth();
      for (Dim f = 0; f < features; ++f) {
        for (Dim w = 0; w < kWeights; ++w)
          dnodes[node * features + f] += static_cast<T>(weights[w]) * *from++;
      }
    });
  }

  In<"Out@GRAD"> dout_;
  Out<"NodesVector@GRAD"> dnodes_;
  Out<"Filter@GRAD"> dfilter_;
  TreeConvolution<T> tree_;
};

}  // namespace

void RegisterTreeConv(OpRegistry& ops) {
  ops.Add("tree_conv")
      .Doc("A convolution over trees, whose window is a node and its descendants.", kDoc)
      .Input("NodesVector", "[trees, nodes, features]", Floats())
      .Input("EdgeSet", "[trees, edges, 2], parents and children", Only(DType::kInt32))
      .Input("Filter", "[features, 3, output size, filters]", SameTypeAs("NodesVector"))
      .Output("Out", "[trees, nodes, output size, filters]", SameTypeAs("NodesVector"), Apart())
      .Attr("max_depth", 2, "the number of levels of nodes in a window", AtLeast(2))
      .InferShape(InferTreeConv)
      .Kernel<Cpu, TreeConvKernel, float, double>()
      .Grad({.reads = {"Filter", "EdgeSet", "NodesVector"},
             .yields = {"NodesVector", "Filter"},
             .apart = {"NodesVector", "Filter"}})
      .GradKernel<Cpu, TreeConvGradKernel, float, double>();
}

}  // namespace penstock
