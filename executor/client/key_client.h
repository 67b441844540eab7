// A worker's keys on pservers: pushes and pulls of arrays without a program. A key lies whole on one server,
// found by its name, or in pieces on all of them.
//
//   KeyClient keys(session, wait, {.servers = servers, .rank = 0, .workers = 2});
//   PENSTOCK_RETURN_IF_ERROR(keys.Attach());
//   PENSTOCK_ASSIGN_OR_RETURN(const int w, keys.Declare({.name = "w", .shape = {3}}, value));
//   PENSTOCK_RETURN_IF_ERROR(keys.Barrier());
//   keys.Push(w, gradient);                              // copied
//   const KeyClient::Ticket pulled = keys.Pull(w, out).value();
//   PENSTOCK_RETURN_IF_ERROR(keys.WaitFor(pulled));      // `out` has the value after the round
//
// The calls of a worker for a key take effect in their order. Synchronous: the n-th pushes of all workers
// make update n, and a pull after n pushes gets the value after update n. Otherwise each push is an update by
// itself. An error of one call (E-kv-...) does not end the job; other errors end it, and every call then
// returns it.
//
// Thread-safe. Calls do not block, except Barrier, SetOptimizer, Complete, WaitFor, and the first use of a
// key before a barrier.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "executor/client/session.h"
#include "framework/text/compression.h"

namespace penstock::client {

struct KeyClientOptions {
  std::vector<std::string> servers;  // addresses, in the same order in each worker
  int rank = 0;
  int workers = 1;
  bool sync = true;
  // Dense keys and tables with at least so many elements lie in pieces on all servers. Equal in all workers.
  std::int64_t bound = 1'000'000;
};

struct KeyType {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape = {};   // of a table: rows, then the extents of a row
  bool rows = false;  // pushed by rows
  // Of a table of any ids: kvstore::TableSpec as text; the shape is [1, width]. Empty: it is no such table.
  std::string table = {};
};

class RowsOfPiece;  // key_work.h

class KeyClient {
 public:
  // `wait` returns once the condition is true, or the session has failed, with its status. The session must
  // outlive the client.
  using Wait = std::function<Status(const std::function<bool()>&)>;
  KeyClient(Session& session, Wait wait, KeyClientOptions options);

  // kInvalidArgument E-kv-rank, E-kv-servers.
  Status Attach();
  // Whether all servers have answered the declaration, and waits for that.
  bool IsReady(int key) const;
  Status WaitUntilReady(int key) { return Ready(key).status(); }
  // `value`: of rank 0, copied; the others' is ignored. kInvalidArgument E-kv-key-type, E-kv-twice,
  // E-kv-array.
  // Errors of servers (E-kv-differs, E-kv-memory, E-kv-optimizer-...) come with the next use of the key, or
  // Barrier.
  Result<int> Declare(const KeyType& type, const Tensor& value);
  // A table of any ids (executor/kvstore/table_spec.h), which has its values at once: PushRows and PullRows
  // take any id. Each server has the rows of some ids, and a push goes to all of them.
  Result<int> DeclareTable(const std::string& name, DType dtype, Dim width, const std::string& spec);

  struct Work;
  using Ticket = std::shared_ptr<Work>;
  // kInvalidArgument E-kv-array: another type or shape, or rows for a dense key. `priority`: of what waits to
  // be sent, higher ones go first.
  Result<Ticket> Push(int key, const Tensor& value, int priority = 0);
  // Rows in any order; repeated ones are added. kInvalidArgument E-kv-row: no such row.
  Result<Ticket> PushRows(int key, std::span<const std::int64_t> rows, const Tensor& values,
                          int priority = 0);
  // `out`: the key's type and shape; its memory is filled.
  Result<Ticket> Pull(int key, const Tensor& out);
  // Several at once, in order: what is small travels in one message for each server. An error concerns all.
  struct Given {
    int key = 0;
    Tensor value;
  };
  Result<Ticket> PushAll(std::span<const Given> values, int priority = 0);
  Result<Ticket> PullAll(std::span<const Given> outs);
  Result<Ticket> PullRows(int key, std::span<const std::int64_t> rows, const Tensor& out);
  bool Done(const Ticket& ticket);
  Status WaitFor(const Ticket& ticket);
  Status WaitForAll();

