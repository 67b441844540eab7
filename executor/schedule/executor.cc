#include "executor/schedule/executor.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "executor/graph/compiled_block.h"
#include "executor/graph/first_place.h"
#include "executor/plan/plan.h"
#include "executor/schedule/frame_pool.h"
#include "executor/schedule/look_ahead.h"
#include "executor/schedule/nan_check.h"
#include "executor/schedule/peeked.h"
#include "executor/schedule/plan_cache.h"
#include "executor/schedule/running.h"
#include "executor/schedule/sequential.h"
#include "framework/base/environment.h"
#include "framework/roles/views.h"
#include "framework/runtime/collective_rings.h"
#include "framework/runtime/compute_pool.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/server_loop.h"
#include "framework/runtime/trainer_communicator.h"
#include "framework/text/round_trip.h"

namespace penstock::exec {

// A compiled block with its plans, and the frames of each place.
struct Executor::Entry {
  Entry(std::shared_ptr<const CompiledBlock> compiled, std::uint64_t id, bool checked, std::size_t kept_max,
        int places)
      : block(std::move(compiled)),
        content_id(id),
        checks_results(checked),
        may_wait(std::any_of(block->instructions.begin(), block->instructions.end(), OpMayWait)),
        lands(std::any_of(block->instructions.begin(), block->instructions.end(), OpLands)),
        ahead(*block),
        every_fetch(block->fetches.size()),
        plans(kept_max) {
    std::iota(every_fetch.begin(), every_fetch.end(), 0);
    fetches_later = places > 1 ? FetchesOfLaterPlaces(*block) : every_fetch;
    for (int place = 0; place < places; ++place) pools.push_back(std::make_unique<FramePool>(kept_max));
  }
  const std::shared_ptr<const CompiledBlock> block;
  const std::uint64_t content_id;
  // Made for runs that check the results of each op (nan_check.h): plans keep the ops apart.
  const bool checks_results;
  const bool may_wait;
  const bool lands;  // an op takes parameters from the trainer's communicator
  exec::LookAhead ahead;
  // The fetches as the caller gave them; if it gave none, the block's fetches come from the program.
  std::vector<std::string> fetches_asked;
  std::vector<int> every_fetch;    // positions of the fetches
  std::vector<int> fetches_later;  // positions of those that later places have too
  PlanCache plans;
  std::vector<std::unique_ptr<FramePool>> pools;  // by place: kernels use the services of their place

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
  bool checks_results = false;
  std::vector<std::string> keeps;
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};
struct BlockKeyHash {
  std::size_t operator()(const BlockKey& key) const {
    return static_cast<std::size_t>((key.content_id * 0x9E3779B97F4A7C15ull) ^
                                    static_cast<std::uint64_t>(key.block));
  }
};

bool LooksAheadBySetting() {
  const Result<std::string> setting = env::Choice("PENSTOCK_LOOKUPS_AHEAD");
  return !setting.ok() || *setting != "off";
}

bool SameFeeds(const Entry& entry, std::span<const Feed> feeds) {
  const std::vector<std::string>& names = entry.block->feed_names;
  return std::equal(names.begin(), names.end(), feeds.begin(), feeds.end(),
                    [](const std::string& name, const Feed& feed) { return name == feed.name; });
}

}  // namespace

// What a place has of its own: its services, and with them the blocks that its kernels run.
class Executor::Lane : public BlockRunner {
 public:
  Lane(Impl& impl, int at, const ExecutorOptions& options, CollectiveRings* rings) : place(at), impl_(impl) {
    services.threads = options.threads > 0 ? options.threads : omp_get_max_threads();
    services.rpc = options.rpc;
    services.server = options.server;
    services.rings = rings;
    services.blocks = this;
  }
  Status RunBlock(const Program& program, int block, Scope& scope) override;
  Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                      std::vector<std::string> keeps) override;
  PlaceKind kind() const { return place == 0 ? PlaceKind::kFirst : PlaceKind::kLater; }
  FramePool& PoolOf(Entry& entry) const { return *entry.pools[static_cast<std::size_t>(place)]; }

  const int place;
  Services services;

 private:
  Impl& impl_;
};

