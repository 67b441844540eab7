#include "operators/collective/allreduce_kernels.h"

#include <array>
#include <cstring>

#include "framework/roles/collective_views.h"
#include "framework/runtime/adasum.h"
#include "operators/common/rows.h"

namespace penstock {
namespace {

// The memory that ranks reduce or receive into holds this rank's X.
Tensor& CopiedToOut(KernelRun& k, Operand x, Operand out) {
  Tensor& to = k[out];
  if (x.index != out.index) to.CopyFrom(k[x]);
  return to;
}

Status RequireTensor(const KernelSetup& k, const Argument& x) {
  if (x.kind == VarKind::kTensor) return RequireElements(k, x);
  return k.Error(x.name, " holds selected rows; it takes a tensor");
}

Status RequireRowElements(const KernelSetup& k, const Argument& x) {
  switch (x.dtype) {
    case DType::kFp32:
    case DType::kFp64:
    case DType::kInt32:
    case DType::kInt64:
      return OkStatus();
    default:
      return k.Error("ranks do not exchange selected rows of ", DTypeName(x.dtype));
  }
}

Status RequireTensorOrRows(const KernelSetup& k, const Argument& x) {
  return x.kind == VarKind::kSelectedRows ? RequireRowElements(k, x) : RequireElements(k, x);
}

}  // namespace

Status AllReduceKernel::Prepare(KernelSetup& k) {
  x_ = k.Input("X");
  k.Bind(out_);
  if (reduction_ == Reduction::kSum) {
    PENSTOCK_RETURN_IF_ERROR(RequireTensorOrRows(k, k.Input("X")));
  } else {
    PENSTOCK_RETURN_IF_ERROR(RequireTensor(k, k.Input("X")));
  }
  return ring_.Prepare(k);
}

Status AllReduceKernel::Run(KernelRun& k) {
  if (x_.kind != VarKind::kSelectedRows)
    return ring_.AllReduce(ElementsOf(CopiedToOut(k, x_, out_)), reduction_);
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
  const SelectedRows& x = k.Var(x_).As<SelectedRows>();
  PENSTOCK_RETURN_IF_ERROR(RequireRowValues("c_allreduce_sum", "X", x, x_.dtype));
  return rows_.Sum(ring_, *group, x, k.Var(out_).As<SelectedRows>());
}

Status ChosenReductionKernel::Prepare(KernelSetup& k) {
  constexpr std::array kByNumber = {Reduction::kSum, Reduction::kProduct, Reduction::kMax, Reduction::kMin};
  const int number = k.Attr<int>("reduce_type");
  if (number < 0 || number >= static_cast<int>(kByNumber.size()))
    return k.Error("reduce_type is ", number,
                   "; it must be 0 (sum), 1 (product), 2 (maximum) or 3 (minimum)");
  reduction_ = kByNumber[static_cast<std::size_t>(number)];
  return AllReduceKernel::Prepare(k);
}

Status AdasumKernel::Prepare(KernelSetup& k) {
  k.Bind(x_, out_);
  PENSTOCK_RETURN_IF_ERROR(RequireTensor(k, k.Input("X")));
  if (const Argument& x = k[x_]; !IsFloat(x.dtype))
    return k.Error("Adasum is of floats, and ", x.name, " is of ", DTypeName(x.dtype));
  return ring_.Prepare(k);
}

Status AdasumKernel::Run(KernelRun& k) {
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
  return AllReduceAdasum(ring_.rings(), *group, ElementsOf(CopiedToOut(k, x_, out_)), ring_.options());
}

Status BroadcastKernel::Prepare(KernelSetup& k) {
  x_ = k.Input("X");
  k.Bind(out_);
  root_ = roles::CollectiveView(k.op()).root();
  PENSTOCK_RETURN_IF_ERROR(RequireTensorOrRows(k, k.Input("X")));
  return ring_.Prepare(k);
}

Status BroadcastKernel::Run(KernelRun& k) {
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
  if (x_.kind == VarKind::kSelectedRows) {
    const SelectedRows& x = k.Var(x_).As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRowValues("c_broadcast", "X", x, x_.dtype));
    return rows_.Broadcast(ring_, *group, x, root_, k.Var(out_).As<SelectedRows>());
  }
  return ring_.Finish(group->Broadcast(ElementsOf(CopiedToOut(k, x_, out_)), root_, ring_.options()));
}

Status BroadcastGradKernel::Prepare(KernelSetup& k) {
  k.Bind(x_, out_);
  root_ = roles::CollectiveView(k.op()).root();
  PENSTOCK_RETURN_IF_ERROR(RequireTensor(k, k.Input("X")));
  return ring_.Prepare(k, RingUse::Order::kInPlace);
}

Status BroadcastGradKernel::Run(KernelRun& k) {
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
  Tensor& out = CopiedToOut(k, x_, out_);
  PENSTOCK_RETURN_IF_ERROR(
      ring_.Wait(group->Reduce(ElementsOf(out), Reduction::kSum, root_, ring_.options())));
  if (group->rank() != root_) std::memset(out.raw(), 0, out.bytes());
  return OkStatus();
}

Status GatherKernel::Prepare(KernelSetup& k) {
  k.Bind(x_, out_);
  ranks_ = k.Attr<int>("nranks");
  PENSTOCK_RETURN_IF_ERROR(RequireTensor(k, k.Input("X")));
  return ring_.Prepare(k);
}

Status GatherKernel::Run(KernelRun& k) {
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
  PENSTOCK_RETURN_IF_ERROR(ring_.RequireRanks(*group, ranks_));
  return ring_.Finish(group->AllGatherEqual(ElementsOf(k[x_]), ElementsOf(k[out_]), ring_.options()));
}

Status ScatterKernel::Prepare(KernelSetup& k) {
  k.Bind(x_, out_);
  ranks_ = k.Attr<int>("nranks");
  PENSTOCK_RETURN_IF_ERROR(RequireTensor(k, k.Input("X")));
  return ring_.Prepare(k);
}

Status ScatterKernel::Run(KernelRun& k) {
  PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
  PENSTOCK_RETURN_IF_ERROR(ring_.RequireRanks(*group, ranks_));
  return ring_.Finish(
      group->ReduceScatter(ElementsOf(k[x_]), ElementsOf(k[out_]), Reduction::kSum, ring_.options()));
}

}  // namespace penstock
