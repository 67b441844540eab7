#include "operators/collective/rows_exchange.h"

#include <algorithm>
#include <array>
#include <vector>

namespace penstock {
namespace {

// What a rank says of its rows first.
struct Header {
  std::int64_t rows = 0;
  std::int64_t width = 0;  // elements of a row; 0 where there is none
  std::int64_t height = 0;
};
constexpr std::int64_t kHeaderNumbers = 3;

Elements Numbers(std::int64_t* numbers, std::int64_t count) {
  return {reinterpret_cast<std::byte*>(numbers), count, ElementType::kInt64};
}

Header HeaderOf(const SelectedRows& x) {
  const auto rows = static_cast<std::int64_t>(x.rows.size());
  return {rows, rows == 0 ? 0 : x.value.shape().RowWidth(), x.height};
}

Status BadWidth(int rank, std::int64_t width, std::int64_t expected) {
  return InvalidArgument("E-collective-rows", "selected rows: rows of rank ", rank, " have ", width,
                         " elements, others ", expected);
}

// [rows, ...] as the value has it, or [rows, width] where it has no shape.
Shape ShapeWith(const Tensor& value, std::int64_t rows, std::int64_t width) {
  if (value.initialized() && value.shape().rank() > 0 && value.shape().RowWidth() == width)
    return value.shape().WithRows(rows);
  return Shape({rows, width});
}

template <typename T>
void Merge(RowMerger& merger, const SelectedRows& all, SelectedRows& out) {
  merger.MergeAscending<T>(all, out);
}

}  // namespace

Status RowsExchange::Gather(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x) {
  const auto ranks = static_cast<std::size_t>(group.size());
  Header own = HeaderOf(x);
  std::vector<Header> headers(ranks);
  PENSTOCK_RETURN_IF_ERROR(ring.Wait(
      group.AllGatherEqual(Numbers(&own.rows, kHeaderNumbers),
                           Numbers(&headers.front().rows, kHeaderNumbers * group.size()), ring.options())));
  std::vector<std::int64_t> rows(ranks), values(ranks);
  std::int64_t total = 0, width = 0, height = own.height;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (headers[r].rows > 0 && width > 0 && headers[r].width != width)
      return BadWidth(static_cast<int>(r), headers[r].width, width);
    rows[r] = headers[r].rows;
    total += rows[r];
    width = std::max(width, headers[r].width);
    height = std::max(height, headers[r].height);
  }
  for (std::size_t r = 0; r < ranks; ++r) values[r] = rows[r] * width;
  all_.rows.resize(static_cast<std::size_t>(total));
  all_.height = height;
  all_.ResetValue(x.value.dtype(), ShapeWith(x.value, total, width));
  if (total == 0) return OkStatus();  // on all ranks
  PENSTOCK_RETURN_IF_ERROR(ring.Wait(
      group.AllGather({reinterpret_cast<const std::byte*>(x.rows.data()), own.rows, ElementType::kInt64},
                      rows, Numbers(all_.rows.data(), total), ring.options())));
  const Elements out = ElementsOf(all_.value);
  return ring.Wait(group.AllGather({own.rows == 0 ? nullptr : x.value.raw(), own.rows * width, out.type},
                                   values, out, ring.options()));
}

Status RowsExchange::Sum(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x,
                         SelectedRows& out) {
  PENSTOCK_RETURN_IF_ERROR(Gather(ring, group, x));
  switch (all_.value.dtype()) {
    case DType::kFp64:
      Merge<double>(merger_, all_, out);
      break;
    case DType::kInt32:
      Merge<std::int32_t>(merger_, all_, out);
      break;
    case DType::kInt64:
      Merge<std::int64_t>(merger_, all_, out);
      break;
    default:
      Merge<float>(merger_, all_, out);
  }
  return OkStatus();
}

Status RowsExchange::Broadcast(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, int root,
                               SelectedRows& out) {
  Header header = HeaderOf(x);
  PENSTOCK_RETURN_IF_ERROR(
      ring.Wait(group.Broadcast(Numbers(&header.rows, kHeaderNumbers), root, ring.options())));
  const DType type = x.value.dtype();
  if (&out != &x && group.rank() == root) {
    out.rows = x.rows;
    out.ResetValue(type, x.value.shape());
    if (header.rows > 0) out.value.CopyFrom(x.value);
  } else if (group.rank() != root) {
    out.rows.resize(static_cast<std::size_t>(header.rows));
    out.ResetValue(type, ShapeWith(x.value, header.rows, header.width));
  }
  out.height = header.height;
  if (header.rows == 0) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(
      ring.Wait(group.Broadcast(Numbers(out.rows.data(), header.rows), root, ring.options())));
  return ring.Wait(group.Broadcast(ElementsOf(out.value), root, ring.options()));
}

}  // namespace penstock
