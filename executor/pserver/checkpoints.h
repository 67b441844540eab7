// A server's part in the checkpoints of its job: collects the copies of a step and writes them, and restores
// what the server holds before it begins, from whichever parts have it.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto checkpoints, Checkpoints::Make(disk, options, facts, program, 0));
//   PENSTOCK_ASSIGN_OR_RETURN(const std::set<std::string> restored, checkpoints->Restore(scope));
//   store.CopyState(0, 2, *checkpoints->CopyFor(0, store));    // on the chunk's queue
//   checkpoints->WriteRows(5, 1, store.CopyForCheckpoint(1, 0).rows);
//   PENSTOCK_RETURN_IF_ERROR(checkpoints->Write(5, checkpoints->Take()));
//
// Not thread-safe, except that WriteRows and Write, one at a time, may run beside the others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/checkpoint/cut_request.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/own_part.h"
#include "executor/checkpoint/reader.h"
#include "executor/checkpoint/stop_request.h"
#include "executor/checkpoint/writer.h"
#include "executor/pserver/checkpoint_options.h"
#include "executor/pserver/memory/chunk_store.h"
#include "framework/ir/program.h"
#include "framework/roles/pserver_facts.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/disk.h"
#include "framework/tensor/scope.h"

namespace penstock::pserver {

class Checkpoints {
 public:
  // kUnimplemented E-checkpoint-mode: servers may use different gradients for a step, trainers keep
  // parameters alone, geo-SGD has no interval, or the server keeps what trainers have read. kInvalidArgument
  // E-checkpoint-servers: the server's address is not in `servers`. kFailedPrecondition E-checkpoint-exists:
  // the job is new, and the folder has checkpoints.
  static Result<std::unique_ptr<Checkpoints>> Make(Disk& disk, CheckpointOptions options,
                                                   const roles::PserverFacts& facts, const Program& program,
                                                   int backup_trainers);

  // The complete steps of the job before this start of it. A server that was started again by itself has
  // more: those of its last own part.
  std::uint64_t first_step() const { return options_.resume.value_or(0); }
  std::uint64_t restored_step() const { return std::max(restored_step_, first_step()); }
  std::uint64_t every() const { return options_.every; }
  // Trainers have no common step: a part says which of each trainer's steps it has. `starts` is known after
  // Restore, and first_step_of is what a trainer has complete on all servers.
  bool by_trainer() const { return facts_.mode != roles::ServeMode::kSync; }
  // Trainers write parts of their own, too.
  bool is_geo() const { return facts_.mode == roles::ServeMode::kGeo; }
  const std::vector<MachineConfig::Start>& starts() const { return starts_; }
  std::uint64_t first_step_of(int trainer) const {
    return by_trainer() ? starts_[static_cast<std::size_t>(trainer)].first_step : first_step();
  }

  // Puts the checkpoint's values into the variables of the scope, in which the startup program has run, but
  // those of held params only in Complete; returns the names of all. The checkpoint may be of another number
  // of servers, with other slices. kFailedPrecondition E-checkpoint-differs: it was made by other programs.
  // kDataLoss E-checkpoint-whole, E-checkpoint-damaged, E-checkpoint-rows.
  Result<std::set<std::string>> Restore(Scope& scope);
  // Once the store is made: checks that all it keeps was restored, and continues the policies of its tables'
  // rows. E-checkpoint-differs.
  Status Complete(Scope& scope, ChunkStore& store);

  // The copy of a param that is not a table, to be filled by ChunkStore::CopyState.
  std::shared_ptr<StateCopy> CopyFor(int param, const ChunkStore& store);
  // Whether the copies of tables may have only what has changed since the last ones.
  bool TakesChanges() const { return writer_.TakesChanges(); }
  void PutShared(NamedTensors tensors) { shared_ = std::move(tensors); }
  // The copies as values of a part; none are left.
  std::vector<checkpoint::Value> Take();
  // Writes rows of a table ahead of Write, which returns the error, if there is one. One call at a time.
  void WriteRows(std::uint64_t step, int param, TableCopy rows);
  // E-file-write, or the error of a copy.
  Status Write(const WriteCutAction& write, const std::vector<checkpoint::Value>& values);
  Status Write(std::uint64_t step, const std::vector<checkpoint::Value>& values) {
    return Write(WriteCutAction{.step = step}, values);
  }
  // By which the launcher asks the job to stop.
  checkpoint::StopRequest& stop() { return stop_; }
  // By which the servers agree on the next one, if there is no interval.
  checkpoint::CutRequest& cut() { return cut_; }
  bool is_first() const { return server_ == 0; }
  // How long the last one took here, from the first copy to its end; it is in the next part.
  void TookMilliseconds(std::uint64_t took) { took_ms_ = took; }
  // Of the newest whole one: its step, and the longest of such times.
  struct Newest {
    std::uint64_t step = 0, took_ms = 0;
  };
  std::optional<Newest> FindNewest() const;
  std::string FolderOf(std::uint64_t step) const { return checkpoint::StepFolder(options_.folder, step); }

