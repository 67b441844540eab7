#include "transpiler/plan/send_order.h"

#include <numeric>
#include <random>
#include <utility>

namespace penstock::plan {

std::vector<int> ShuffledSendOrder(int count, std::int64_t random_seed) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator(static_cast<std::uint32_t>(random_seed));
  for (int last = count - 1; last > 0; --last) {
    std::uint32_t mask = 1;
    while (mask < static_cast<std::uint32_t>(last)) mask = mask << 1 | 1;
    std::uint32_t drawn = generator() & mask;
    while (drawn > static_cast<std::uint32_t>(last)) drawn = generator() & mask;
    std::swap(order[static_cast<std::size_t>(last)], order[drawn]);
  }
  return order;
}

}  // namespace penstock::plan
