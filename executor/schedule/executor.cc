#include "executor/schedule/executor.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <stdexcept>
#include <unordered_map>

#include "executor/graph/compiled_block.h"
#include "executor/plan/plan.h"
#include "executor/schedule/cancellation.h"
#include "executor/schedule/frame_pool.h"
#include "executor/schedule/peeked.h"
#include "executor/schedule/sequential.h"
#include "framework/roles/views.h"
#include "framework/runtime/collective_rings.h"
#include "framework/runtime/compute_pool.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/server_loop.h"
#include "framework/runtime/trainer_communicator.h"
#include "framework/text/round_trip.h"

namespace penstock::exec {

// A compiled block with the frames of its specialisations.
struct Executor::Entry {
  Entry(std::shared_ptr<const CompiledBlock> compiled, std::uint64_t id, std::size_t idle_max)
      : block(std::move(compiled)),
        content_id(id),
        may_wait(std::any_of(block->instructions.begin(), block->instructions.end(), OpMayWait)),
        lands(std::any_of(block->instructions.begin(), block->instructions.end(), OpLands)),
        pool(idle_max) {}
  const std::shared_ptr<const CompiledBlock> block;
  const std::uint64_t content_id;
  const bool may_wait;
  const bool lands;  // an op takes parameters from the trainer's communicator
  // The fetches as the caller gave them; if it gave none, the block's fetches come from the program.
  std::vector<std::string> fetches_asked;
  FramePool pool;

