#include "framework/runtime/compute_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <system_error>
#include <utility>

#include "framework/base/check.h"
#include "framework/base/environment.h"

namespace penstock {
namespace {

constexpr double kLoopNs = 20'000, kThreadNs = 10'000, kChunkNs = 5'000;
constexpr int kChunksPerThread = 4;
constexpr std::chrono::microseconds kWorkerSpins{5}, kCallerSpins{20}, kMuchTooLong{50};
constexpr int kAloneFor = 8;  // times the wait for a preempted worker
constexpr std::chrono::milliseconds kAloneMax{200}, kMovesEvery{1}, kCalm{1000};

constexpr std::uint64_t kChunkBits = 24, kJoinBits = 8;
constexpr std::uint64_t kChunkMask = (std::uint64_t{1} << kChunkBits) - 1;
constexpr std::uint64_t kJoinMask = (std::uint64_t{1} << kJoinBits) - 1;
constexpr std::uint64_t kOneJoin = std::uint64_t{1} << kChunkBits;
constexpr int kGenerationShift = kChunkBits + kJoinBits;

std::uint64_t NextChunk(std::uint64_t ticket) { return ticket & kChunkMask; }
std::uint64_t Joins(std::uint64_t ticket) { return (ticket >> kChunkBits) & kJoinMask; }
std::uint64_t Generation(std::uint64_t ticket) { return ticket >> kGenerationShift; }

thread_local int team_size = 1;
thread_local bool in_chunk = false;

// Marks that this thread runs a chunk, so that loops inside it stay on the thread.
class InChunk {
 public:
  InChunk() : before_(in_chunk) { in_chunk = true; }
  ~InChunk() { in_chunk = before_; }
  InChunk(const InChunk&) = delete;
  InChunk& operator=(const InChunk&) = delete;

 private:
  const bool before_;
};

// Counts itself while it exists.
class OneMore {
 public:
  explicit OneMore(std::atomic<int>& counter)
      : counter_(counter), count_(counter.fetch_add(1, std::memory_order_relaxed) + 1) {}
  ~OneMore() { counter_.fetch_sub(1, std::memory_order_relaxed); }
  OneMore(const OneMore&) = delete;
  OneMore& operator=(const OneMore&) = delete;
  int count() const { return count_; }  // with this one

