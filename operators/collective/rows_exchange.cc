#include "operators/collective/rows_exchange.h"

#include <algorithm>
#include <type_traits>

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

// What x + y == y holds for bit by bit: with 0 a row of -0 that one rank has would become 0.
template <typename T>
constexpr T kNothing = std::is_floating_point_v<T> ? -T{0} : T{0};

}  // namespace

bool GatheringCostsMore(std::int64_t rows, std::int64_t height, std::int64_t row_bytes) {
  constexpr double kNumber = sizeof(std::int64_t);  // products of what peers say do not overflow a double
  const auto bytes = static_cast<double>(row_bytes);
  return static_cast<double>(rows) * (bytes + kNumber) > 2 * static_cast<double>(height) * (bytes + 1);
}

// What all ranks have together.
struct RowsExchange::Extent {
  std::vector<std::int64_t> rows;  // of each rank
  std::int64_t total = 0, width = 0, height = 0;
};

Status RowsExchange::Measure(const RingUse& ring, CollectiveGroup& group, Extent& extent) {
  const auto ranks = static_cast<std::size_t>(group.size());
  Header own = HeaderOf(own_);
  std::vector<Header> headers(ranks);
  PENSTOCK_RETURN_IF_ERROR(ring.Wait(
      group.AllGatherEqual(Numbers(&own.rows, kHeaderNumbers),
                           Numbers(&headers.front().rows, kHeaderNumbers * group.size()), ring.options())));
  for (std::size_t r = 0; r < ranks; ++r) {
    if (headers[r].rows > 0 && extent.width > 0 && headers[r].width != extent.width)
      return BadWidth(static_cast<int>(r), headers[r].width, extent.width);
    extent.rows.push_back(headers[r].rows);
    extent.total += headers[r].rows;
    extent.width = std::max(extent.width, headers[r].width);
    extent.height = std::max(extent.height, headers[r].height);
  }
  return OkStatus();
}

template <typename T>
Status RowsExchange::SumGathered(const RingUse& ring, CollectiveGroup& group, const Extent& extent,
                                 SelectedRows& out) {
  const auto own = static_cast<std::int64_t>(own_.rows.size());
  all_.rows.resize(static_cast<std::size_t>(extent.total));
  all_.height = extent.height;
  all_.ResetValue(DTypeOfT<T>::kValue, ShapeWith(own_.value, extent.total, extent.width));
  if (extent.total > 0) {  // on all ranks
    std::vector<std::int64_t> values = extent.rows;
    for (std::int64_t& count : values) count *= extent.width;
    PENSTOCK_RETURN_IF_ERROR(ring.Wait(
        group.AllGather({reinterpret_cast<const std::byte*>(own_.rows.data()), own, ElementType::kInt64},
                        extent.rows, Numbers(all_.rows.data(), extent.total), ring.options())));
    const Elements to = ElementsOf(all_.value);
    PENSTOCK_RETURN_IF_ERROR(ring.Wait(group.AllGather(
        {own == 0 ? nullptr : own_.value.raw(), own * extent.width, to.type}, values, to, ring.options())));
  }
  merger_.MergeAscending<T>(all_, out);
  return OkStatus();
}

template <typename T>
Status RowsExchange::SumDense(const RingUse& ring, CollectiveGroup& group, const Extent& extent,
                              SelectedRows& out) {
  const auto width = static_cast<std::size_t>(extent.width);
  dense_.Reset(DTypeOfT<T>::kValue, ShapeWith(own_.value, extent.height, extent.width));
  present_.assign(static_cast<std::size_t>(extent.height), 0);
  T* const sums = dense_.Data<T>();
  std::fill_n(sums, dense_.count(), kNothing<T>);
  const T* values = own_.value.initialized() ? own_.value.Data<T>() : nullptr;
  for (const std::int64_t row : own_.rows) {
    std::copy_n(values, width, sums + static_cast<std::size_t>(row) * width);
    present_[static_cast<std::size_t>(row)] = 1;
    values += width;
  }
  PENSTOCK_RETURN_IF_ERROR(ring.Wait(group.AllReduce(ElementsOf(dense_), Reduction::kSum, ring.options())));
  PENSTOCK_RETURN_IF_ERROR(ring.Wait(
      group.AllReduce({reinterpret_cast<std::byte*>(present_.data()), extent.height, ElementType::kUInt8},
                      Reduction::kMax, ring.options())));
  out.rows.clear();
  for (std::int64_t row = 0; row < extent.height; ++row) {
    if (present_[static_cast<std::size_t>(row)] != 0) out.rows.push_back(row);
  }
  out.height = extent.height;
  out.ResetValue(DTypeOfT<T>::kValue, dense_.shape().WithRows(static_cast<Dim>(out.rows.size())));
  T* to = out.value.Data<T>();
  for (const std::int64_t row : out.rows)
    to = std::copy_n(sums + static_cast<std::size_t>(row) * width, width, to);
  return OkStatus();
}

template <typename T>
Status RowsExchange::SumOf(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x,
                           SelectedRows& out) {
  merger_.MergeAscending<T>(x, own_);
  Extent extent;
  PENSTOCK_RETURN_IF_ERROR(Measure(ring, group, extent));
  const std::int64_t row_bytes = extent.width * static_cast<std::int64_t>(sizeof(T));
  return GatheringCostsMore(extent.total, extent.height, row_bytes)
             ? SumDense<T>(ring, group, extent, out)
             : SumGathered<T>(ring, group, extent, out);
}

Status RowsExchange::Sum(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x,
                         SelectedRows& out) {
  switch (x.value.dtype()) {
    case DType::kFp64:
      return SumOf<double>(ring, group, x, out);
    case DType::kInt32:
      return SumOf<std::int32_t>(ring, group, x, out);
    case DType::kInt64:
      return SumOf<std::int64_t>(ring, group, x, out);
    default:
      return SumOf<float>(ring, group, x, out);
  }
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