 private:
  static bool OpMayWait(const Instruction& instruction) { return instruction.def->effects().AreOutside(); }
  static bool OpLands(const Instruction& instruction) {
    return roles::CommOf(*instruction.op) == roles::Comm::kRecv &&
           roles::RecvView(*instruction.op).by_communicator();
  }
};

namespace {

using Entry = Executor::Entry;
using EntryRef = Executor::Compiled;

struct BlockKey {
  std::uint64_t content_id = 0;
  int block = 0;
  std::vector<std::string> keeps;
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};
struct BlockKeyHash {
  std::size_t operator()(const BlockKey& key) const {
    return static_cast<std::size_t>((key.content_id * 0x9E3779B97F4A7C15ull) ^
                                    static_cast<std::uint64_t>(key.block));
  }
};

bool SameFeeds(const Entry& entry, std::span<const Feed> feeds) {
  const std::vector<std::string>& names = entry.block->feed_names;
  return std::equal(names.begin(), names.end(), feeds.begin(), feeds.end(),
                    [](const std::string& name, const Feed& feed) { return name == feed.name; });
}

// Sets the size of OpenMP's team, which some of oneDNN's primitives use, for one run on this thread.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) {
    if (threads != before_) omp_set_num_threads(threads);
  }
  ~TeamSize() { omp_set_num_threads(before_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

// Counts a run from its very beginning, so that a Cancel during compilation is not lost. A run that a kernel
// starts on the same thread belongs to the kernel's run: a Cancel between two rounds of a loop stops the
// loop.
class Running {
 public:
  Running(std::atomic<int>& count, const CancellationSource& source,
          const std::function<bool()>& interrupted = {})
      : count_(count),
        outer_(innermost_),
        cancellation_(outer_ != nullptr && outer_->cancellation_.IsOf(source)
                          ? outer_->cancellation_
                          : Cancellation(source, interrupted ? &interrupted : nullptr)) {
    count_.fetch_add(1);
    innermost_ = this;
  }
  ~Running() {
    innermost_ = outer_;
    count_.fetch_sub(1);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  const Cancellation& cancellation() const { return cancellation_; }

 private:
  static thread_local const Running* innermost_;
  std::atomic<int>& count_;
  const Running* const outer_;
  const Cancellation cancellation_;
};
thread_local const Running* Running::innermost_ = nullptr;

}  // namespace

struct Executor::Impl {
  Impl(const OpRegistry& registry, const ExecutorOptions& given)
      : ops(registry), options(given), passes(given.passes.value_or(PlanOptionsBySetting())) {
    services.threads = given.threads > 0 ? given.threads : omp_get_max_threads();
    services.rpc = given.rpc;
    services.server = given.server;
    services.rings = given.rings;
  }

  // Kernels declare their pieces for the program that was attached last. Another program may have been since
  // this one was compiled.
  Status Attach(const CompiledBlock& block) const {
    if (!block.effects.AreOutside() || services.rpc == nullptr) return OkStatus();
    return services.rpc->Attach(block.program);
  }

  Result<EntryRef> Compile(const Program& program, CompileRequest request) {
    std::vector<std::string> fetches = request.fetches;
    PENSTOCK_ASSIGN_OR_RETURN(const Program verified, Verified(program));
    PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledBlock> block,
                              CompileBlock(ops, verified, std::move(request)));
    PENSTOCK_RETURN_IF_ERROR(Attach(*block));
    compiled_count.fetch_add(1, std::memory_order_relaxed);
    auto entry = std::make_shared<Entry>(std::move(block), program.content_id(), options.specialisations_max);
    entry->fetches_asked = std::move(fetches);
    return entry;
  }

  // Compares the program with each entry, most recently used first: main programs are few.
  EntryRef FindMain(const Program& program, std::span<const Feed> feeds,
                    std::span<const std::string> fetches) {
    const std::lock_guard lock(mutex);
    for (auto it = main_entries.begin(); it != main_entries.end(); ++it) {
      const Entry& entry = **it;
      if (entry.content_id != program.content_id() || !SameFeeds(entry, feeds)) continue;
      if (!std::equal(fetches.begin(), fetches.end(), entry.fetches_asked.begin(), entry.fetches_asked.end()))
        continue;
      if (it != main_entries.begin()) main_entries.splice(main_entries.begin(), main_entries, it);
      return main_entries.front();
    }
    return nullptr;
  }

  Result<EntryRef> MainEntry(const Program& program, std::span<const Feed> feeds,
                             std::span<const std::string> fetches) {
    if (EntryRef found = FindMain(program, feeds, fetches)) return found;
    return CompileMain(program, feeds, fetches);
  }

  Result<EntryRef> CompileMain(const Program& program, std::span<const Feed> feeds,
                               std::span<const std::string> fetches) {
    CompileRequest request;
    for (const Feed& feed : feeds) request.feeds.push_back(feed.name);
    request.fetches.assign(fetches.begin(), fetches.end());
    request.receives_early = services.rpc != nullptr && services.rpc->PullsNext();
    PENSTOCK_ASSIGN_OR_RETURN(EntryRef entry, Compile(program, std::move(request)));
    const std::lock_guard lock(mutex);
    main_entries.push_front(entry);
    if (main_entries.size() > options.programs_max) main_entries.pop_back();
    return entry;
  }

  EntryRef FindBlock(const BlockKey& key) {
    const std::lock_guard lock(mutex);
    const auto it = block_entries.find(key);
    return it == block_entries.end() ? nullptr : it->second;
  }

  Result<EntryRef> BlockEntry(const Program& program, int block, std::vector<std::string> keeps) {
    const BlockKey key = {program.content_id(), block, std::move(keeps)};
    if (EntryRef found = FindBlock(key)) return found;
    PENSTOCK_ASSIGN_OR_RETURN(
        EntryRef entry,
        Compile(program,
                {.block = block, .use = BlockUse::kNested, .feeds = {}, .fetches = {}, .keeps = key.keeps}));
    const std::lock_guard lock(mutex);
    const auto [it, added] = block_entries.emplace(key, entry);
    if (!added) return it->second;  // another thread was faster
    block_order.push_back(key);
    if (block_order.size() > options.blocks_max) {
      block_entries.erase(block_order.front());
      block_order.pop_front();
    }
    return entry;
  }

  // Returns a frame for a run in `scope`. `last` is the binding of the caller's previous run, to be updated.
  Result<std::unique_ptr<Frame>> Take(Entry& entry, Scope& scope, const Supplied& supplied,
                                      ScopeBinding& last) {
    if (auto frame = entry.pool.TakeBound(scope, supplied)) {
      fast_run_count.fetch_add(1, std::memory_order_relaxed);
      return frame;
    }
    if (last.IsOf(scope)) {  // other scopes have used the frames since
      if (auto frame = entry.pool.TakeAccepting(supplied, last)) {
        fast_run_count.fetch_add(1, std::memory_order_relaxed);
        frame->Bind(last);
        return frame;
      }
    }
    PENSTOCK_RETURN_IF_ERROR(CheckFeeds(*entry.block, supplied.feeds));
    PENSTOCK_ASSIGN_OR_RETURN(last, BindScope(*entry.block, scope));
    const ScopeBinding& binding = last;
    std::unique_ptr<Frame> frame = entry.pool.TakeAccepting(supplied, binding);
    if (frame == nullptr) {
      PENSTOCK_RETURN_IF_ERROR(Attach(*entry.block));
      auto made = MakePlan(ops, entry.block, KnownTypes(*entry.block, supplied, binding), services, passes);
      if (!made.ok()) return ExplainByFeeds(made.status(), *entry.block, supplied.feeds);
      specialised_count.fetch_add(1, std::memory_order_relaxed);
      late_step_count.fetch_add((*made)->steps_without_kernel, std::memory_order_relaxed);
      frame = std::make_unique<Frame>(*std::move(made));
      entry.pool.Lend(*frame);
    }
    frame->Bind(binding);
    return frame;
  }

  static std::vector<VarInfo> KnownTypes(const CompiledBlock& block, const Supplied& supplied,
                                         const ScopeBinding& binding) {
    std::vector<VarInfo> known;
    known.reserve(block.slots.size());
    for (const SlotInfo& slot : block.slots) known.push_back(InfoOf(*slot.var));
    for (const int slot : block.key) {
      const auto s = static_cast<std::size_t>(slot);
      if (binding.variables[s] != nullptr) known[s] = InfoOf(*binding.variables[s], *block.slots[s].var);
    }
    for (std::size_t i = 0; i < supplied.feeds.size(); ++i) {
      known[static_cast<std::size_t>(block.feeds[i])] = InfoOf(supplied.feeds[i].tensor);
    }
    SetPeeked(block, supplied.peeked, known);
    return known;
  }

  Status RunEntry(Entry& entry, Scope& scope, std::span<const Feed> feeds, const Cancellation& cancellation,
                  std::vector<Variable>* out, ScopeBinding& last) {
    const TeamSize team(services.threads);
    const ComputeTeam loops(services.threads);
    if (entry.lands && services.rpc != nullptr && services.rpc->communicator() != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(services.rpc->communicator()->BeginRun(scope));
    }
    OpTimer* const timer = options.timer != nullptr && options.timer->on() ? options.timer : nullptr;
    std::vector<VarInfo> peeked;
    PENSTOCK_RETURN_IF_ERROR(PeekBatches(*entry.block, scope, timer, peeked));
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Frame> frame, Take(entry, scope, {feeds, peeked}, last));
    frame->BeginRun(feeds);
    const Nanoseconds begin = timer == nullptr ? Nanoseconds{0} : timer->Now();
    Status status = RunSequential(*frame, scope, services, cancellation, timer);
    if (timer != nullptr) timer->AddRun(entry.block->block, begin);
    // Collective operations in progress may use the frame's memory or a parameter's: ends them.
    if (!status.ok() && entry.block->effects.AreOutside() && services.rings != nullptr)
      services.rings->GiveUp(status);
    if (status.ok() && out != nullptr) status = Collect(*frame, *out);
    frame->EndRun();
    // After a failed run the frame's state is unknown: drops it, and the next run makes a new one.
    if (status.ok()) entry.pool.Give(std::move(frame));
    return status;
  }

  static Status Collect(const Frame& frame, std::vector<Variable>& out) {
    const std::size_t count = frame.block().fetches.size();
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(Variable value, frame.Fetch(static_cast<int>(i)));
      out.push_back(std::move(value));
    }
    return OkStatus();
  }

