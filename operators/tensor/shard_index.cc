// shard_index: indices of a whole as indices of one shard.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
index_num indices lie in nshards shards of shard_size = ceil(index_num / nshards), one after the other. Out
is X minus the first index of shard shard_id where that shard holds X, ignore_value elsewhere. An index
outside of [0, index_num) is an error.)";

Status InferShardIndex(InferContext& c) {
  const int shard = c.Attr<int>("shard_id"), shards = c.Attr<int>("nshards");
  if (shard >= shards) return c.Error("shard_id (", shard, ") must be below nshards (", shards, ")");
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class ShardIndexKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    indices_ = k.Attr<int>("index_num");
    const Dim shards = k.Attr<int>("nshards");
    size_ = (indices_ + shards - 1) / shards;
    begin_ = k.Attr<int>("shard_id") * size_;
    ignored_ = static_cast<T>(k.Attr<int>("ignore_value"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      if (x[i] < 0 || x[i] >= indices_)
        return InvalidArgument("E-op-index", "shard_index: ", x[i], " must be in [0, ", indices_, ")");
      const Dim at = x[i] - begin_;
      out[i] = at >= 0 && at < size_ ? static_cast<T>(at) : ignored_;
    }
    return OkStatus();
  }

 private:
  Operand x_, out_;
  Dim indices_ = 1, size_ = 1, begin_ = 0;
  T ignored_ = -1;
};

}  // namespace

void RegisterShardIndex(OpRegistry& ops) {
  ops.Add("shard_index")
      .Doc("Indices of a whole as indices of one shard.", kDoc)
      .Input("X", "indices in [0, index_num)", Integers())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .RequiredAttr("index_num", AttrKind::kInt, "how many indices there are", AtLeast(1))
      .RequiredAttr("nshards", AttrKind::kInt, "how many shards", AtLeast(1))
      .RequiredAttr("shard_id", AttrKind::kInt, "which of them", AtLeast(0))
      .Attr("ignore_value", -1, "what indices of other shards become")
      .InferShape(InferShardIndex)
      .Elementwise()
      .Kernel<Cpu, ShardIndexKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
