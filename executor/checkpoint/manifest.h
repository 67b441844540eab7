// What a part of a checkpoint contains: each pserver of a job writes one part for each step that is saved, a
// file of values and a manifest that describes them.
//
//   {"format": 1, "step": 5, "server": 0, "servers": 2, "trainers": 2, "run": "job7.0", "plan": "5f3a91c2..",
//    "bytes": 4312,
//    "values": [{"name": "w.block0", "kind": "param", "of": "w", "whole": "w", "row_begin": 0,
//                "type": "f32[7, 13]", "offset": 0, "bytes": 395, "crc32c": 3405691582}, ...],
//    "crc32c": 123456}
//
// The values are records of tensor/serialize.h, one after the other, from offset 0 to `bytes`.
//
// Rows of a table are saved incrementally: all of them at one step, and at later steps those that have
// changed since the step before. Then the value lists its records, and `files` the files in which they are:
//
//   "files": [{"name": "part-0-of-2.rows-5", "bytes": 9000}, {"name": "part-0-of-2.rows-10", "bytes": 700}]
//   {"name": "t", "kind": "param", "of": "t", "rows": true, "type": "f32[120, 16]",
//    "records": [{"file": "part-0-of-2.rows-5", "offset": 0, "bytes": 8000, "crc32c": 1234},
//                {"file": "part-0-of-2.rows-10", "offset": 0, "bytes": 700, "crc32c": 5678},
//                {"file": "part-0-of-2.rows-10", "offset": 700, "bytes": 80, "crc32c": 9012, "gone": true}]}
//
// A step's records have its rows in portions, in any order, each id once. A record with "gone" is a tensor
// of the ids that no longer have a row; a row of the same step goes before it. The files of earlier steps are
// hard links, so each step's folder has all that it needs.
//
// In asynchronous training `step` is a name that servers have in common, and each part says which steps it
// has of each trainer, and which of these the learning-rate schedule has counted:
//
//   "step": 10, "trainers": 2, "steps_in": [12, 10], "counted": [[0, 12], [0, 10]]
//
// A server of keys says which keys it has, each after so many rounds, and what updates them:
//
//   "step": 10, "optimizers": ["sgd {momentum=0.9, ...}"],
//   "keys": [{"name": "w", "type": "f32[91]", "begin": 0, "rows": false, "whole": true, "moved": false,
//             "rounds": 10, "optimizer": 0, "since": 10}]
//
// In geo-SGD such a step is an exchange. The parts of servers have "with_trainers": true, because each
// trainer writes a part of its own, too ("server" and "servers" are then its number and how many there are):
//
//   "step": 10, "server": 1, "servers": 2, "trainers": 2, "exchanges": 11, "local_steps": 1100
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock::checkpoint {

enum class ValueKind {
  kParam,     // a parameter, or the rows of it that this server holds
  kState,     // what its updates keep, such as moments
  kConstant,  // what its updates only read, such as a learning rate
  kSchedule,  // what the learning-rate schedule keeps
  kHistory,   // updates of a table that some of its rows still miss: its values are not current without them
  kPolicy,    // what the policy of a table's rows keeps, also of rows that have not entered
};

// A part of a file in the step's folder.
struct Record {
  std::string file;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc32c = 0;
  bool gone = false;  // ids of rows that are gone, not rows
};

struct ValueEntry {
  std::string name;  // the server's variable
  ValueKind kind = ValueKind::kParam;
  std::string of;     // the whole parameter to which it belongs; empty: kSchedule, or not recorded
  std::string whole;  // the whole variable of which it has some rows; empty: not recorded, or it is the whole
  std::optional<Dim> row_begin;  // its first row in that variable; nullopt: not recorded
  bool rows = false;             // selected rows, with their ids: a table sharded by id
  std::string type;              // "f32[7, 13]"
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc32c = 0;  // of these bytes
  // Instead of these three: all rows, then, step by step, those that have changed.
  std::vector<Record> records = {};
};

// A key of a key-value store, or this server's piece of it. Its value is a kParam of the same name, chunk by
// chunk; its states are the kState `of` it.
struct KeyEntry {
  std::string name;
  std::string type;                                 // of the piece
  Dim begin = 0;                                    // of the piece in the key
  bool rows = false, whole = false, moved = false;  // as in protocol::KeyBody
  std::uint64_t rounds = 0;                         // updates
  std::int64_t optimizer = -1;                      // in Manifest::optimizers; -1: none
  std::uint64_t since = 0;                          // updates by it
};

struct RowsFile {
  std::string name;
  std::uint64_t bytes = 0;
};

struct Manifest {
  std::uint64_t step = 0;       // the number of complete steps
  int server = 0, servers = 1;  // the number of the server that wrote it, of so many
  int trainers = 1;
  std::string run;            // the start of the job that wrote it; equal in all parts of a checkpoint
  std::uint64_t plan = 0;     // plan::Fingerprint; 0: not recorded
  std::uint64_t last_ms = 0;  // how long this server took for its part before this one; 0: there was none
  std::uint64_t bytes = 0;    // of the file of values
  // Of asynchronous training, where trainers have no common step, by trainer: the number of its steps that
  // are in the values; the number of those with which this start of the job began; how many more this server
  // had then; and those that the learning-rate schedule has counted, as ranges: begin, end, begin, end ...
  // Empty: `step`; 0; 0; none.
  std::vector<std::uint64_t> steps_in = {}, began_at = {}, ahead = {};
  std::vector<std::vector<std::uint64_t>> counted = {};
  // Of geo-SGD: the checkpoint has a part of each trainer, too. This is such a part: the trainer's exchanges
  // and its own steps that are in the values.
  struct Own {
    std::uint64_t exchanges = 0, steps = 0;
  };
  bool with_trainers = false;
  std::optional<Own> of_trainer = {};
  std::vector<RowsFile> files = {};  // beside that file, by step
  // Of a server of keys, which may have none; nullopt: it has a program.
  std::optional<std::vector<KeyEntry>> keys = {};
  std::vector<std::string> optimizers = {};  // as text (kvstore::KeyOptimizer)
  std::vector<ValueEntry> values;

  std::uint64_t all_bytes() const;  // with these files
};

std::string WriteManifest(const Manifest& manifest);
// kDataLoss E-checkpoint-manifest: these bytes are no manifest, or were changed after they were written.
Result<Manifest> ReadManifest(std::string_view text);

std::string_view KindName(ValueKind kind);

}  // namespace penstock::checkpoint
