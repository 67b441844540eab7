// shard_index: converts global indices to indices within one shard.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
index_num indices are divided into nshards consecutive shards of shard_size = ceil(index_num / nshards)
indices. Out is X minus the first index of shard shard_id where X belongs to that shard, and ignore_value
elsewhere. An index outside [0, index_num) is an error.)";

Status InferShardIndex(InferContext& c) {
  const int shard = c.Attr<int>("shard_id"), shards = c.Attr<int>("nshards");
  if (shard >= shards) return c.Error("shard_id (", shard, ") must be below nshards (", shards, ")");
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class ShardIndexKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
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
  In<"X"> x_;
  Out<"Out"> out_;
  Dim indices_ = 1, size_ = 1, begin_ = 0;
  T ignored_ = -1;
};

}  // namespace

void RegisterShardIndex(OpRegistry& ops) {
  ops.Add("shard_index")
      .Doc("Converts global indices to indices within one shard.", kDoc)
      .Input("X", "indices in [0, index_num)", Integers())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .RequiredAttr("index_num", AttrKind::kInt, "the number of indices", AtLeast(1))
      .RequiredAttr("nshards", AttrKind::kInt, "the number of shards", AtLeast(1))
      .RequiredAttr("shard_id", AttrKind::kInt, "the shard", AtLeast(0))
      .Attr("ignore_value", -1, "the result for indices of other shards")
      .InferShape(InferShardIndex)
      .Elementwise()
      .Kernel<Cpu, ShardIndexKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
