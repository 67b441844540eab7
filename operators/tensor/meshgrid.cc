// meshgrid: coordinate matrices from vectors, one dimension for each vector.
#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
All Out have the shape [elements of X[0], elements of X[1], ...], and Out[k] at [i0, i1, ...] is X[k][ik]. The
gradient of an element is the sum over its copies.)";

constexpr int kMaxVectors = 6;

Status InferMeshgrid(InferContext& c) {
  const int vectors = c.InputCount("X");
  if (vectors > kMaxVectors) return c.Error("X holds ", vectors, " vectors; there may be ", kMaxVectors);
  if (c.OutputCount("Out") != vectors)
    return c.Error("there must be as many outputs (", c.OutputCount("Out"), ") as vectors in X (", vectors,
                   ")");
  Shape out;
  for (int i = 0; i < vectors; ++i) {
    if (c.ShapeOf("X", i).rank() > 1)
      return c.Error("rank of X[", i, "] (", c.ShapeOf("X", i), ") must be 1");
    out.Append(c.ShapeOf("X", i).Count());
  }
  for (int i = 0; i < vectors; ++i) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", i, out));
    c.SetDType("Out", c.DTypeOf("X", i), i);
  }
  return OkStatus();
}

// The grid of the vectors in slot X; argument i is dimension i.
Shape GridOf(const KernelSetup& k) {
  Shape grid;
  for (const Argument& x : k.Inputs("X")) grid.Append(x.shape.Count());
  return grid;
}

class MeshgridKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    xs_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    outs_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    grid_ = GridOf(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    for (std::size_t i = 0; i < outs_.size(); ++i) {
      if (!outs_[i] || k[outs_[i]].bytes() == 0) continue;
      const std::size_t size = SizeOf(k[xs_[i]].dtype());
      const AxisView view = ViewAlong(grid_, static_cast<int>(i));
      std::byte* to = k[outs_[i]].raw();
      for (Dim o = 0; o < view.outer; ++o) {
        for (Dim at = 0; at < view.width; ++at) {
          const std::byte* const from = k[xs_[i]].raw() + static_cast<std::size_t>(at) * size;
          for (Dim j = 0; j < view.inner; ++j, to += size) std::memcpy(to, from, size);
        }
      }
    }
    return OkStatus();
  }

 private:
  std::vector<Operand> xs_, outs_;
  Shape grid_;
};

template <typename Device, typename T>
class MeshgridGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    douts_.assign(k.Inputs("Out@GRAD").begin(), k.Inputs("Out@GRAD").end());
    dxs_.assign(k.Outputs("X@GRAD").begin(), k.Outputs("X@GRAD").end());
    grid_ = GridOf(k);
    if (k.Inputs("X").size() != douts_.size() || dxs_.size() > douts_.size())
      return k.Error("there must be as many Out@GRAD (", douts_.size(), ") as X (", k.Inputs("X").size(),
                     ")");
    const auto douts = k.Inputs("Out@GRAD"), dxs = k.Outputs("X@GRAD");
    for (std::size_t i = 0; i < douts.size(); ++i) {
      if (douts[i].shape != grid_)
        return k.Error("shape of Out@GRAD[", i, "] (", douts[i].shape, ") must be ", grid_);
      if (douts[i].dtype != DTypeOfT<T>::kValue ||
          (i < dxs.size() && dxs[i] && dxs[i].dtype != douts[i].dtype))
        return k.Error("X[", i, "] and its gradients must have one element type");
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    for (std::size_t i = 0; i < dxs_.size(); ++i) {
      if (!dxs_[i]) continue;
      const AxisView view = ViewAlong(grid_, static_cast<int>(i));
      std::ranges::fill(k[dxs_[i]].template Span<T>(), T{0});
      T* const dx = k[dxs_[i]].template Data<T>();
      const T* dout = k[douts_[i]].template Data<T>();
      for (Dim o = 0; o < view.outer; ++o) {
        for (Dim at = 0; at < view.width; ++at) {
          for (Dim j = 0; j < view.inner; ++j, ++dout) dx[at] += *dout;
        }
      }
    }
    return OkStatus();
  }

 private:
  std::vector<Operand> douts_, dxs_;
  Shape grid_;
};

}  // namespace

void RegisterMeshgrid(OpRegistry& ops) {
  ops.Add("meshgrid")
      .Doc("Coordinate matrices from vectors, one dimension for each vector.", kDoc)
      .Input("X", StrCat("up to ", kMaxVectors, " vectors"), AnyType(), Repeated())
      .Output("Out", "one per vector, all of the same shape", AnyType(), Repeated() | Apart())
      .InferShape(InferMeshgrid)
      .KernelForAnyType<Cpu, MeshgridKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, MeshgridGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace penstock
