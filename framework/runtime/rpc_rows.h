// Single rows of tables: the third part of RpcClient.
//
//   PENSTOCK_RETURN_IF_ERROR(rows.PullRows(rows_, ids, out));
//   PENSTOCK_RETURN_IF_ERROR(rows.CompleteRows());
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/rpc_contracts.h"
#include "framework/tensor/variable.h"

namespace penstock::rpc {

class Rows {
 public:
  virtual ~Rows() = default;

  // Asks for rows `ids` of the piece, in that order, of the version that Pull would give. `out` gets one row
  // per id; do not read or write it before CompleteRows returns. `ids` is copied.
  virtual Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) = 0;
  virtual Status CompleteRows() = 0;
  // Asks for rows that the next step is expected to look up: of the version that its PullRows will give, so
  // call it after this step's gradients and barriers. A PullRows of the same piece, ids and version then
  // takes them; otherwise they are dropped. Never waits; `ids` is copied. Only if LooksAhead().
  virtual Status PullRowsAhead(RowsHandle /*piece*/, std::span<const std::int64_t> /*ids*/) {
    return Unimplemented("E-comm-next", "this client looks nothing up ahead");
  }
  virtual bool LooksAhead() const { return false; }
  // Asks for the rows of a table that any trainer has updated since this trainer's request of the step before
  // (in the first: since training began). After CompletePulls, `out` has them in ascending order, each once,
  // including the gradients that this trainer pushed in ended steps.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overriders keep it
  virtual Status PullChanged(PullHandle /*piece*/, std::shared_ptr<SelectedRows> /*out*/) {
    return Unimplemented("E-comm-changed", "this client cannot ask for the rows of a table that changed");
  }
  // checkpoint_notify: each of the servers writes its rows of a table sharded by id to a file on its own
  // disk. files[i] is the path for server i; the rows have the version that Pull would give. If a server
  // cannot write, its error is returned and the job continues.
  virtual Status SaveTable(PeersHandle pservers, const std::string& table,
                           const std::vector<std::string>& files) = 0;
};

}  // namespace penstock::rpc
