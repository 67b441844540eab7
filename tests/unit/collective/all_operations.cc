#include "tests/unit/collective/all_operations.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "framework/tensor/bfloat16.h"
#include "framework/tensor/half.h"

namespace penstock::collective {
namespace {

constexpr ElementType kTypes[] = {ElementType::kFp16,  ElementType::kBf16,  ElementType::kFp32,
                                  ElementType::kFp64,  ElementType::kInt32, ElementType::kInt64,
                                  ElementType::kUInt8, ElementType::kInt8};
constexpr Reduction kReductions[] = {Reduction::kSum, Reduction::kMean, Reduction::kProduct, Reduction::kMax,
                                     Reduction::kMin};

template <typename T>
T As(const std::string& bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void Put(std::string& bytes, std::int64_t index, T value) {
  std::memcpy(bytes.data() + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

// splitmix64.
std::uint64_t NextRandom(std::uint64_t& state) {
  std::uint64_t mixed = state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

bool IsFloatType(ElementType type) { return type <= ElementType::kFp64; }

template <typename Sum>
Sum Combine(Reduction reduction, Sum a, Sum b) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      return a + b;
    case Reduction::kProduct:
      return a * b;
    case Reduction::kMax:
      return b != b || b > a ? b : a;
    case Reduction::kMin:
      return b != b || b < a ? b : a;
  }
  return a;
}

// Integers are computed as unsigned 64-bit ones, except for comparisons.
template <typename Stored, typename Sum, typename Load, typename Store>
std::string ReduceValues(const std::vector<std::string>& values, Reduction reduction, const Load& load,
                         const Store& store) {
  std::string out = values[0];
  const auto count = static_cast<std::int64_t>(out.size() / sizeof(Stored));
  for (std::int64_t i = 0; i < count; ++i) {
    Sum sum = load(As<Stored>(values[0], i));
    for (std::size_t rank = 1; rank < values.size(); ++rank)
      sum = Combine<Sum>(reduction, sum, load(As<Stored>(values[rank], i)));
    if (reduction == Reduction::kMean) sum = sum / static_cast<Sum>(values.size());
    Put<Stored>(out, i, store(sum));
  }
  return out;
}

template <typename T>
std::string ReducePlain(const std::vector<std::string>& values, Reduction reduction) {
  const auto as_is = [](T value) { return value; };
  if constexpr (std::is_integral_v<T>) {
    if (reduction == Reduction::kSum || reduction == Reduction::kProduct) {
      return ReduceValues<T, std::uint64_t>(
          values, reduction, [](T value) { return static_cast<std::uint64_t>(value); },
          [](std::uint64_t sum) { return static_cast<T>(sum); });
    }
  }
  return ReduceValues<T, T>(values, reduction, as_is, as_is);
}

// One operation on the values of a seed: the expected result, and a function that starts it.
struct Trial {
  std::string what, in, out, expected;
  Completion completion;
  std::optional<ElementType> near = {};  // compare sums within the tolerance of the order of addition
};

double NumberAt(const std::string& bytes, std::int64_t index, ElementType type) {
  switch (type) {
    case ElementType::kFp16:
      return static_cast<double>(FloatOf(As<Half>(bytes, index)));
    case ElementType::kBf16:
      return static_cast<double>(FloatOf(As<BFloat16>(bytes, index)));
    case ElementType::kFp32:
      return static_cast<double>(As<float>(bytes, index));
    default:
      return As<double>(bytes, index);
  }
}

// The tolerance of sums of numbers below 256 over at most 8 ranks, in any order.
bool AreNear(const std::string& a, const std::string& b, ElementType type) {
  const double step = type == ElementType::kBf16   ? 0x1p-8
                      : type == ElementType::kFp16 ? 0x1p-11
                      : type == ElementType::kFp32 ? 0x1p-24
                                                   : 0x1p-53;
  const auto count = static_cast<std::int64_t>(a.size() / SizeOf(type));
  for (std::int64_t i = 0; a.size() == b.size() && i < count; ++i) {
    const double x = NumberAt(a, i, type), y = NumberAt(b, i, type);
    if (std::isnan(x) != std::isnan(y) || std::abs(x - y) > 8 * 1024 * step) return false;
  }
  return a.size() == b.size();
}

std::string Parts(ElementType type, const std::vector<std::int64_t>& counts, std::uint64_t seed) {
  std::string all;
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    all += ValuesOf(type, counts[rank], static_cast<int>(rank), seed);
  return all;
}

class Trials {
 public:
  Trials(CollectiveGroup& group, std::size_t at_once) : group_(group), at_once_(at_once) {}

  void AllReduce(ElementType type, Reduction reduction, std::int64_t count, std::uint64_t seed) {
    Trial& trial = Add("all_reduce", type, count, ReductionName(reduction));
    trial.out = ValuesOf(type, count, group_.rank(), seed);
    trial.expected = ReducedInOrder(type, reduction, count, group_.size(), seed);
    AllowOtherOrder(trial, type, reduction);
    trial.completion = group_.AllReduce(ElementsOf(trial.out, type), reduction, Options(seed));
  }
  void Reduce(ElementType type, Reduction reduction, std::int64_t count, std::uint64_t seed) {
    const int root = static_cast<int>(seed % static_cast<std::uint64_t>(group_.size()));
    Trial& trial = Add("reduce", type, count, ReductionName(reduction));
    trial.out = ValuesOf(type, count, group_.rank(), seed);
    trial.expected =
        group_.rank() == root ? ReducedInOrder(type, reduction, count, group_.size(), seed) : trial.out;
    if (group_.rank() == root) AllowOtherOrder(trial, type, reduction);
    trial.completion = group_.Reduce(ElementsOf(trial.out, type), reduction, root, Options(seed));
  }
  void ReduceScatter(ElementType type, Reduction reduction, std::int64_t part, std::uint64_t seed) {
    Trial& trial = Add("reduce_scatter", type, part, ReductionName(reduction));
    trial.in = ValuesOf(type, part * group_.size(), group_.rank(), seed);
    const std::size_t bytes = static_cast<std::size_t>(part) * SizeOf(type);
    trial.expected = ReducedInOrder(type, reduction, part * group_.size(), group_.size(), seed)
                         .substr(bytes * static_cast<std::size_t>(group_.rank()), bytes);
    trial.out.assign(bytes, '?');
    AllowOtherOrder(trial, type, reduction);
    trial.completion = group_.ReduceScatter(ElementsOf(trial.in, type), ElementsOf(trial.out, type),
                                            reduction, Options(seed));
  }
  void AllGather(ElementType type, std::int64_t count, bool same, std::uint64_t seed) {
    Trial& trial = Add("all_gather", type, count, same ? "same" : "different");
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < group_.size(); ++rank)
      counts.push_back(same ? count : count * ((rank + 1) % 3));
    trial.in = ValuesOf(type, counts[static_cast<std::size_t>(group_.rank())], group_.rank(), seed);
    trial.expected = Parts(type, counts, seed);
    trial.out.assign(trial.expected.size(), '?');
    const Elements out = ElementsOf(trial.out, type);
    trial.completion = same ? group_.AllGatherEqual(ElementsOf(trial.in, type), out, Options(seed))
                            : group_.AllGather(ElementsOf(trial.in, type), counts, out, Options(seed));
  }
  void Broadcast(ElementType type, std::int64_t count, std::uint64_t seed) {
    const int root = static_cast<int>(seed % static_cast<std::uint64_t>(group_.size()));
    Trial& trial = Add("broadcast", type, count, "");
    trial.out = ValuesOf(type, count, group_.rank(), seed);
    trial.expected = ValuesOf(type, count, root, seed);
    trial.completion = group_.Broadcast(ElementsOf(trial.out, type), root, Options(seed));
  }
  // Around the ring.
  void SendRecv(ElementType type, std::int64_t count, std::uint64_t seed) {
    if (group_.size() == 1) return;
    const int size = group_.size(), before = (group_.rank() + size - 1) % size;
    Trial& trial = Add("send_recv", type, count, "");
    trial.in = ValuesOf(type, count, group_.rank(), seed);
    trial.expected = ValuesOf(type, count, before, seed);
    trial.out.assign(trial.expected.size(), '?');
    trial.completion = group_.SendRecv(ElementsOf(trial.in, type), (group_.rank() + 1) % size,
                                       ElementsOf(trial.out, type), before, Options(seed));
  }
  void Barrier() { Add("barrier", ElementType::kUInt8, 0, "").completion = group_.Barrier(); }

  // Waits for all; returns the first wrong one.
  std::string Finish() {
    while (!trials_.empty()) CheckFirst();
    return found_;
  }

 private:
  static CollectiveOptions Options(std::uint64_t seed) {
    return {.label = "a test", .blocking = seed % 3 == 0};
  }

  Trial& Add(std::string_view kind, ElementType type, std::int64_t count, std::string_view detail) {
    if (trials_.size() >= at_once_) CheckFirst();
    trials_.push_back({.what = StrCat(kind, " ", count, " ", ElementTypeName(type), " ", detail, " on rank ",
                                      group_.rank(), " of ", group_.size()),
                       .in = {},
                       .out = {},
                       .expected = {},
                       .completion = {},
                       .near = {}});
    return trials_.back();
  }
  void AllowOtherOrder(Trial& trial, ElementType type, Reduction reduction) const {
    if (!group_.adds_in_rank_order() && IsFloatType(type) && reduction <= Reduction::kMean) trial.near = type;
  }
  void CheckFirst() {
    const Trial& trial = trials_.front();
    const Status status = trial.completion.Wait();
    if (found_.empty() && !status.ok()) found_ = StrCat(trial.what, ": ", status);
    const bool right =
        trial.near ? AreNear(trial.out, trial.expected, *trial.near) : trial.out == trial.expected;
    if (found_.empty() && !right) found_ = StrCat(trial.what, ": other bytes");
    trials_.pop_front();
  }

  CollectiveGroup& group_;
  const std::size_t at_once_;
  std::deque<Trial> trials_;
  std::string found_;
};

}  // namespace

std::string ValuesOf(ElementType type, std::int64_t count, int rank, std::uint64_t seed) {
  // Sizes so different that the order of addition matters.
  constexpr double kScales[] = {0x1p-10, 0x1p-9, 0x1p-8, 0x1p-7, 0x1p-6, 0x1p-5, 0x1p-4, 0x1p-3};
  std::uint64_t state = seed * 1000 + static_cast<std::uint64_t>(rank);
  std::string bytes(static_cast<std::size_t>(count) * SizeOf(type), '\0');
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = NextRandom(state);
    const double number = (static_cast<double>(bits % 2048) - 1000) * kScales[bits >> 32 & 7];
    const bool is_nan = bits >> 50 == 77;
    if (type == ElementType::kFp16) Put(bytes, i, HalfOf(static_cast<float>(number)));
    if (type == ElementType::kBf16) Put(bytes, i, BFloat16Of(static_cast<float>(number)));
    if (type == ElementType::kFp32) Put(bytes, i, is_nan ? std::nanf("") : static_cast<float>(number));
    if (type == ElementType::kFp64) Put(bytes, i, number);
    if (!IsFloatType(type))
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * SizeOf(type), &bits, SizeOf(type));
  }
  return bytes;
}