struct Executor::Impl {
  Impl(const OpRegistry& registry, const ExecutorOptions& given)
      : ops(registry), options(given), passes(given.passes.value_or(PlanOptionsBySetting())) {
    std::vector<CollectiveRings*> rings = given.places;
    if (rings.empty()) rings.push_back(given.rings);
    for (CollectiveRings* const of_place : rings)
      lanes.push_back(std::make_unique<Lane>(*this, static_cast<int>(lanes.size()), options, of_place));
  }
  Lane& first() const { return *lanes.front(); }

  // Kernels declare their pieces for the program that was attached last. Another program may have been since
  // this one was compiled.
  Status Attach(const CompiledBlock& block) const {
    RpcClient* const rpc = first().services.rpc;
    if (!block.effects.AreOutside() || rpc == nullptr) return OkStatus();
    return rpc->Attach(block.program);
  }

  // `checked`: for runs that check the results of each op.
  Result<EntryRef> Compile(const Program& program, CompileRequest request, bool checked) {
    std::vector<std::string> fetches = request.fetches;
    PENSTOCK_ASSIGN_OR_RETURN(const Program verified, Verified(program));
    PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledBlock> block,
                              CompileBlock(ops, verified, std::move(request)));
    PENSTOCK_RETURN_IF_ERROR(Attach(*block));
    compiled_count.fetch_add(1, std::memory_order_relaxed);
    auto entry = std::make_shared<Entry>(std::move(block), program.content_id(), checked,
                                         options.specialisations_max, static_cast<int>(lanes.size()));
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
      if (entry.checks_results != CheckNanInf()) continue;
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
    PENSTOCK_ASSIGN_OR_RETURN(EntryRef entry, Compile(program, std::move(request), CheckNanInf()));
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
    const BlockKey key = {program.content_id(), block, CheckNanInf(), std::move(keeps)};
    if (EntryRef found = FindBlock(key)) return found;
    PENSTOCK_ASSIGN_OR_RETURN(
        EntryRef entry,
        Compile(program,
                {.block = block, .use = BlockUse::kNested, .feeds = {}, .fetches = {}, .keeps = key.keeps},
                key.checks_results));
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
  Result<std::unique_ptr<Frame>> Take(Lane& lane, Entry& entry, Scope& scope, const Supplied& supplied,
                                      ScopeBinding& last) {
    FramePool& pool = lane.PoolOf(entry);
    if (auto frame = pool.TakeBound(scope, supplied)) {
      fast_run_count.fetch_add(1, std::memory_order_relaxed);
      return frame;
    }
    if (last.IsOf(scope)) {  // other scopes have used the frames since
      if (auto frame = pool.TakeAccepting(supplied, last)) {
        fast_run_count.fetch_add(1, std::memory_order_relaxed);
        frame->Bind(last);
        return frame;
      }
    }
    PENSTOCK_RETURN_IF_ERROR(CheckFeeds(*entry.block, supplied.feeds));
    PENSTOCK_ASSIGN_OR_RETURN(last, BindScope(*entry.block, scope));
    const ScopeBinding& binding = last;
    std::unique_ptr<Frame> frame = pool.TakeAccepting(supplied, binding);
    if (frame == nullptr) {
      auto made = MakeFrame(lane, entry, supplied, binding);
      if (!made.ok()) return ExplainByFeeds(made.status(), *entry.block, supplied.feeds);
      frame = *std::move(made);
      pool.Lend(*frame);
    }
    frame->Bind(binding);
    return frame;
  }

