// shuffle_batch, random_crop: rows in random order, boxes at random positions. Both pass a seed from run to
// run.
#include <cstring>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/random/draws.h"

namespace penstock {
namespace {

constexpr char kSeedChainDoc[] = R"(
The seed is the value of Seed, or startup_seed if Seed is empty, and SeedOut gets the next seed; both may be
the same persistable variable. The numbers are not those that Fluid draws from the same seed.)";

constexpr char kShuffleDoc[] = R"(
X is viewed as a matrix whose rows have X's last extent. Row i of Out is row ShuffleIdx[i] of X; ShuffleIdx is
a random permutation.)";

constexpr char kCropDoc[] = R"(
Out has, for each index of the leading extents of X that attribute shape does not cover, a box of that shape
at a random position.)";

// The seed of this run, and the next one for SeedOut.
class SeedChain {
 public:
  void Prepare(KernelSetup& k) {
    k.Bind(seed_, seed_out_);
    startup_ = k.Attr<std::int32_t>("startup_seed");
    draws_.PrepareSource(k);
  }
  Draws& Start(KernelRun& k) {
    std::int64_t seed = startup_;
    if (seed_ && k.Var(seed_).Is<Tensor>()) {
      const Tensor& given = k[seed_];
      if (given.initialized() && given.dtype() == DType::kInt64 && given.count() > 0)
        seed = *given.Data<std::int64_t>();
    }
    draws_.StartFrom(static_cast<std::uint64_t>(seed));
    const auto next = static_cast<std::int64_t>(draws_.Word() >> 1);
    if (seed_out_) *k[seed_out_].Data<std::int64_t>() = next;
    return draws_;
  }

 private:
  In<"Seed"> seed_;
  Out<"SeedOut"> seed_out_;
  std::int64_t startup_ = 0;
  Draws draws_;
};

Status InferShuffle(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ShuffleIdx", {x.Product(0, x.rank() - 1)}));
  return c.SetShape("SeedOut", {1});
}

class ShuffleBatchKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, index_);
    rows_ = k[x_].shape.Product(0, k[x_].shape.rank() - 1);
    row_bytes_ = static_cast<std::size_t>(k[x_].shape[k[x_].shape.rank() - 1]) * SizeOf(k[x_].dtype);
    seeds_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::int64_t* const index = k[index_].Data<std::int64_t>();
    seeds_.Start(k).Shuffle(index, rows_);
    for (Dim i = 0; row_bytes_ > 0 && i < rows_; ++i) {
      std::memcpy(k[out_].raw() + static_cast<std::size_t>(i) * row_bytes_,
                  k[x_].raw() + static_cast<std::size_t>(index[i]) * row_bytes_, row_bytes_);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  Out<"ShuffleIdx"> index_;
  Dim rows_ = 0;
  std::size_t row_bytes_ = 0;
  SeedChain seeds_;
};

// Back to where each row came from.
class ShuffleBatchGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, index_, dx_);
    if (k[dout_].shape.rank() == 0) return k.Error("Out@GRAD must have an extent");
    if (k[index_].dtype != DType::kInt64) return k.Error("ShuffleIdx must be i64");
    rows_ = k[dout_].shape.Product(0, k[dout_].shape.rank() - 1);
    row_bytes_ = static_cast<std::size_t>(k[dout_].shape[k[dout_].shape.rank() - 1]) * SizeOf(k[dout_].dtype);
    return RequireCount(k, "ShuffleIdx", rows_);
  }
  Status Run(KernelRun& k) override {
    if (!dx_ || row_bytes_ == 0) return OkStatus();
    std::memset(k[dx_].raw(), 0, k[dx_].bytes());
    const std::int64_t* const index = k[index_].Data<std::int64_t>();
    for (Dim i = 0; i < rows_; ++i) {
      if (index[i] < 0 || index[i] >= rows_)
        return InvalidArgument("E-op-index", "shuffle_batch_grad: row ", index[i], " must be in [0, ", rows_,
                               ")");
      std::memcpy(k[dx_].raw() + static_cast<std::size_t>(index[i]) * row_bytes_,
                  k[dout_].raw() + static_cast<std::size_t>(i) * row_bytes_, row_bytes_);
    }
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  In<"ShuffleIdx"> index_;
  Out<"X@GRAD"> dx_;
  Dim rows_ = 0;
  std::size_t row_bytes_ = 0;
};

