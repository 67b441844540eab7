#include "framework/runtime/adasum.h"

#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "framework/tensor/bfloat16.h"
#include "framework/tensor/half.h"

namespace penstock {
namespace {

// The number of partial sums. Fixed, so that the order of additions is fixed and vector instructions can be
// used.
constexpr std::size_t kLanes = 8;

float Loaded(Half value) { return FloatOf(value); }
float Loaded(BFloat16 value) { return FloatOf(value); }
float Loaded(float value) { return value; }
double Loaded(double value) { return value; }

void Store(float value, Half& out) { out = HalfOf(value); }
void Store(float value, BFloat16& out) { out = BFloat16Of(value); }
void Store(float value, float& out) { out = value; }
void Store(double value, double& out) { out = value; }

struct Products {
  double ab = 0, aa = 0, bb = 0;
};

template <typename T>
Products ProductsOf(const T* a, const T* b, std::size_t count) {
  std::array<double, kLanes> ab{}, aa{}, bb{};
  const auto add = [&](std::size_t lane, std::size_t i) {
    const double x = Loaded(a[i]), y = Loaded(b[i]);
    ab[lane] += x * y;
    aa[lane] += x * x;
    bb[lane] += y * y;
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  }
  for (; i < count; ++i) add(i % kLanes, i);
  Products sums;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums.ab += ab[lane];
    sums.aa += aa[lane];
    sums.bb += bb[lane];
  }
  return sums;
}

// out = the Adasum of a and b. `out` may be `a` or `b`.
template <typename T>
void Combine(const T* a, const T* b, T* out, std::size_t count) {
  using Sum = decltype(Loaded(T()));
  const Products of = ProductsOf(a, b, count);
  const auto of_a = static_cast<Sum>(of.aa > 0 ? 1 - of.ab / (2 * of.aa) : 1);
  const auto of_b = static_cast<Sum>(of.bb > 0 ? 1 - of.ab / (2 * of.bb) : 1);
  for (std::size_t i = 0; i < count; ++i) Store(of_a * Loaded(a[i]) + of_b * Loaded(b[i]), out[i]);
}

void Combine(ElementType type, const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) {
  const auto of = [&]<typename T>(T) {
    Combine(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), reinterpret_cast<T*>(out), count);
  };
  switch (type) {
    case ElementType::kFp16:
      return of(Half());
    case ElementType::kBf16:
      return of(BFloat16());
    case ElementType::kFp64:
      return of(double());
    default:
      return of(float());
  }
}

Status CheckAdasum(const CollectiveGroup& group, ElementType type) {
  constexpr char kRule[] = "E-collective-adasum";
  if (type != ElementType::kFp16 && type != ElementType::kBf16 && type != ElementType::kFp32 &&
      type != ElementType::kFp64) {
    return InvalidArgument(kRule, "adasum is of floats, not of ", ElementTypeName(type));
  }
  if (std::has_single_bit(static_cast<unsigned>(group.size()))) return OkStatus();
  return InvalidArgument(
      kRule, "adasum combines ranks in pairs, so their number must be a power of two, not ", group.size());
}

// Each exchange is with the rank whose number differs in one bit; that rank holds the other result of the
// pair.
Status ByExchanges(CollectiveRings& rings, CollectiveGroup& group, Elements data,
                   const CollectiveOptions& options) {
  const auto theirs = std::make_unique_for_overwrite<std::byte[]>(data.bytes());
  const Elements other{theirs.get(), data.count, data.type};
  const auto count = static_cast<std::size_t>(data.count);
  for (int bit = 1; bit < group.size(); bit *= 2) {
    const int peer = group.rank() ^ bit;
    PENSTOCK_RETURN_IF_ERROR(rings.Wait(group.SendRecv(data, peer, other, peer, options)));
    const bool first = group.rank() < peer;
    Combine(data.type, first ? data.data : other.data, first ? other.data : data.data, data.data, count);
  }
  return OkStatus();
}

Status ByGather(CollectiveRings& rings, CollectiveGroup& group, Elements data,
                const CollectiveOptions& options) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(ranks * data.bytes());
  const Elements all{memory.get(), data.count * group.size(), data.type};
  PENSTOCK_RETURN_IF_ERROR(rings.Wait(group.AllGatherEqual(data, all, options)));
  const auto part = [&](std::size_t rank) { return memory.get() + rank * data.bytes(); };
  for (std::size_t bit = 1; bit < ranks; bit *= 2) {
    for (std::size_t rank = 0; rank < ranks; rank += 2 * bit)
      Combine(data.type, part(rank), part(rank + bit), part(rank), static_cast<std::size_t>(data.count));
  }
  if (data.count > 0) std::memcpy(data.data, memory.get(), data.bytes());
  return OkStatus();
}

}  // namespace

Status AllReduceAdasum(CollectiveRings& rings, CollectiveGroup& group, Elements data,
                       const CollectiveOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckAdasum(group, data.type));
  if (group.size() == 1) return OkStatus();
  // The exchanges are messages between two ranks, which are not checked; the barrier detects a rank that runs
  // another operation.
  PENSTOCK_RETURN_IF_ERROR(rings.Wait(group.Barrier(options)));
  return group.backend() == "hierarchical" ? ByGather(rings, group, data, options)
                                           : ByExchanges(rings, group, data, options);
}

}  // namespace penstock