  // Makes a frame of the plan for these types, and the plan if there is none.
  Result<std::unique_ptr<Frame>> MakeFrame(Lane& lane, Entry& entry, const Supplied& supplied,
                                           const ScopeBinding& binding) {
    PENSTOCK_RETURN_IF_ERROR(Attach(*entry.block));
    PlanOptions of_plan = passes;
    of_plan.fusion = passes.fusion && !entry.checks_results;
    of_plan.receive_late = passes.receive_late && !entry.checks_results;
    const auto make = [&]() -> Result<Specialised> {
      PENSTOCK_ASSIGN_OR_RETURN(
          Specialised made,
          MakePlan(ops, entry.block, KnownTypes(*entry.block, supplied, binding), lane.services, of_plan));
      specialised_count.fetch_add(1, std::memory_order_relaxed);
      late_step_count.fetch_add(made.plan->steps_without_kernel, std::memory_order_relaxed);
      return made;
    };
    PENSTOCK_ASSIGN_OR_RETURN(PlanCache::Got got, entry.plans.Get(supplied, binding, make));
    if (!got.kernels.has_value()) {
      PENSTOCK_ASSIGN_OR_RETURN(got.kernels, PrepareKernels(*got.plan, lane.services, lane.kind()));
    } else if (lane.kind() == PlaceKind::kLater) {
      RemoveKernelsOfFirstPlace(*got.plan, *got.kernels);
    }
    frame_count.fetch_add(1, std::memory_order_relaxed);
    return std::make_unique<Frame>(std::move(got.plan), *std::move(got.kernels), lane.kind());
  }

  static std::vector<TensorDesc> KnownTypes(const CompiledBlock& block, const Supplied& supplied,
                                            const ScopeBinding& binding) {
    std::vector<TensorDesc> known;
    known.reserve(block.slots.size());
    for (const SlotInfo& slot : block.slots) known.push_back(DescOf(*slot.var));
    for (const int slot : block.key) {
      const auto s = static_cast<std::size_t>(slot);
      if (binding.variables[s] != nullptr) known[s] = DescOf(*binding.variables[s], *block.slots[s].var);
    }
    for (std::size_t i = 0; i < supplied.feeds.size(); ++i) {
      known[static_cast<std::size_t>(block.feeds[i])] = DescOf(supplied.feeds[i].tensor);
    }
    SetPeeked(block, supplied.peeked, known);
    return known;
  }

