// Sorts entries by row number, in time linear in their number.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

//   struct Entry { std::int64_t row; const float* values; };
//   OrderByRow(entries, spare);   // ascending by row; entries of the same row keep their order
//
// `spare` is scratch memory that the caller keeps between calls. Uses a radix sort over the digits in which
// the rows differ (Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R), and insertion sort for few
// entries.
template <typename Entry>
void OrderByRow(std::vector<Entry>& entries, std::vector<Entry>& spare) {
  constexpr std::size_t kFew = 48;
  constexpr int kDigitBits = 11;
  constexpr std::uint64_t kDigits = std::uint64_t{1} << kDigitBits;
  const auto before = [](const Entry& a, const Entry& b) { return a.row < b.row; };
  if (std::is_sorted(entries.begin(), entries.end(), before)) return;
  if (entries.size() <= kFew) {
    for (auto next = entries.begin(); next != entries.end(); ++next)
      std::rotate(std::upper_bound(entries.begin(), next, *next, before), next, next + 1);
    return;
  }
  const auto [least, most] = std::minmax_element(entries.begin(), entries.end(), before);
  const auto base = static_cast<std::uint64_t>(least->row);
  const std::uint64_t range = static_cast<std::uint64_t>(most->row) - base;
  spare.resize(entries.size());
  for (int shift = 0; shift < 64 && (range >> shift) != 0; shift += kDigitBits) {
    const auto digit = [=](const Entry& entry) {
      return ((static_cast<std::uint64_t>(entry.row) - base) >> shift) & (kDigits - 1);
    };
    std::array<std::size_t, kDigits> begins = {};
    for (const Entry& entry : entries) ++begins[digit(entry)];
    std::size_t begin = 0;
    for (std::size_t& count : begins) begin += std::exchange(count, begin);
    for (const Entry& entry : entries) spare[begins[digit(entry)]++] = entry;
    entries.swap(spare);
  }
}

}  // namespace penstock