  static Status NotEnoughMemory(const CompiledBlock& block) {
    return FailedPrecondition("E-run-memory", "block ", block.block, ": not enough memory for these shapes");
  }

  Status RunGuarded(Entry& entry, Scope& scope, std::span<const Feed> feeds, const Cancellation& cancellation,
                    std::vector<Variable>* out) {
    ScopeBinding none;
    return RunGuarded(entry, scope, feeds, cancellation, out, none);
  }

  Status RunGuarded(Entry& entry, Scope& scope, std::span<const Feed> feeds, const Cancellation& cancellation,
                    std::vector<Variable>* out, ScopeBinding& last) {
    // Sizes depend on the user's feeds: too large a batch is an error of this run, not of the process.
    try {
      return RunEntry(entry, scope, feeds, cancellation, out, last);
    } catch (const std::bad_alloc&) {
      return NotEnoughMemory(*entry.block);
    } catch (const std::length_error&) {  // a vector larger than any memory
      return NotEnoughMemory(*entry.block);
    } catch (const std::system_error& error) {
      return FailedPrecondition("E-run-memory", "block ", entry.block->block, ": ", error.what());
    }
  }

  const OpRegistry& ops;
  const ExecutorOptions options;
  const PlanOptions passes;
  Services services;
  CancellationSource cancel;
  std::atomic<int> running{0};
  std::atomic<std::int64_t> compiled_count{0}, specialised_count{0}, late_step_count{0}, fast_run_count{0};

