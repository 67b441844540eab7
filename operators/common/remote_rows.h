// Reads rows of a range-sliced table from pservers, for kernels.
//
//   PENSTOCK_RETURN_IF_ERROR(rows_.Declare(k, roles::LookupView(k.op()), DType::kFp32, 32));
//   ... each run:
//   PENSTOCK_RETURN_IF_ERROR(rows_.Fetch(ids));   // any order; duplicates are allowed
//   rows_.Row(0)                                  // 32 floats: row ids[0] of the table
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "operators/common/comm.h"
#include "operators/common/order_rows.h"

namespace penstock {

class RemoteRows {
 public:
  // Declares the slices of the table, the first of which begins with row 0. Call it in Prepare.
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

  // Requests the rows from their servers, each row once and with at most one request per slice. Fetches the
  // version after this trainer's last send_barrier. Every id must be in [0, height()).
  Status Fetch(std::span<const std::int64_t> ids) {
    entries_.clear();
    for (const std::int64_t id : ids) entries_.push_back({id, entries_.size()});
    OrderByRow(entries_, spare_);
    auto entry = entries_.begin();
    for (Slice& slice : slices_) {
      slice.entries = entries_.end() - entry;
      slice.asked.clear();
      for (; entry != entries_.end() && entry->row < slice.end; ++entry) {
        const std::int64_t local = entry->row - slice.begin;
        if (slice.asked.empty() || slice.asked.back() != local) slice.asked.push_back(local);
      }
      slice.entries -= entries_.end() - entry;
      if (!slice.asked.empty())
        PENSTOCK_RETURN_IF_ERROR(client_->PullRows(slice.handle, slice.asked, slice.rows));
    }
    PENSTOCK_RETURN_IF_ERROR(client_->CompleteRows());
    Place();
    return OkStatus();
  }

  // Returns the row of the id at `position` in the last Fetch.
  const std::byte* Row(std::size_t position) const { return places_[position]; }

 private:
  struct Entry {
    std::int64_t row;
    std::size_t position;
  };
  struct Slice {
    RowsHandle handle;
    Dim begin = 0, end = 0;                // rows of the table
    std::ptrdiff_t entries = 0;            // number of entries in this slice
    std::vector<std::int64_t> asked = {};  // each row once, ascending, relative to `begin`
    Tensor rows = {};                      // the rows in the order of `asked`
  };

  void Place() {
    places_.resize(entries_.size());
    auto entry = entries_.begin();
    for (const Slice& slice : slices_) {
      if (slice.entries == 0) continue;
      const std::byte* place = slice.rows.raw();
      for (const auto first = entry, end = entry + slice.entries; entry != end; ++entry) {
        if (entry != first && entry->row != std::prev(entry)->row) place += row_bytes_;
        places_[entry->position] = place;
      }
    }
  }

  RpcClient* client_ = nullptr;
  std::size_t row_bytes_ = 0;
  std::vector<Slice> slices_;
  std::vector<Entry> entries_, spare_;
  std::vector<const std::byte*> places_;
};

}  // namespace penstock
