// Runs programs on this machine.
//
//   Executor executor(AllOps(), {.threads = 2});
//   Scope scope;
//   PENSTOCK_ASSIGN_OR_RETURN(auto none, executor.Run(startup, scope, {}, {}));
//   const std::vector<Feed> feeds = {{"x", x}, {"y", y}};
//   const std::vector<std::string> fetches = {"mean_0.tmp_0"};
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<Variable> out, executor.Run(main, scope, feeds, fetches));
//   float loss = out[0].As<Tensor>().Data<float>()[0];
//
// A program is compiled at its first run with given feed and fetch names, and specialised at its first run
// with given shapes; both results are kept. A later step looks nothing up and allocates only its results.
//
// Several places of a process run one program at the same time, each with a frame of its own, rings of its
// own and its part of a batch; the compiled block and the plan are shared:
//
//   Executor executor(AllOps(), {.threads = 1, .places = {rings[0], rings[1]}});
//   PENSTOCK_ASSIGN_OR_RETURN(const Executor::Compiled compiled, executor.Compile(main, feeds, fetches));
//   ... thread 0: executor.RunAt(0, compiled, scope, feeds_of_first)
//   ... thread 1: executor.RunAt(1, compiled, scope_of_second, feeds_of_second)
//
// Thread-safe: several threads may run programs and blocks at once if no two of them write the same variables
// and only one runs communication ops. Threads that deliberately train the same parameters (Hogwild) may lose
// each other's updates, but nothing else goes wrong as long as tensors keep their shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/plan/plan.h"
#include "executor/schedule/frame.h"
#include "executor/schedule/op_timer.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/block_runner.h"
#include "framework/runtime/services.h"

namespace penstock::exec {

struct ExecutorOptions {
  // Changes results: reductions are split by threads.
  int threads = 0;  // in the compute team; 0: OMP_NUM_THREADS, else all cores
  // Change results within the bounds of the ops; absent: as PENSTOCK_LAYOUTS says.
  std::optional<PlanOptions> passes = std::nullopt;
  // Serves communication ops; null: such ops return an error.
  RpcClient* rpc = nullptr;
  ServerLoop* server = nullptr;
  CollectiveRings* rings = nullptr;
  // In place of `rings`: the rings of each of several places of this process. `threads` is that of each.
  std::vector<CollectiveRings*> places = {};
  // Gets the durations of ops while it is on; may be switched at any time. May be null.
  OpTimer* timer = nullptr;
  // Change only speed.
  std::size_t programs_max = 64;  // compiled forms kept for Run, one per program, feeds and fetches
  std::size_t blocks_max = std::size_t{1} << 16;  // compiled blocks kept for RunBlock
  std::size_t specialisations_max = 16;           // plans kept per compiled form, and idle frames per place
};

struct ExecutorStats {
  std::int64_t compiled_count = 0;
  std::int64_t specialised_count = 0;  // plans made
  std::int64_t frame_count = 0;        // frames made; several may share a plan
  std::int64_t late_step_count = 0;    // steps without a kernel, of all specialisations
  std::int64_t fast_run_count = 0;     // runs that looked up no variable
};

class Executor : public BlockRunner {
 public:
  explicit Executor(const OpRegistry& ops, const ExecutorOptions& options = {});
  ~Executor() override;

  // For services that need this executor before they can be constructed. Call before the first run of a
  // program that uses them.
  void set_server(ServerLoop* server);
  void set_rpc(RpcClient* rpc);

  // Runs block 0 and returns the values of `fetches`, in their order. Without fetches, a saved inference
  // model returns what its own fetch ops name.
  //
  //   scope    holds the persistable variables; missing ones are created in its outermost ancestor
  //   feeds    each names a declared variable of that element type and a compatible shape; read only, and
  //            released at the end
  //   result   a temporary is returned without a copy; a variable of the scope or a fed tensor, as a copy
  //
  // Blocks until done. kInvalidArgument: program, feeds or fetches are wrong (see CompileBlock, CheckFeeds,
  // shape inference). kFailedPrecondition: E-run-uninitialized, E-run-memory. kUnimplemented:
  // E-kernel-missing. kCancelled. Errors of kernels. After an error, variables of the scope hold what the
  // preceding ops wrote.
  Result<std::vector<Variable>> Run(const Program& program, Scope& scope, std::span<const Feed> feeds,
                                    std::span<const std::string> fetches);

  // The same in two steps, for callers that run one program many times: FindCompiled does not copy the
  // program, and MayWait tells whether a run can block.
  struct Entry;
  using Compiled = std::shared_ptr<Entry>;
  // Null if the program was not compiled for these feeds and fetches yet.
  Compiled FindCompiled(const Program& program, std::span<const Feed> feeds,
                        std::span<const std::string> fetches);
  Result<Compiled> Compile(const Program& program, std::span<const Feed> feeds,
                           std::span<const std::string> fetches);
  // Whether an op may wait for a peer, a reader, a Python function or a block of its own: do not run it on a
  // thread that has other duties.
  static bool MayWait(const Entry& compiled);
  // `compiled` must belong to these feeds. `interrupted`, if given, is polled before each op of the block;
  // once it returns true, the run returns kCancelled.
  Result<std::vector<Variable>> Run(const Compiled& compiled, Scope& scope, std::span<const Feed> feeds,
                                    const std::function<bool()>& interrupted = {});

  // Run at one of several places; Run runs at the first. The runs of several places may wait for each other:
  // each needs its own thread. A place other than the first leaves out the ops that only the first one runs
  // (roles::IsOfFirstPlace), and returns empty variables for fetches that only these write.
  Result<std::vector<Variable>> RunAt(int place, const Compiled& compiled, Scope& scope,
                                      std::span<const Feed> feeds,
                                      const std::function<bool()>& interrupted = {});
  // Asks the parameter servers for the rows that a run with these feeds will look up, if the program has been
  // run with such feeds and fetches: call it after a run, with the feeds of the next. Changes no result.
  void LookAhead(const Program& program, std::span<const Feed> next, std::span<const std::string> fetches);

  // Gives each place other rings, for instance after an error has ended the rings. Frames are made anew;
  // compiled blocks and plans stay. No run may be in progress.
  void ReplaceRings(const std::vector<CollectiveRings*>& places);

  // Runs a block of a program for its owner. Variables that the block itself declares are temporaries. All
  // others are those of `scope` and its parents, with their shapes there (a view of some rows of a parameter
  // is allowed); missing ones that the block writes are created in `scope`. Later calls are fast, even with
  // other scopes of the same shapes.
  Status RunBlock(const Program& program, int block, Scope& scope) override;
  Result<std::unique_ptr<PreparedBlock>> PrepareBlock(const Program& program, int block,
                                                      std::vector<std::string> keeps) override;

  // Makes the runs in progress return kCancelled at their next op, or from a wait for a peer. From any
  // thread.
  void Cancel();

  ExecutorStats stats() const;

 private:
  struct Impl;
  class Lane;
  class Prepared;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::exec
