// Rows of a table that parameter servers hold in slices, for kernels that read some of them.
//
//   PENSTOCK_RETURN_IF_ERROR(rows_.Declare(k, roles::LookupView(k.op()), DType::kFp32, 32));
//   ... each run:
//   PENSTOCK_RETURN_IF_ERROR(rows_.Fetch(ids));   // in any order, repeated or not
//   rows_.Row(ids[0])                             // 32 floats
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operators/common/comm.h"

namespace penstock {

class RemoteRows {
 public:
  // The first slice begins with row 0.
  Status Declare(KernelSetup& k, const roles::LookupView& table, DType dtype, Dim width) {
    const roles::Names names = table.pieces(), servers = table.addresses();
    const roles::Numbers heights = table.heights();
    if (names.empty() || names.size() != heights.size() || names.size() != servers.size()) {
      return k.Error("attributes name ", names.size(), " slices, ", heights.size(), " heights and ",
                     servers.size(), " servers of a table");
    }
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    row_bytes_ = static_cast<std::size_t>(width) * SizeOf(dtype);
    for (std::size_t s = 0; s < names.size(); ++s) {
      PENSTOCK_ASSIGN_OR_RETURN(const RowsHandle handle, client_->DeclareRows({.pserver = servers[s],
                                                                               .name = names[s],
                                                                               .dtype = dtype,
                                                                               .shape = {heights[s], width},
                                                                               .trainer_id = TrainerOf(k)}));
      slices_.push_back({.handle = handle, .begin = height(), .end = height() + heights[s]});
    }
    return OkStatus();
  }
  std::size_t row_bytes() const { return row_bytes_; }
  Dim height() const { return slices_.empty() ? 0 : slices_.back().end; }

  // Asks each server once, for each row once: the version after this trainer's last send_barrier. Every id is
  // in [0, height()).
  Status Fetch(std::span<const std::int64_t> ids) {
    all_.assign(ids.begin(), ids.end());
    std::ranges::sort(all_);
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
    for (Slice& slice : slices_) {
      slice.first = static_cast<std::size_t>(std::ranges::lower_bound(all_, slice.begin) - all_.begin());
      const auto last = static_cast<std::size_t>(std::ranges::lower_bound(all_, slice.end) - all_.begin());
      if (slice.first == last) continue;
      local_.assign(all_.begin() + static_cast<Dim>(slice.first), all_.begin() + static_cast<Dim>(last));
      for (std::int64_t& id : local_) id -= slice.begin;
      PENSTOCK_RETURN_IF_ERROR(client_->PullRows(slice.handle, local_, slice.rows));
    }
    return client_->CompleteRows();
  }

  // Of an id that was fetched last.
  const std::byte* Row(std::int64_t id) const {
    const auto slice =
        std::ranges::find_if(slices_, [id](const Slice& s) { return id >= s.begin && id < s.end; });
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(all_, id) - all_.begin());
    return slice->rows.raw() + (at - slice->first) * row_bytes_;
  }

 private:
  struct Slice {
    RowsHandle handle;
    Dim begin = 0, end = 0;  // rows of the table
    std::size_t first = 0;   // of all_, the first that lies here
    Tensor rows = {};        // that were asked for, in the order of all_
  };

  RpcClient* client_ = nullptr;
  std::size_t row_bytes_ = 0;
  std::vector<Slice> slices_;
  std::vector<std::int64_t> all_, local_;
};

}  // namespace penstock
