// Writes and reads the bodies of control messages. Each Read checks every size against the remaining bytes
// before it allocates, and rejects trailing bytes (kDataLoss E-rpc-body).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::protocol {

struct HelloBody {
  std::string job;
  std::uint32_t trainers = 0;  // number of trainers according to this trainer's environment; 0: unknown
  std::string contract;        // Contract::ToText
  std::string job_facts;       // ProgramMeta::job_facts; may be empty
  std::string process = {};    // DescribeThisProcess (runtime/process_id.h); empty: unknown
};
// A server limits the hello of an unknown peer to 64 KB. If the contract is too long for it, only its first
// lines and kCutLine are sent; the envelope's hash covers the whole contract.
inline constexpr std::string_view kCutLine = "...\n";
std::string WriteHello(const HelloBody& body);
Result<HelloBody> ReadHello(std::string_view bytes);

struct WelcomeBody {
  std::uint32_t part_bytes = 0;           // the size of the parts in which a chunk travels
  std::uint32_t window = 0;               // steps that a push may be ahead of its variable's version
  std::vector<std::uint64_t> chunk_rows;  // by variable
  // Variables whose pushes wait for Credit from the first step on, whatever the window.
  std::vector<std::uint32_t> by_turn = {};
  // Of a server that may be started again by itself: the number of its start, from 1. 0: trainers need not
  // keep what it has acknowledged.
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;  // with which it started: it has the gradients of the steps below
  // By variable: the number of shards (row_shards.h) of a table that is sharded by id; of others 1. Empty: no
  // table has several.
  std::vector<std::uint32_t> shards = {};
  // Of a server of keys: after so many pushes of a key a checkpoint is made. 0: none is.
  std::uint64_t cut_every = 0;
};
std::string WriteWelcome(const WelcomeBody& body);
Result<WelcomeBody> ReadWelcome(std::string_view bytes);

// The variables (positions in the contract) pushed in a step.
std::string WriteVariables(const std::vector<std::uint32_t>& variables);
Result<std::vector<std::uint32_t>> ReadVariables(std::string_view bytes);

// How often a worker has pushed a key.
struct KeyPushes {
  std::uint32_t variable = 0;  // the key's value
  std::uint64_t pushes = 0;

  friend bool operator==(const KeyPushes&, const KeyPushes&) = default;
};
std::string WriteKeyPushes(const std::vector<KeyPushes>& pushes);
Result<std::vector<KeyPushes>> ReadKeyPushes(std::string_view bytes);

struct SaveBody {
  std::string table, file;
};
std::string WriteSave(const SaveBody& body);
Result<SaveBody> ReadSave(std::string_view bytes);

// A key of a key-value store, as a server holds it: the whole key, or its piece of it.
struct KeyBody {
  std::string name;
  std::uint32_t dtype = 0;  // a DType; unchecked
  std::vector<std::int64_t> shape;
  bool rows = false;    // pushes are selected rows
  bool turns = false;   // each push is an update by itself; else each round of all workers
  bool whole = false;   // one chunk, and not a piece of a key
  bool moved = false;   // the key lay in pieces before; those are another key
  bool leaves = false;  // the worker uses this key no longer; the rest is without meaning
  // Of a table of any ids: kvstore::TableSpec as text. Its shape is [1, width], and its rows are sharded by
  // id. Empty: it is no such table.
  std::string table = {};
  std::int64_t begin = 0;  // of a piece: its first element in the key; of a table, its first row
};
std::string WriteKey(const KeyBody& body);
Result<KeyBody> ReadKey(std::string_view bytes);

struct KeyDeclaredBody {
  Status status;                 // why the key cannot be declared; then the rest is without meaning
  std::uint64_t chunk_rows = 0;  // of the shape that was declared
  std::uint64_t pushes = 0;      // of this worker that the server has, its last process's too
  std::uint32_t shards = 1;      // of a table of any ids (row_shards.h)
  // Of a key from a checkpoint: its updates by the optimizer that it had then.
  std::uint64_t since = 0;
};
std::string WriteKeyDeclared(const KeyDeclaredBody& body);
Result<KeyDeclaredBody> ReadKeyDeclared(std::string_view bytes);

std::string WriteStatus(const Status& status);
// Returns the status that the other side wrote; kDataLoss if the bytes are not a status.
Status ReadStatus(std::string_view bytes);

}  // namespace penstock::protocol
