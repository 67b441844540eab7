#include "executor/collective/arena/signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace penstock::collective {

// The futexes are not private, because several processes may map the word.
void Signal::Wake() { syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

void Signal::Sleep(std::uint32_t seen, Nanoseconds limit) {
  constexpr long long kSecond = 1'000'000'000;
  const timespec relative{.tv_sec = limit.count() / kSecond, .tv_nsec = limit.count() % kSecond};
  sleepers.fetch_add(1);  // before the kernel compares: Set sees it, or the kernel sees Set's value
  syscall(SYS_futex, &value, FUTEX_WAIT, seen, &relative, nullptr, 0);
  sleepers.fetch_sub(1);
}

}  // namespace penstock::collective