std::string ReducedInOrder(ElementType type, Reduction reduction, std::int64_t count, int ranks,
                           std::uint64_t seed) {
  std::vector<std::string> values;
  for (int rank = 0; rank < ranks; ++rank) values.push_back(ValuesOf(type, count, rank, seed));
  switch (type) {
    case ElementType::kFp16:
      return ReduceValues<Half, float>(
          values, reduction, [](Half value) { return FloatOf(value); }, HalfOf);
    case ElementType::kBf16:
      return ReduceValues<BFloat16, float>(
          values, reduction, [](BFloat16 value) { return FloatOf(value); }, BFloat16Of);
    case ElementType::kFp32:
      return ReducePlain<float>(values, reduction);
    case ElementType::kFp64:
      return ReducePlain<double>(values, reduction);
    case ElementType::kInt32:
      return ReducePlain<std::int32_t>(values, reduction);
    case ElementType::kInt64:
      return ReducePlain<std::int64_t>(values, reduction);
    case ElementType::kUInt8:
      return ReducePlain<std::uint8_t>(values, reduction);
    case ElementType::kInt8:
      return ReducePlain<std::int8_t>(values, reduction);
  }
  return {};
}

std::string FirstDifference(CollectiveGroup& group, std::uint64_t seed) {
  Trials trials(group, 4);
  for (const ElementType type : kTypes) {
    // Bytes: within a cache line, the limit of one path, within a block, over several blocks.
    const auto width = static_cast<std::int64_t>(SizeOf(type));
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{13}, 16384 / width,
                                     16384 / width + 1, std::int64_t{3 * 65536} / width + 77}) {
      for (const Reduction reduction : kReductions) {
        if (reduction == Reduction::kMean && !IsFloatType(type)) continue;
        // Products overflow in one order and not in another.
        const bool in_order = group.adds_in_rank_order() || !IsFloatType(type);
        if (reduction == Reduction::kProduct && !in_order) continue;
        if (count > 16'385 && reduction > Reduction::kMean) continue;
        trials.AllReduce(type, reduction, count, ++seed);
        trials.Reduce(type, reduction, count, ++seed);
        trials.ReduceScatter(type, reduction, count / group.size(), ++seed);
      }
      trials.AllGather(type, count, true, ++seed);
      trials.AllGather(type, count / 2, false, ++seed);
      trials.Broadcast(type, count, ++seed);
      trials.SendRecv(type, count, ++seed);
    }
    trials.Barrier();
  }
  return trials.Finish();
}

