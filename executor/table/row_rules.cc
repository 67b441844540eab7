#include "executor/table/row_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::table {
namespace {

// A number in [0, 1) for each id and count.
double Share(std::int64_t id, std::uint32_t count) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
  std::uint64_t x = static_cast<std::uint64_t>(id) + kOdd * (std::uint64_t{count} + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

// factor to the power of n, by multiplications alone: the same bits on every machine.
double Power(double factor, std::uint64_t n) {
  double power = 1;
  for (; n > 0 && power > 0; n >>= 1) {
    if ((n & 1) != 0) power *= factor;
    factor *= factor;
  }
  return power;
}

}  // namespace

bool EntryRule::Enters(std::int64_t id, std::uint32_t count) const {
  if (count_ > 0) return static_cast<std::int64_t>(count) >= count_;
  return probability_ <= 0 || Share(id, count) < probability_;
}

double EvictionRule::Decayed(const RowHeader& row, std::uint64_t now) const {
  const auto every = static_cast<std::uint64_t>(policy_.decay_every);
  return static_cast<double>(row.shows) * Power(policy_.decay, now / every - row.version / every);
}

bool EvictionRule::IsGone(const RowHeader& row, std::uint64_t now) const {
  if (row.version > now) return false;
  const std::uint64_t age = now - row.version;
  if (policy_.unseen > 0 && age > static_cast<std::uint64_t>(policy_.unseen)) return true;
  if (policy_.count > 0 && row.count < static_cast<std::uint64_t>(policy_.count) &&
      age > static_cast<std::uint64_t>(policy_.count_after)) {
    return true;
  }
  if (policy_.shows <= 0) return false;
  const auto every = static_cast<std::uint64_t>(policy_.decay_every);
  return now / every > row.version / every && Decayed(row, now) < policy_.shows;
}

std::uint64_t EvictionRule::GoneFrom(const RowHeader& row) const {
  std::uint64_t from = kNeverGone;
  if (policy_.unseen > 0) from = row.version + static_cast<std::uint64_t>(policy_.unseen) + 1;
  if (policy_.count > 0 && row.count < static_cast<std::uint64_t>(policy_.count))
    from = std::min(from, row.version + static_cast<std::uint64_t>(policy_.count_after) + 1);
  if (policy_.shows <= 0) return from;
  // The logarithms are not exact: begins one period early.
  const double shows = static_cast<double>(row.shows);
  const double periods = std::log(policy_.shows / shows) / std::log(policy_.decay) - 1;
  const auto every = static_cast<std::uint64_t>(policy_.decay_every);
  std::uint64_t at = (row.version / every + static_cast<std::uint64_t>(std::max(1.0, periods))) * every;
  while (at < from && Decayed(row, at) >= policy_.shows) at += every;
  return std::min(from, at);
}

float EvictionRule::ShowsAfter(const RowHeader& row, std::uint64_t now) const {
  return policy_.shows > 0 ? static_cast<float>(Decayed(row, now) + 1) : 0;
}

std::uint64_t EvictionRule::sweep_every() const {
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kSweeps = 4;  // while a row becomes old enough
  std::uint64_t shortest = kNever;
  if (policy_.unseen > 0) shortest = std::min(shortest, static_cast<std::uint64_t>(policy_.unseen));
  if (policy_.count > 0) shortest = std::min(shortest, static_cast<std::uint64_t>(policy_.count_after));
  if (policy_.shows > 0)
    shortest = std::min(shortest, static_cast<std::uint64_t>(policy_.decay_every) * kSweeps);
  return shortest == kNever ? 0 : std::max<std::uint64_t>(1, shortest / kSweeps);
}

}  // namespace penstock::table
