// A key server's part in the checkpoints of its job (machine/key_cuts.h): collects the copies of a cut and
// writes them, and has what keys continue from.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto saves, KeyCheckpoints::Make(disk, options, {"10.0.0.1:6174", 2, &ops}));
//   PENSTOCK_ASSIGN_OR_RETURN(auto kept, saves->Take(body));     // when the key is declared
//   store.BeginKeyCut(at, saves->CopyFor(at));                   // on the chunk's queue
//   PENSTOCK_RETURN_IF_ERROR(saves->Write(10, saves->TakeCopies(places)));
//
// Not thread-safe, except that Write may run beside the others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/stop_request.h"
#include "executor/checkpoint/writer.h"
#include "executor/protocol/bodies.h"
#include "executor/pserver/checkpoint_options.h"
#include "executor/pserver/memory/chunk_store.h"
#include "framework/op/op_registry.h"

namespace penstock::pserver {

class KeyCheckpoints {
 public:
  // What a checkpoint needs of the server.
  struct Server {
    std::string address;
    int workers = 1;
    const OpRegistry* ops = nullptr;  // of optimizers that are programs
  };
  // kUnimplemented E-kv-checkpoint: without an interval; kInvalidArgument E-checkpoint-servers;
  // kFailedPrecondition E-checkpoint-exists, E-checkpoint-differs; kDataLoss E-checkpoint-whole, -damaged.
  static Result<std::unique_ptr<KeyCheckpoints>> Make(Disk& disk, CheckpointOptions options, Server server);

  // The name of the checkpoint with which this start of the job began.
  std::uint64_t first_step() const { return options_.resume.value_or(0); }
  std::uint64_t every() const { return options_.every; }
  std::string FolderOf(std::uint64_t step) const { return checkpoint::StepFolder(options_.folder, step); }
  checkpoint::StopRequest& stop() { return stop_; }

  struct Kept {
    checkpoint::KeyEntry entry;
    std::vector<KeyCopy> chunks;
  };
  // What the checkpoint has of a key; once. kFailedPrecondition E-checkpoint-differs: of another type.
  Result<std::optional<Kept>> Take(const protocol::KeyBody& key);
  // Whether it has the key as one that lay in pieces before.
  bool HasMoved(const std::string& name) const { return kept_.contains({name, true}); }

  std::shared_ptr<KeyCopy> CopyFor(ChunkId at);
  // A key's place in the server.
  struct Place {
    protocol::KeyBody body;
    Dim chunk_rows = 0;
  };
  struct Part {
    checkpoint::Manifest head;
    std::vector<checkpoint::Value> values;
  };
  // The copies of these params as values of a part; none are left.
  Part TakeCopies(const std::map<int, Place>& params);
  // E-file-write.
  Status Write(std::uint64_t step, Part part);

 private:
  KeyCheckpoints(Disk& disk, CheckpointOptions options, Server server, int number)
      : disk_(disk),
        options_(std::move(options)),
        server_(std::move(server)),
        number_(number),
        writer_(disk, {.folder = options_.folder, .keep = options_.keep}),
        stop_(disk, options_.folder, options_.run, number, static_cast<int>(options_.servers.size())) {}
  Status Restore();
  Status RestoreKeys(const std::string& folder, const checkpoint::Manifest& part);
  Status Differs(const std::string& how) const;

  Disk& disk_;
  const CheckpointOptions options_;
  const Server server_;
  const int number_;
  checkpoint::Writer writer_;
  checkpoint::StopRequest stop_;
  std::map<std::pair<std::string, bool>, Kept> kept_;  // by name, and whether it has moved
  std::map<ChunkId, std::shared_ptr<KeyCopy>> copies_;
};

}  // namespace penstock::pserver