  Status RunEntry(Lane& lane, Entry& entry, Scope& scope, std::span<const Feed> feeds,
                  const Cancellation& cancellation, std::vector<Variable>* out, ScopeBinding& last) {
    const Services& services = lane.services;
    const TeamSize team(services.threads);
    const ComputeTeam loops(services.threads);
    if (entry.lands && services.rpc != nullptr && services.rpc->communicator() != nullptr) {
      PENSTOCK_RETURN_IF_ERROR(services.rpc->communicator()->BeginRun(scope));
    }
    OpTimer* const timer = options.timer != nullptr && options.timer->on() ? options.timer : nullptr;
    std::vector<TensorDesc> peeked;
    PENSTOCK_RETURN_IF_ERROR(PeekBatches(*entry.block, scope, timer, peeked));
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Frame> frame, Take(lane, entry, scope, {feeds, peeked}, last));
    // A run of another program may have left parameters on their way; plans that leave some await them
    // themselves.
    if (services.rpc != nullptr && !frame->specialisation().leaves_pulls)
      PENSTOCK_RETURN_IF_ERROR(services.rpc->CompleteLeft());
    frame->BeginRun(feeds);
    const Nanoseconds begin = timer == nullptr ? Nanoseconds{0} : timer->Now();
    Status status =
        Guarded(*entry.block, [&] { return RunSequential(*frame, scope, services, cancellation, timer); });
    if (timer != nullptr) timer->AddRun(entry.block->block, begin);
    // Collective operations in progress may use the frame's memory or a parameter's: ends them.
    if (!status.ok() && entry.block->effects.AreOutside() && services.rings != nullptr)
      services.rings->GiveUp(status);
    const bool first = lane.kind() == PlaceKind::kFirst;
    if (status.ok() && out != nullptr)
      status = Collect(*frame, first ? entry.every_fetch : entry.fetches_later, *out);
    frame->EndRun();
    // The next lookup would report an error.
    if (status.ok() && MayLookAhead(entry)) static_cast<void>(entry.ahead.AskReaders(*services.rpc, scope));
    // After a failed run the frame's state is unknown: drops it, and the next run makes a new one.
    if (status.ok()) lane.PoolOf(entry).Give(std::move(frame));
    return status;
  }

  // Of several places, each takes its turn at a reader.
  bool MayLookAhead(const Entry& entry) const {
    RpcClient* const rpc = first().services.rpc;
    return looks_ahead && !entry.ahead.empty() && lanes.size() == 1 && rpc != nullptr && rpc->LooksAhead();
  }

  static Status Collect(const Frame& frame, std::span<const int> fetched, std::vector<Variable>& out) {
    out.resize(frame.block().fetches.size());
    for (const int position : fetched) {
      PENSTOCK_ASSIGN_OR_RETURN(out[static_cast<std::size_t>(position)], frame.Fetch(position));
    }
    return OkStatus();
  }

  static Status NotEnoughMemory(const CompiledBlock& block) {
    return FailedPrecondition("E-run-memory", "block ", block.block, ": not enough memory for these shapes");
  }

  // Sizes depend on the user's feeds: too large a batch is an error of this run, not of the process.
  template <typename Call>
  static Status Guarded(const CompiledBlock& block, const Call& call) {
    try {
      return call();
    } catch (const std::bad_alloc&) {
      return NotEnoughMemory(block);
    } catch (const std::length_error&) {  // a vector larger than any memory
      return NotEnoughMemory(block);
    } catch (const std::system_error& error) {
      return FailedPrecondition("E-run-memory", "block ", block.block, ": ", error.what());
    }
  }

  Status RunGuarded(Lane& lane, Entry& entry, Scope& scope, std::span<const Feed> feeds,
                    const Cancellation& cancellation, std::vector<Variable>* out) {
    ScopeBinding none;
    return RunGuarded(lane, entry, scope, feeds, cancellation, out, none);
  }

  Status RunGuarded(Lane& lane, Entry& entry, Scope& scope, std::span<const Feed> feeds,
                    const Cancellation& cancellation, std::vector<Variable>* out, ScopeBinding& last) {
    return Guarded(*entry.block,
                   [&] { return RunEntry(lane, entry, scope, feeds, cancellation, out, last); });
  }

  const OpRegistry& ops;
  const ExecutorOptions options;
  const PlanOptions passes;
  const bool looks_ahead = LooksAheadBySetting();
  std::vector<std::unique_ptr<Lane>> lanes;  // by place; one if there is no other place
  CancellationSource cancel;
  std::atomic<int> running{0};
  std::atomic<std::int64_t> compiled_count{0}, specialised_count{0}, frame_count{0}, late_step_count{0},
      fast_run_count{0};

  std::mutex mutex;                  // guards the lists of entries, not the entries
  std::list<EntryRef> main_entries;  // most recently used first
  std::unordered_map<BlockKey, EntryRef, BlockKeyHash> block_entries;
  std::list<BlockKey> block_order;  // oldest first
};

Executor::Executor(const OpRegistry& ops, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(ops, options)) {}

Executor::~Executor() = default;

void Executor::set_server(ServerLoop* server) {
  for (const auto& lane : impl_->lanes) lane->services.server = server;
}
void Executor::set_rpc(RpcClient* rpc) {
  for (const auto& lane : impl_->lanes) lane->services.rpc = rpc;
}

Result<std::vector<Variable>> Executor::Run(const Program& program, Scope& scope, std::span<const Feed> feeds,
                                            std::span<const std::string> fetches) {
  const Running run(impl_->running, impl_->cancel);
  PENSTOCK_ASSIGN_OR_RETURN(const EntryRef entry, impl_->MainEntry(program, feeds, fetches));
  std::vector<Variable> out;
  PENSTOCK_RETURN_IF_ERROR(impl_->RunGuarded(impl_->first(), *entry, scope, feeds, run.cancellation(), &out));
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
  return RunAt(0, compiled, scope, feeds, interrupted);
}

