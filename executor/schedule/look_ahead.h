// Lookups of the next batch. Where the ids of a remote lookup are read from a reader or fed, the next batch
// tells which rows the next run will look up; they are asked for at the end of a run (PullRowsAhead), and
// travel while the caller prepares the next one. Nothing else depends on it: a run that looks other rows up
// asks for them.
//
// The executor has one for each block that it compiles, and calls AskReaders at the end of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/graph/compiled_block.h"
#include "framework/runtime/rpc_client.h"
#include "framework/tensor/scope.h"

namespace penstock::exec {

class LookAhead {
 public:
  explicit LookAhead(const CompiledBlock& block);
  bool empty() const { return lookups_.empty(); }

  // `next` gives a variable of the next batch; null: not known. The program must be attached. Does not wait.
  using Next = std::function<const Tensor*(const std::string&)>;
  Status Ask(RpcClient& rpc, const Next& next);
  // The same with what the block's readers have in their queues.
  Status AskReaders(RpcClient& rpc, const Scope& scope);

 private:
  struct Piece {
    std::string pserver, name;
    std::int64_t end = 0;  // of rows of a table in slices, which begin where the one before ends
    RowsHandle handle = {};
  };
  struct Lookup {
    std::vector<std::string> ids;  // variables of the batch
    std::vector<Piece> pieces;     // by server
    bool by_id = false;            // the server is the id modulo their number
    std::int64_t padding = -1;     // an id that is not looked up; -1: none
    int trainer = 0;
  };
  struct Source {  // what a reader fills
    std::string reader;
    std::vector<std::string> variables;
  };
  void AddPrefetch(const CompiledBlock& block, const Op& prefetch);
  void AddLookup(const Op& op);
  void Add(Lookup lookup);
  static Status AskOne(RpcClient& rpc, Lookup& lookup, std::vector<std::int64_t> ids);

  std::vector<Lookup> lookups_;
  std::vector<Source> sources_;
  std::vector<std::string> given_;  // the variables that feeds and readers fill
};

}  // namespace penstock::exec
