// c_sparse_allreduce_sum: the sum over all ranks of tensors that are mostly zero.
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/ring.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is the elementwise sum of X over all ranks of ring `ring_id`, with the same bytes as c_allreduce_sum where
that adds in rank order. Ranks first exchange how many elements of X are not zero. If these are, over all
ranks, at most half as many as X has elements, they exchange only those elements and their indices, 8 bytes
each (12 in double precision); otherwise they exchange whole tensors. NaN is not zero. The op waits for the
other ranks. It follows `dgc`, which leaves few elements of a gradient.)";

// The elements of a tensor that are not zero, and their places.
template <typename T>
struct Nonzeros {
  std::vector<std::int32_t> places;
  std::vector<T> values;

  void Collect(std::span<const T> all) {
    places.clear();
    values.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == T{0}) continue;
      places.push_back(static_cast<std::int32_t>(i));
      values.push_back(all[i]);
    }
  }
};

template <typename T>
Elements ElementsIn(std::vector<T>& values, ElementType type) {
  return {reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(values.size()), type};
}

template <typename Device, typename T>
class SparseAllReduceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return ring_.Prepare(k, RingUse::Order::kInPlace);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
    if (x_.index != out_.index) k[out_].CopyFrom(k[x_]);
    const std::span<T> out = k[out_].template Span<T>();
    std::int64_t total = std::numeric_limits<std::int64_t>::max();
    if (k[out_].count() <= std::numeric_limits<std::int32_t>::max()) {
      own_.Collect(out);
      PENSTOCK_ASSIGN_OR_RETURN(total, CountAll(*group));
    }
    if (total > k[out_].count() / 2)
      return ring_.Wait(group->AllReduce(ElementsOf(k[out_]), Reduction::kSum, ring_.options()));
    PENSTOCK_RETURN_IF_ERROR(Gather(*group, total, ElementsOf(k[out_]).type));
    std::memset(k[out_].raw(), 0, k[out_].bytes());
    for (std::size_t i = 0; i < all_.values.size(); ++i) {
      out[static_cast<std::size_t>(all_.places[i])] += all_.values[i];
    }
    return OkStatus();
  }

 private:
  Result<std::int64_t> CountAll(CollectiveGroup& group) {
    std::vector<std::int64_t> own = {static_cast<std::int64_t>(own_.values.size())};
    counts_.resize(static_cast<std::size_t>(group.size()));
    PENSTOCK_RETURN_IF_ERROR(ring_.Wait(group.AllGatherEqual(
        ElementsIn(own, ElementType::kInt64), ElementsIn(counts_, ElementType::kInt64), ring_.options())));
    std::int64_t total = 0;
    for (const std::int64_t count : counts_) total += count;
    return total;
  }

  // Of all ranks, in their order.
  Status Gather(CollectiveGroup& group, std::int64_t total, ElementType type) {
    all_.places.resize(static_cast<std::size_t>(total));
    all_.values.resize(static_cast<std::size_t>(total));
    if (total == 0) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(
        ring_.Wait(group.AllGather(ElementsIn(own_.places, ElementType::kInt32), counts_,
                                   ElementsIn(all_.places, ElementType::kInt32), ring_.options())));
    return ring_.Wait(group.AllGather(ElementsIn(own_.values, type), counts_, ElementsIn(all_.values, type),
                                      ring_.options()));
  }

  RingUse ring_;
  In<"X"> x_;
  Out<"Out"> out_;
  Nonzeros<T> own_, all_;
  std::vector<std::int64_t> counts_;
};

}  // namespace

void RegisterSparseAllreduce(OpRegistry& ops) {
  ops.Add("c_sparse_allreduce_sum")
      .Doc("The sum over all ranks of tensors that are mostly zero.", kDoc)
      .Input("X", "this rank's tensor", Floats())
      .Output("Out", "shaped as X; usually X itself", SameTypeAs("X"))
      .Attr("ring_id", 0, "which communicator", AtLeast(0))
      .InferShape(SameShape("X", "Out"))
      .Affects({Effect::kRing})
      .Kernel<Cpu, SparseAllReduceKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