Result<std::vector<Variable>> Executor::RunAt(int place, const Compiled& compiled, Scope& scope,
                                              std::span<const Feed> feeds,
                                              const std::function<bool()>& interrupted) {
  const Running run(impl_->running, impl_->cancel, interrupted);
  Lane& lane = *impl_->lanes[static_cast<std::size_t>(place)];
  std::vector<Variable> out;
  PENSTOCK_RETURN_IF_ERROR(impl_->RunGuarded(lane, *compiled, scope, feeds, run.cancellation(), &out));
  return out;
}

void Executor::LookAhead(const Program& program, std::span<const Feed> next,
                         std::span<const std::string> fetches) {
  const EntryRef entry = impl_->FindMain(program, next, fetches);
  if (entry == nullptr || !impl_->MayLookAhead(*entry)) return;
  const auto fed = [&](const std::string& name) {
    const auto found = std::ranges::find(next, name, &Feed::name);
    return found == next.end() ? nullptr : &found->tensor;
  };
  static_cast<void>(entry->ahead.Ask(*impl_->first().services.rpc, fed));
}

void Executor::ReplaceRings(const std::vector<CollectiveRings*>& places) {
  PENSTOCK_CHECK(places.size() == impl_->lanes.size(), "one for each place");
  for (std::size_t place = 0; place < places.size(); ++place)
    impl_->lanes[place]->services.rings = places[place];
  const std::lock_guard lock(impl_->mutex);
  const auto clear = [](Entry& entry) {
    for (const auto& pool : entry.pools) pool->Clear();
  };
  for (const EntryRef& entry : impl_->main_entries) clear(*entry);
  for (const auto& [key, entry] : impl_->block_entries) clear(*entry);
}

Status Executor::Lane::RunBlock(const Program& program, int block, Scope& scope) {
  const Running run(impl_.running, impl_.cancel);
  PENSTOCK_ASSIGN_OR_RETURN(const EntryRef entry, impl_.BlockEntry(program, block, {}));
  return impl_.RunGuarded(*this, *entry, scope, {}, run.cancellation(), nullptr);
}

Status Executor::RunBlock(const Program& program, int block, Scope& scope) {
  return impl_->first().RunBlock(program, block, scope);
}

class Executor::Prepared : public PreparedBlock {
 public:
  Prepared(Impl& impl, Lane& lane, EntryRef entry) : impl_(impl), lane_(lane), entry_(std::move(entry)) {}
  Status Run(Scope& scope) override {
    const Running run(impl_.running, impl_.cancel);
    // Checked here too, because the block may be empty and its loop must still stop.
    if (run.cancellation().requested()) return Cancelled("E-run-cancelled", "the run was cancelled");
    return impl_.RunGuarded(lane_, *entry_, scope, {}, run.cancellation(), nullptr, last_);
  }

 private:
  Impl& impl_;
  Lane& lane_;
  const EntryRef entry_;
  ScopeBinding last_;
};

Result<std::unique_ptr<PreparedBlock>> Executor::Lane::PrepareBlock(const Program& program, int block,
                                                                    std::vector<std::string> keeps) {
  PENSTOCK_ASSIGN_OR_RETURN(EntryRef entry, impl_.BlockEntry(program, block, std::move(keeps)));
  return std::unique_ptr<PreparedBlock>(std::make_unique<Prepared>(impl_, *this, std::move(entry)));
}

Result<std::unique_ptr<PreparedBlock>> Executor::PrepareBlock(const Program& program, int block,
                                                              std::vector<std::string> keeps) {
  return impl_->first().PrepareBlock(program, block, std::move(keeps));
}

void Executor::Cancel() {
  impl_->cancel.Cancel();
  if (impl_->running.load() == 0) return;
  const Services& services = impl_->first().services;
  if (services.rpc != nullptr) services.rpc->Cancel();
  if (services.server != nullptr) services.server->Cancel();
  for (const auto& lane : impl_->lanes) {
    if (lane->services.rings != nullptr) lane->services.rings->Cancel();
  }
}

ExecutorStats Executor::stats() const {
  return {impl_->compiled_count.load(), impl_->specialised_count.load(), impl_->frame_count.load(),
          impl_->late_step_count.load(), impl_->fast_run_count.load()};
}

}  // namespace penstock::exec