  std::mutex mutex;                  // guards the lists of entries, not the entries
  std::list<EntryRef> main_entries;  // most recently used first
  std::unordered_map<BlockKey, EntryRef, BlockKeyHash> block_entries;
  std::list<BlockKey> block_order;  // oldest first
};

Executor::Executor(const OpRegistry& ops, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(ops, options)) {
  impl_->services.blocks = this;
}

Executor::~Executor() = default;

void Executor::set_server(ServerLoop* server) { impl_->services.server = server; }
void Executor::set_rpc(RpcClient* rpc) { impl_->services.rpc = rpc; }

Result<std::vector<Variable>> Executor::Run(const Program& program, Scope& scope, std::span<const Feed> feeds,
                                            std::span<const std::string> fetches) {
  const Running run(impl_->running, impl_->cancel);
  PENSTOCK_ASSIGN_OR_RETURN(const EntryRef entry, impl_->MainEntry(program, feeds, fetches));
  std::vector<Variable> out;
  PENSTOCK_RETURN_IF_ERROR(impl_->RunGuarded(*entry, scope, feeds, run.cancellation(), &out));
  return out;
}

Executor::Compiled Executor::FindCompiled(const Program& program, std::span<const Feed> feeds,
                                          std::span<const std::string> fetches) {
  return impl_->FindMain(program, feeds, fetches);
}

Result<Executor::Compiled> Executor::Compile(const Program& program, std::span<const Feed> feeds,
                                             std::span<const std::string> fetches) {
  const Running run(impl_->running, impl_->cancel);
  return impl_->CompileMain(program, feeds, fetches);
}

bool Executor::MayWait(const Entry& compiled) { return compiled.may_wait; }

Result<std::vector<Variable>> Executor::Run(const Compiled& compiled, Scope& scope,
                                            std::span<const Feed> feeds,
                                            const std::function<bool()>& interrupted) {
  const Running run(impl_->running, impl_->cancel, interrupted);
  std::vector<Variable> out;
  PENSTOCK_RETURN_IF_ERROR(impl_->RunGuarded(*compiled, scope, feeds, run.cancellation(), &out));
  return out;
}

Status Executor::RunBlock(const Program& program, int block, Scope& scope) {
  const Running run(impl_->running, impl_->cancel);
  PENSTOCK_ASSIGN_OR_RETURN(const EntryRef entry, impl_->BlockEntry(program, block, {}));
  return impl_->RunGuarded(*entry, scope, {}, run.cancellation(), nullptr);
}

class Executor::Prepared : public PreparedBlock {
 public:
  Prepared(Impl& impl, EntryRef entry) : impl_(impl), entry_(std::move(entry)) {}
  Status Run(Scope& scope) override {
    const Running run(impl_.running, impl_.cancel);
    // Checked here too, because the block may be empty and its loop must still stop.
    if (run.cancellation().requested()) return Cancelled("E-run-cancelled", "the run was cancelled");
    return impl_.RunGuarded(*entry_, scope, {}, run.cancellation(), nullptr, last_);
  }

 private:
  Impl& impl_;
  const EntryRef entry_;
  ScopeBinding last_;
};

Result<std::unique_ptr<PreparedBlock>> Executor::PrepareBlock(const Program& program, int block,
                                                              std::vector<std::string> keeps) {
  PENSTOCK_ASSIGN_OR_RETURN(EntryRef entry, impl_->BlockEntry(program, block, std::move(keeps)));
  return std::unique_ptr<PreparedBlock>(std::make_unique<Prepared>(*impl_, std::move(entry)));
}

void Executor::Cancel() {
  impl_->cancel.Cancel();
  if (impl_->running.load() == 0) return;
  if (impl_->services.rpc != nullptr) impl_->services.rpc->Cancel();
  if (impl_->services.server != nullptr) impl_->services.server->Cancel();
  if (impl_->services.rings != nullptr) impl_->services.rings->Cancel();
}

ExecutorStats Executor::stats() const {
  return {impl_->compiled_count.load(), impl_->specialised_count.load(), impl_->late_step_count.load(),
          impl_->fast_run_count.load()};
}

}  // namespace penstock::exec