Status InferRandomCrop(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const auto shape = c.Attr<std::vector<std::int32_t>>("shape");
  const int batch = x.rank() - static_cast<int>(shape.size());
  if (batch < 0 || shape.empty())
    return c.Error("shape has ", shape.size(), " entries; there must be from 1 to the rank of X (", x, ")");
  Shape out = x.First(batch);
  for (int i = batch; i < x.rank(); ++i) {
    const Dim extent = shape[static_cast<std::size_t>(i - batch)];
    if (x[i] != kUnknownDim && extent > x[i])
      return c.Error("shape holds ", extent, "; it must be at most extent ", i, " of X (", x, ")");
    out.Append(extent);
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", out));
  return c.SetShape("SeedOut", {1});
}

class RandomCropKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    cropped_ = static_cast<int>(k.Attr<std::vector<std::int32_t>>("shape").size());
    if (k[x_].shape.rank() > kMaxRank)
      return k.Error("rank of X (", k[x_].shape, ") must be at most ", kMaxRank);
    seeds_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    Draws& draws = seeds_.Start(k);
    const std::size_t size = SizeOf(k[x_].dtype());
    const Shape &x = k[x_].shape(), &out = k[out_].shape();
    const int rank = x.rank(), batch = rank - cropped_;
    const Dim boxes = x.Product(0, batch), whole = x.Product(batch, rank);
    const Dim box = out.Product(batch, rank), row = out[rank - 1];
    const std::byte* const all = k[x_].raw();
    std::byte* to = k[out_].raw();
    for (Dim b = 0; b < boxes; ++b) {
      Dim offsets[kMaxRank];
      for (int d = batch; d < rank; ++d)
        offsets[d] = static_cast<Dim>(draws.Below(static_cast<std::uint64_t>(x[d] - out[d]) + 1));
      for (Dim r = 0; r < box; r += row, to += static_cast<std::size_t>(row) * size) {
        Dim rest = r, from = 0, stride = 1;
        for (int d = rank - 1; d >= batch; --d) {
          from += (rest % out[d] + offsets[d]) * stride;
          rest /= out[d];
          stride *= x[d];
        }
        std::memcpy(to, all + static_cast<std::size_t>(b * whole + from) * size,
                    static_cast<std::size_t>(row) * size);
      }
    }
    return OkStatus();
  }

 private:
  static constexpr int kMaxRank = 16;
  In<"X"> x_;
  Out<"Out"> out_;
  int cropped_ = 1;
  SeedChain seeds_;
};

OpDef& WithSeed(OpDef& def) {
  return def.Input("Seed", "[1]: the seed of this run; may hold nothing", Only(DType::kInt64))
      .Output("SeedOut", "[1]: the seed of the next run", Only(DType::kInt64), InPlaceInAnySize())
      .Attr("startup_seed", 0, "the seed as long as Seed holds nothing")
      .Affects({Effect::kRandom})
      .ReadsOnlySome();
}

}  // namespace

void RegisterRandomOrder(OpRegistry& ops) {
  WithSeed(ops.Add("shuffle_batch")
               .Doc("Rows in an order of chance.", StrCat(kShuffleDoc, kSeedChainDoc))
               .Input("X", "rank 1 or more; rows are the last extent", AnyType()))
      .Output("Out", "shaped like X", SameTypeAs("X"), Apart())
      .Output("ShuffleIdx", "[rows]: which row of X each of Out is", Only(DType::kInt64))
      .InferShape(InferShuffle)
      .KernelForAnyType<Cpu, ShuffleBatchKernel>()
      .Grad({.reads_outputs = {"ShuffleIdx"}, .yields = {"X"}, .of = {"Out"}, .apart = {"X"}})
      .GradDef()
      .InferShape(SameShape("Out@GRAD", "X@GRAD"))
      .KernelForAnyType<Cpu, ShuffleBatchGradKernel>();
  WithSeed(ops.Add("random_crop")
               .Doc("Boxes at places of chance.", StrCat(kCropDoc, kSeedChainDoc))
               .Input("X", "rank at most 16", AnyType()))
      .Output("Out", "X with its last extents made `shape`", SameTypeAs("X"), Apart())
      .RequiredAttr("shape", AttrKind::kInts, "the last extents of Out", AtLeast(1))
      .InferShape(InferRandomCrop)
      .KernelForAnyType<Cpu, RandomCropKernel>()
      .NoGrad();
}

}  // namespace penstock