  // As protocol::SetOptimizer. All workers call it, in the same order. One that needs whole keys moves those
  // that lie in pieces to one server each: then it also waits for all workers, and for what they have begun.
  Status SetOptimizer(const std::string& text, bool keeps_state);
  // Dense f32 pushes from now on are sent as -threshold, 0 or +threshold; the rest is kept and added to the
  // next push (spec: MXNet's 2bit). kInvalidArgument E-kv-threshold.
  // kUnimplemented E-kv-checkpoint: servers make checkpoints.
  Status SetCompression(float threshold);
  // All workers have come here, and all keys that this worker has declared have their values.
  Status Barrier();
  // Whether a push of these keys is behind the cut of a checkpoint that servers do not have yet; PassCut
  // waits until they have it. Push does so itself.
  bool IsAtCut(std::span<const int> keys) const;
  Status PassCut(std::span<const int> keys);
  // How many other workers are gone without having completed, as a server knows; and how many servers are
  // out of reach.
  Result<std::uint64_t> GoneWorkers();
  std::uint64_t LostServers() const;
  // The pushes of the key by this worker, with those of its last process that servers have.
  Result<std::uint64_t> Rounds(int key);
  // This worker has ended in order. Everything before is taken first.
  Status Complete();

 private:
  struct Piece {
    Link* link = nullptr;
    KeySlots slots;
    Dim begin = 0, end = 0;  // elements of the key; of a table, rows
  };
  struct Key {
    KeyType type;
    DType stored = DType::kFp32;  // f16 is kept as f32
    std::vector<Piece> pieces;
    bool whole = false;  // one chunk on one server
    bool moved = false;  // it lay in pieces before
    Tensor value;        // of rank 0, until it is sent
    bool ready = false;  // all servers have answered
    Status status;
    std::uint64_t pushes = 0;   // the step of the next push
    std::uint64_t since = 0;    // pushes since the optimizer was set
    std::uint64_t resumed = 0;  // the same, of the checkpoint with which it began
    Tensor residual;            // of compression
    std::deque<Ticket> pulls;   // in flight, in their order
  };

  Result<Key*> Ready(int key);
  int Add(Key key);
  static RowsOfPiece RowsIn(const Key& key, std::size_t piece, std::span<const std::int64_t> rows);
  bool IsDeclared(const Key& key) const;
  void Settle(Key& key);
  std::vector<Piece> PlacesOf(const KeyType& type) const;
  void DeclarePieces(Key& key);
  void Move(Key& key, Tensor value);
  Status MakeWhole();
  Result<Tensor> PullStored(int key);
  Status TrySetOptimizer(const std::string& text, bool keeps_state);
  Status CheckValue(const Key& key, const Tensor& value, const char* what) const;
  Status CheckRows(const Key& key, std::span<const std::int64_t> rows, const Tensor& values) const;
  // The call's own copy, in the type and the shape in which it is stored. A small one lies in `memory`, if
  // that is not null, from `at` on, which it moves.
  Tensor Stored(const Key& key, const Tensor& value, const std::shared_ptr<Buffer>& memory,
                std::size_t& at) const;
  Tensor Stored(const Key& key, const Tensor& value) const {
    std::size_t at = 0;
    return Stored(key, value, nullptr, at);
  }
  bool IsCompressed(const Key& key) const {
    return !compression_.none() && key.type.dtype == DType::kFp32 && !key.type.rows;
  }
  Status CheckCompressible(Key& key, const Tensor& gradient) const;
  Bytes Compressed(const Key& key, const Piece& piece, const Tensor& part) const;
  std::uint64_t CountPush(Key& key);
  // key_cuts.cc
  void NoteCheckpoint(Key& key);
  void BeginCounts();
  bool IsDue(const Key& key) const;
  Status CutHere(bool last);
  Status LastCut();
  Ticket StartPush(int index, const Tensor& gradient, int priority);
  Ticket BeginPull(int index, const Tensor& out);
  Result<Ticket> Together(std::span<const Given> items, const std::function<Ticket(std::size_t)>& begin);
  Status StartPull(Key& key, Work& work);
  void AdvancePulls(Key& key);
  void AdvancePull(Key& key, Work& work);
  bool LookAt(Work& work);
  bool LookAtAll(Work& work);
  void Finish(Work& work, Status status = {});
  Ticket Remember(Ticket ticket);

  Session& session_;
  const Wait wait_;
  const KeyClientOptions options_;
  mutable std::mutex mutex_;  // guards what follows; taken before the session's and the links'
  std::vector<Link*> links_;
  std::deque<Key> keys_;                   // never moved
  std::unordered_set<std::string> names_;  // of keys_
  std::vector<Ticket> open_;
  std::size_t sweep_at_ = 64;  // the number of open tickets at which those that are done are dropped
  Compression compression_;
  std::uint64_t largest_ = 0;
  std::uint64_t optimizers_ = 0, barriers_ = 0;
  std::uint64_t resets_ = 0;                  // calls of SetOptimizer that begin states anew
  std::atomic<std::uint64_t> cut_every_ = 0;  // as Link's
  std::uint64_t most_ = 0;                    // pushes of any key
  std::uint64_t cut_ = 0;                     // the last cut that was announced to servers
  std::uint64_t cut_taken_ = 0;               // the last that all of them have
};

}  // namespace penstock::client