 private:
  // Which rows of which whole variable a variable of the program has.
  struct Place {
    std::string whole;
    std::optional<Dim> row_begin;   // nullopt: not recorded
    std::optional<Dim> whole_rows;  // nullopt: it is the whole, or not recorded
  };
  Checkpoints(Disk& disk, CheckpointOptions options, const roles::PserverFacts& facts, int server)
      : disk_(disk),
        options_(std::move(options)),
        facts_(facts),
        server_(server),
        writer_(disk, {.folder = options_.folder, .keep = options_.keep}),
        stop_(disk, options_.folder, options_.run, server, static_cast<int>(options_.servers.size())),
        cut_(disk, options_.folder, options_.run, server, static_cast<int>(options_.servers.size())) {}
  void NotePlaces(const Program& program);
  Result<std::optional<checkpoint::Found>> Find();
  Status FindStarts(const checkpoint::Found& found);
  bool HasOwnSlices(const checkpoint::Manifest& part) const;
  // Whether the checkpoint had the variable.
  Result<bool> RestoreOne(const checkpoint::Reader& reader, const std::string& name,
                          Variable& variable) const;
  Result<bool> RestoreTable(const checkpoint::Reader& reader, const std::string& name,
                            SelectedRows& rows) const;
  Result<SelectedRows> ReadOwnRows(const checkpoint::Reader& reader, const std::string& name) const;
  // What the checkpoint has of tables here beside the program's variables, for the ChunkStore.
  Status RestoreHistories(const checkpoint::Reader& reader, Scope& scope);
  Result<Tensor> ReadHistory(const checkpoint::Reader& reader, const std::string& name) const;
  Status ReadLife(const checkpoint::Reader& reader, const roles::ServedParam& table);
  Status ContinueLives(ChunkStore& store);
  Status CheckNoneIsLeft(const checkpoint::Reader& reader) const;
  Status Differs(const std::string& how) const;
  checkpoint::Value ValueOf(const std::string& name, checkpoint::ValueKind kind, std::string of,
                            const Tensor& tensor) const;
  checkpoint::Value RowsOf(const std::string& name, checkpoint::ValueKind kind, const std::string& of,
                           SelectedRows rows) const;
  std::vector<checkpoint::Value> ValuesOf(const roles::ServedParam& served, TableCopy copy) const;
  checkpoint::Manifest HeadOf(const WriteCutAction& write) const;

  Disk& disk_;
  const CheckpointOptions options_;
  const roles::PserverFacts facts_;
  const int server_;
  checkpoint::Writer writer_;
  checkpoint::StopRequest stop_;
  checkpoint::CutRequest cut_;
  std::atomic<std::uint64_t> took_ms_ = 0;
  std::map<std::string, Place> places_;  // of the program's persistable variables
  std::set<std::string> restored_;       // variables
  // Until Complete.
  NamedTensors held_;
  std::map<std::string, table::LifeCopy> lives_;  // by table
  std::uint64_t restored_step_ = 0;
  std::vector<MachineConfig::Start> starts_;  // by trainer; by_trainer()
  bool restarted_ = false;  // this server alone was started again, and has a part of its own
  int own_part_ = -1;  // of the checkpoint: the part that this server wrote, if the job has as many as then
  // Copies of the step that is being saved, by param.
  std::map<int, std::shared_ptr<StateCopy>> copies_;
  Status copied_;  // of rows of tables
  NamedTensors shared_;
};

}  // namespace penstock::pserver