std::string FirstDifferenceOfRandom(CollectiveGroup& group, std::uint64_t seed, int operations,
                                    bool messages) {
  std::mt19937_64 random(seed);
  Trials trials(group, 1 + random() % 8);
  for (int i = 0; i < operations; ++i) {
    const ElementType type = kTypes[random() % std::size(kTypes)];
    const Reduction reduction = kReductions[random() % (IsFloatType(type) ? 2 : 1)];
    const std::uint64_t most = std::uint64_t{1} << random() % 18;
    const auto count = static_cast<std::int64_t>(random() % most);
    const std::uint64_t values = seed * 100'000 + static_cast<std::uint64_t>(i);
    switch (random() % 8) {
      case 0:
        trials.Reduce(type, reduction, count, values);
        break;
      case 1:
        trials.ReduceScatter(type, reduction, count / group.size(), values);
        break;
      case 2:
        trials.AllGather(type, count / group.size(), random() % 2 == 0, values);
        break;
      case 3:
        trials.Broadcast(type, count, values);
        break;
      case 4:
        if (messages) trials.SendRecv(type, count, values);
        break;
      case 5:
        trials.Barrier();
        break;
      default:
        trials.AllReduce(type, reduction, count, values);
    }
  }
  return trials.Finish();
}

}  // namespace penstock::collective