 private:
  std::atomic<int>& counter_;
  const int count_;
};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns whether `ready` became true within `limit`.
template <typename Ready>
bool SpinUntil(Ready ready, std::chrono::nanoseconds limit) {
  if (ready()) return true;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      Pause();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

void SleepOn(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void Wake(std::atomic<std::uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

// The cores that the current thread may use; none if the system does not tell.
cpu_set_t UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
  return set;
}

std::atomic<ComputePool*> pool_of_process{nullptr};

}  // namespace

ComputeTeam::ComputeTeam(int threads) : before_(team_size) {
  team_size = std::max(threads, 1);
  if (team_size == 1 || before_ != 1) return;  // a run inside a run uses the same workers
  counted_by_ = &ComputePool::OfThisProcess();
  counted_by_->helpers_wanted_.fetch_add(team_size - 1, std::memory_order_relaxed);
}

ComputeTeam::~ComputeTeam() {
  if (counted_by_ != nullptr)
    counted_by_->helpers_wanted_.fetch_sub(team_size - 1, std::memory_order_relaxed);
  team_size = before_;
}

int ComputeTeam::threads() { return in_chunk ? 1 : team_size; }

LoopChunks DivideLoop(std::int64_t count, double item_ns, std::int64_t granule, int threads) {
  const double total_ns = static_cast<double>(count) * item_ns;
  LoopChunks divided{1, 1, count};
  if (threads <= 1 || total_ns < kLoopNs) return divided;
  divided.threads = static_cast<int>(std::min<double>(threads, total_ns / kThreadNs));
  const double wanted = std::min<double>(divided.threads * kChunksPerThread, total_ns / kChunkNs);
  const auto granules = (count + granule - 1) / granule;
  const auto chunks = std::min<std::int64_t>(static_cast<std::int64_t>(wanted), granules);
  divided.items = (granules + chunks - 1) / chunks * granule;
  divided.chunks = static_cast<int>((count + divided.items - 1) / divided.items);
  divided.threads = std::min(divided.threads, divided.chunks);
  return divided;
}

// No chunk is left to take.
ComputePool::Loop::Loop() : ticket(kChunkMask) {}

ComputePool::ComputePool(int workers_max, bool moves)
    : workers_max_(std::max(workers_max, 0)), moves_(moves) {}

ComputePool::~ComputePool() {
  stop_.store(true);
  opened_.fetch_add(1);
  Wake(opened_, INT_MAX);
  for (std::thread& thread : threads_) thread.join();
}

ComputePool& ComputePool::OfThisProcess() {
  ComputePool* pool = pool_of_process.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  // The pool is never destroyed, so that the process's end waits for no thread. A child gets none of the
  // threads, and leaves the object behind.
  static const int forgets_in_children =
      pthread_atfork(nullptr, nullptr, [] { pool_of_process.store(nullptr, std::memory_order_release); });
  PENSTOCK_CHECK(forgets_in_children == 0, "the system has memory for one more handler of forks");
  const cpu_set_t cores = UsableCores();
  const int known = CPU_COUNT(&cores);
  const int count = known > 0 ? known : static_cast<int>(std::thread::hardware_concurrency());
  const Result<bool> moves = env::Flag("PENSTOCK_MOVE_THREADS", true);
  auto* const made = new ComputePool(count - 1, moves.ok() && *moves);
  if (pool_of_process.compare_exchange_strong(pool, made)) return *made;
  delete made;  // another thread was first
  return *pool;
}

void ComputePool::Run(int chunks, int helpers, Call call, const void* chunk) {
  PENSTOCK_CHECK(chunks < static_cast<int>(kChunkMask), "a loop has fewer than 2^24 - 1 chunks");
  if (in_chunk || helpers < 1) return RunAlone(chunks, call, chunk);
  const OneMore caller(callers_);
  // Callers and workers together are no more than the cores. Other chunks would give other bytes.
  helpers = std::min({helpers, chunks - 1, workers_max_ + 1 - caller.count(), static_cast<int>(kJoinMask)});
  const Instant start = std::chrono::steady_clock::now();
  if (start < alone_until_.load(std::memory_order_relaxed)) helpers = 0;
  Loop* const loop = helpers > 0 ? TakeLoop() : nullptr;
  if (loop == nullptr) return RunAlone(chunks, call, chunk);
  if (workers() < WorkersWanted(helpers) && !exhausted_.load(std::memory_order_relaxed))
    StartWorkers(helpers);
  loop->core.store(moves_ ? sched_getcpu() : -1, std::memory_order_relaxed);
  loop->call = call;
  loop->chunk = chunk;
  {
    const InChunk inside;
    Open(*loop, chunks, helpers);
    const int own = TakeChunks(*loop, loop->ticket.load(std::memory_order_acquire), kCaller);
    AwaitBegunChunks(*loop, static_cast<std::uint32_t>(chunks), start, own);
  }
  // Nobody may take a chunk of this generation once `chunks` is that of the next.
  loop->ticket.fetch_or(kChunkMask, std::memory_order_acq_rel);
  std::exception_ptr error;
  if (loop->failed.load(std::memory_order_relaxed)) {
    error = std::exchange(loop->error, nullptr);
    loop->failed.store(false, std::memory_order_relaxed);
  }
  loop->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

void ComputePool::RunAlone(int chunks, Call call, const void* chunk) {
  const InChunk inside;
  for (int i = 0; i < chunks; ++i) call(chunk, i);
}

ComputePool::Loop* ComputePool::TakeLoop() {
  for (Loop& loop : loops_) {
    if (!loop.taken.load(std::memory_order_relaxed) && !loop.taken.exchange(true, std::memory_order_acquire))
      return &loop;
  }
  return nullptr;
}

void ComputePool::Open(Loop& loop, int chunks, int helpers) {
  loop.chunks.store(static_cast<std::uint32_t>(chunks), std::memory_order_relaxed);
  loop.joins_max.store(static_cast<std::uint32_t>(helpers), std::memory_order_relaxed);
  loop.done.store(0, std::memory_order_relaxed);
  const std::uint64_t generation = Generation(loop.ticket.load(std::memory_order_relaxed)) + 1;
  loop.ticket.store(generation << kGenerationShift, std::memory_order_release);
  opened_.fetch_add(1);  // before sleepers_ is read: a worker that counts itself later sees the new value
  if (sleepers_.load() > 0) Wake(opened_, helpers);
}

// Takes chunks of the generation of `ticket` until none is left; returns how many.
int ComputePool::TakeChunks(Loop& loop, std::uint64_t ticket, Taker taker) {
  const std::uint64_t generation = Generation(ticket);
  int taken = 0;
  while (Generation(ticket) == generation) {
    // A value of another generation makes the exchange fail, because the ticket changes before it.
    const std::uint32_t chunks = loop.chunks.load(std::memory_order_relaxed);
    if (NextChunk(ticket) >= chunks) break;
    const bool joins = taker == kWorker && taken == 0;
    if (joins && Joins(ticket) >= loop.joins_max.load(std::memory_order_relaxed)) break;
    const std::uint64_t next = ticket + 1 + (joins ? kOneJoin : 0);
    if (!loop.ticket.compare_exchange_weak(ticket, next, std::memory_order_acq_rel)) continue;
    ++taken;
    if (!loop.failed.load(std::memory_order_relaxed)) {
      try {
        loop.call(loop.chunk, static_cast<int>(NextChunk(ticket)));
      } catch (...) {
        if (!loop.failed.exchange(true)) loop.error = std::current_exception();
      }
    }
    // After the last chunk, the loop may belong to another caller: a needless wake-up does no harm.
    if (loop.done.fetch_add(1) + 1 == chunks && loop.awaited.load()) Wake(loop.done, 1);
    ticket = loop.ticket.load(std::memory_order_acquire);
  }
  return taken;
}

// own: the chunks that the caller has computed since `start`.
void ComputePool::AwaitBegunChunks(Loop& loop, std::uint32_t chunks, Instant start, int own) {
  const auto ended = [&] { return loop.done.load(std::memory_order_acquire) == chunks; };
  if (ended()) return;
  const Instant waits = std::chrono::steady_clock::now();
  if (!SpinUntil(ended, kCallerSpins)) {
    loop.awaited.store(true);
    for (std::uint32_t done = loop.done.load(); done != chunks; done = loop.done.load())
      SleepOn(loop.done, done);
    loop.awaited.store(false);
  }
  // If a chunk took much longer on a worker than on the caller, the system has preempted the worker. The
  // cores are busy then, so the next loops do without workers for several times what that has cost.
  const Instant now = std::chrono::steady_clock::now();
  if (own > 0 && now - waits > kMuchTooLong + 2 * (waits - start) / own)
    alone_until_.store(now + std::min<Instant::duration>(kAloneFor * (now - waits), kAloneMax),
                       std::memory_order_relaxed);
}

int ComputePool::WorkersWanted(int helpers) const {
  return std::min(workers_max_, std::max(helpers, helpers_wanted_.load(std::memory_order_relaxed)));
}

void ComputePool::StartWorkers(int helpers) {
  const std::lock_guard lock(starting_);
  const int wanted = WorkersWanted(helpers);
  // Signals are for the threads of the host program.
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  try {
    while (static_cast<int>(threads_.size()) < wanted) threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
    exhausted_.store(true, std::memory_order_relaxed);  // the system gives no more threads
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
}

// A worker on the caller's core only takes time from it. The system may leave it there although another core
// is idle; so it moves, and may then use all cores again. If workers were preempted lately, the other cores
// are busy too, and the worker stays.
void ComputePool::LeaveCore(int core) {
  static thread_local Instant next = Instant::min();
  const Instant now = std::chrono::steady_clock::now();
  if (now < next || now < alone_until_.load(std::memory_order_relaxed) + kCalm) return;
  if (sched_getcpu() != core) return;
  next = now + kMovesEvery;
  const cpu_set_t cores = UsableCores();
  if (CPU_COUNT(&cores) < 2 || !CPU_ISSET(core, &cores)) return;
  cpu_set_t others = cores;
  CPU_CLR(core, &others);
  // A failure leaves the thread where it is, which costs only time.
  if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(cores), &cores);
}

void ComputePool::Work() {
  in_chunk = true;
  pthread_setname_np(pthread_self(), "penstock-pool");
  while (!stop_.load()) {
    const std::uint32_t seen = opened_.load();  // a loop that opens from here on ends the wait below
    for (Loop& loop : loops_) {
      const std::uint64_t ticket = loop.ticket.load(std::memory_order_acquire);
      if (NextChunk(ticket) >= loop.chunks.load(std::memory_order_relaxed)) continue;
      if (const int core = loop.core.load(std::memory_order_relaxed); core >= 0) LeaveCore(core);
      TakeChunks(loop, ticket, kWorker);
    }
    if (SpinUntil([&] { return opened_.load(std::memory_order_acquire) != seen; }, kWorkerSpins)) continue;
    sleepers_.fetch_add(1);
    SleepOn(opened_, seen);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace penstock
