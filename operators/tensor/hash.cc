// hash: hashes rows of integers to integers below a bound.
#include <algorithm>
#include <bit>
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i, k, 0] is the XXH64 hash of the bytes of row i of X with seed k, modulo mod_by, the same as in Fluid.)";

// XXH64 of Yann Collet's xxHash, from its specification: 64 bits from bytes, little-endian.
class Xxh64 {
 public:
  static std::uint64_t Of(const std::byte* bytes, std::size_t count, std::uint64_t seed) {
    const std::byte* const end = bytes + count;
    std::uint64_t hash = seed + kPrime5;
    if (count >= 32) hash = Stripes(bytes, end, seed);
    hash += count;
    for (; end - bytes >= 8; bytes += 8)
      hash = std::rotl(hash ^ Round(0, Read64(bytes)), 27) * kPrime1 + kPrime4;
    for (; end - bytes >= 4; bytes += 4)
      hash = std::rotl(hash ^ Read32(bytes) * kPrime1, 23) * kPrime2 + kPrime3;
    for (; bytes < end; ++bytes)
      hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(*bytes) * kPrime5, 11) * kPrime1;
    hash = (hash ^ (hash >> 33)) * kPrime2;
    hash = (hash ^ (hash >> 29)) * kPrime3;
    return hash ^ (hash >> 32);
  }

 private:
  static constexpr std::uint64_t kPrime1 = 11400714785074694791ULL, kPrime2 = 14029467366897019727ULL,
                                 kPrime3 = 1609587929392839161ULL, kPrime4 = 9650029242287828579ULL,
                                 kPrime5 = 2870177450012600261ULL;
  static std::uint64_t Read64(const std::byte* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  static std::uint64_t Read32(const std::byte* at) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  static std::uint64_t Round(std::uint64_t lane, std::uint64_t word) {
    return std::rotl(lane + word * kPrime2, 31) * kPrime1;
  }
  // Processes whole stripes of 32 bytes in four lanes, and advances `bytes` past them.
  static std::uint64_t Stripes(const std::byte*& bytes, const std::byte* end, std::uint64_t seed) {
    std::uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    while (end - bytes >= 32) {
      for (std::uint64_t& lane : lanes) {
        lane = Round(lane, Read64(bytes));
        bytes += 8;
      }
    }
    std::uint64_t hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
    return hash;
  }
};

Status InferHash(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {c.ShapeOf("X")[0], c.Attr<int>("num_hash"), 1});
}

template <typename Device, typename T>
class HashKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    hashes_ = k.Attr<int>("num_hash");
    bound_ = static_cast<std::uint64_t>(k.Attr<std::int64_t>("mod_by"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const std::size_t row_bytes = static_cast<std::size_t>(k[x_].shape()[1]) * sizeof(T);
    const std::byte* row = k[x_].raw();
    T* out = k[out_].template Data<T>();
    for (Dim i = 0; i < k[x_].shape()[0]; ++i, row += row_bytes) {
      for (int seed = 0; seed < hashes_; ++seed)
        *out++ = static_cast<T>(Xxh64::Of(row, row_bytes, static_cast<std::uint64_t>(seed)) % bound_);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  int hashes_ = 1;
  std::uint64_t bound_ = 1;
};

}  // namespace

void RegisterHash(OpRegistry& ops) {
  ops.Add("hash")
      .Doc("Hashes rows of integers to integers below a bound.", kDoc)
      .Input("X", "[rows, columns]", Integers())
      .Output("Out", "[rows, num_hash, 1]", SameTypeAs("X"), Apart())
      .Attr("num_hash", 1, "the number of hashes per row", AtLeast(1))
      .Attr("mod_by", std::int64_t{100000}, "the bound", AtLeast(1))
      .InferShape(InferHash)
      .Kernel<Cpu, HashKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
