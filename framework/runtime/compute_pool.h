// The threads on which kernels and servers run their loops.
//
//   const ComputeTeam team(4);                                  // the executor, for a run on this thread
//   ParallelFor(count, 0.6, 64, [&](std::int64_t begin, std::int64_t end) {  // a kernel
//     for (std::int64_t i = begin; i < end; ++i) out[i] = x[i] + y[i];
//   });
//
// A loop is divided into chunks. The calling thread takes chunks too, and at the end waits only for chunks
// that another thread has begun: a worker that the system does not run in time costs nothing. Which thread
// takes a chunk is open; the chunks themselves depend only on the loop and on the size of the team.
//
// A loop allocates nothing. A loop inside a chunk runs on the thread of that chunk.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

class ComputePool;

// The number of threads that loops on this thread may use, this one included, during the object's lifetime.
// Without a team, loops use this thread alone.
class ComputeTeam {
 public:
  explicit ComputeTeam(int threads);
  ~ComputeTeam();
  ComputeTeam(const ComputeTeam&) = delete;
  ComputeTeam& operator=(const ComputeTeam&) = delete;

  static int threads();  // of the current thread's team; 1 inside a chunk

 private:
  int before_;
  ComputePool* counted_by_ = nullptr;
};

// The chunks of a loop over `count` items: [i * items, min((i + 1) * items, count)).
struct LoopChunks {
  int chunks = 1;
  int threads = 1;
  std::int64_t items = 0;
};
// Divides a loop of `count` items of about `item_ns` nanoseconds each. A loop of less than 20 us is one
// chunk; a longer one gets a thread for each 10 us, up to the team's `threads`, and up to four chunks per
// thread. Chunks begin at multiples of `granule` items.
LoopChunks DivideLoop(std::int64_t count, double item_ns, std::int64_t granule, int threads);

class ComputePool {
 public:
  // workers_max: threads beside the callers'. moves: whether a worker that is on its caller's core leaves
  // it.
  explicit ComputePool(int workers_max, bool moves = true);
  ~ComputePool();  // no loop may be in progress
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // The pool of this process, with at most one thread for each core that the process may use. It starts its
  // threads when loops need them, and ends with the process. A forked process has a pool of its own.
  static ComputePool& OfThisProcess();

  // Calls run(0) ... run(chunks - 1), each once, on this thread and up to `threads` - 1 workers, and returns
  // when all have returned. From any thread. If several threads run loops at once, each gets fewer workers,
  // so that there are no more threads than cores. At most 2^24 - 2 chunks.
  //
  // An exception of a chunk is thrown here; chunks that have not begun by then are left out.
  template <typename Chunk>
  void ForEach(int chunks, int threads, const Chunk& run) {
    Run(
        chunks, threads - 1, [](const void* chunk, int i) { (*static_cast<const Chunk*>(chunk))(i); }, &run);
  }

  int workers() const { return started_.load(std::memory_order_relaxed); }  // threads started so far

 private:
  friend class ComputeTeam;
  using Call = void (*)(const void* chunk, int index);
  using Instant = std::chrono::steady_clock::time_point;  // decides who computes, never what
  static constexpr int kLoops = 8;  // in progress at once, of different callers; further ones run alone
  struct alignas(64) Loop {
    // generation (32 bits), workers that have joined (8), next chunk (24)
    std::atomic<std::uint64_t> ticket;
    std::atomic<std::uint32_t> chunks{0}, joins_max{0};
    std::atomic<int> core{-1};  // of the caller
    // Read only after a chunk was taken.
    Call call = nullptr;
    const void* chunk = nullptr;
    alignas(64) std::atomic<std::uint32_t> done{0};
    std::atomic<bool> awaited{false}, failed{false};
    std::exception_ptr error;
    alignas(64) std::atomic<bool> taken{false};
    Loop();
  };

  void Run(int chunks, int helpers, Call call, const void* chunk);
  static void RunAlone(int chunks, Call call, const void* chunk);
  Loop* TakeLoop();
  void Open(Loop& loop, int chunks, int helpers);
  enum Taker { kCaller, kWorker };
  int TakeChunks(Loop& loop, std::uint64_t ticket, Taker taker);
  void AwaitBegunChunks(Loop& loop, std::uint32_t chunks, Instant start, int own);
  int WorkersWanted(int helpers) const;
  void StartWorkers(int helpers);
  void Work();
  void LeaveCore(int core);

  const int workers_max_;
  const bool moves_;
  std::atomic<int> helpers_wanted_{0};  // of the teams that exist
  std::atomic<int> callers_{0};         // in loops
  std::atomic<int> started_{0};
  std::atomic<bool> exhausted_{false};
  std::array<Loop, kLoops> loops_;
  alignas(64) std::atomic<std::uint32_t> opened_{0};  // counts opened loops; workers sleep on it
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex starting_;  // guards threads_
  std::vector<std::thread> threads_;
  std::atomic<Instant> alone_until_{Instant::min()};  // loops that start before do without workers
};

// Calls body(begin, end) for consecutive parts of [0, count), by the team of this thread (DivideLoop).
template <typename Body>
void ParallelFor(std::int64_t count, double item_ns, std::int64_t granule, const Body& body) {
  if (count <= 0) return;
  const LoopChunks divided = DivideLoop(count, item_ns, granule, ComputeTeam::threads());
  if (divided.chunks == 1) return body(std::int64_t{0}, count);
  ComputePool::OfThisProcess().ForEach(divided.chunks, divided.threads, [&](int i) {
    const std::int64_t begin = i * divided.items;
    const std::int64_t end = begin + divided.items;
    body(begin, end < count ? end : count);
  });
}

}  // namespace penstock
