#include "executor/communicator/whole.h"

#include <cstring>

namespace penstock::communicator {
namespace {

// The rows of `all` in [begin, end), numbered from `begin`.
SelectedRows Between(const SelectedRows& all, Dim begin, Dim end) {
  SelectedRows some;
  some.height = end - begin;
  std::vector<std::size_t> from;
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    if (all.rows[i] < begin || all.rows[i] >= end) continue;
    some.rows.push_back(all.rows[i] - begin);
    from.push_back(i);
  }
  some.ResetValue(all.value.dtype(), all.value.shape().WithRows(static_cast<Dim>(from.size())));
  const std::size_t row_bytes = all.rows.empty() ? 0 : all.value.bytes() / all.rows.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::memcpy(some.value.raw() + i * row_bytes, all.value.raw() + from[i] * row_bytes, row_bytes);
  }
  return some;
}

Status PushRowsWithResidual(rpc::Steps& rpc, const Gradient& gradient, const Tensor& value,
                            const Tensor& residual) {
  if (gradient.pieces.size() == 1) return rpc.PushWithResidual(gradient.pieces.front(), value, residual);
  Tensor rows, rows_left;
  for (std::size_t i = 0; i < gradient.pieces.size(); ++i) {
    const WholeVariable::Piece& piece = gradient.whole.pieces[i];
    rows.ViewRows(value, piece.begin, piece.end);
    rows_left.ViewRows(residual, piece.begin, piece.end);
    PENSTOCK_RETURN_IF_ERROR(rpc.PushWithResidual(gradient.pieces[i], rows, rows_left));
  }
  return OkStatus();
}

}  // namespace

Variable CopyOf(const Variable& value) {
  Variable copy;
  if (const auto* tensor = value.If<Tensor>()) copy.As<Tensor>() = tensor->Clone();
  if (const auto* rows = value.If<SelectedRows>()) {
    copy.As<SelectedRows>() = *rows;
    copy.As<SelectedRows>().value = rows->value.Clone();
  }
  return copy;
}

Status PushRows(rpc::Steps& rpc, const Gradient& gradient, const Variable& value, const Tensor& residual) {
  const auto* tensor = value.If<Tensor>();
  const auto* rows = value.If<SelectedRows>();
  if (tensor == nullptr && rows == nullptr)
    return InvalidArgument("E-send-kind", "send: only tensors and rows of them are sent");
  if (tensor != nullptr && residual.initialized())
    return PushRowsWithResidual(rpc, gradient, *tensor, residual);
  if (gradient.pieces.size() == 1) return rpc.Push(gradient.pieces.front(), value);
  for (std::size_t i = 0; i < gradient.pieces.size(); ++i) {
    const WholeVariable::Piece& piece = gradient.whole.pieces[i];
    Variable part;
    if (tensor != nullptr) {
      part.As<Tensor>().ViewRows(*tensor, piece.begin, piece.end);
    } else {
      part.As<SelectedRows>() = Between(*rows, piece.begin, piece.end);
    }
    PENSTOCK_RETURN_IF_ERROR(rpc.Push(gradient.pieces[i], part));
  }
  return OkStatus();
}

Status PullRows(rpc::Steps& rpc, Param& param, Tensor& out) {
  const std::vector<WholeVariable::Piece>& pieces = param.whole.pieces;
  const RemotePiece& first = pieces.front().remote;
  const Shape shape = pieces.size() == 1 ? first.shape : first.shape.WithRows(pieces.back().end);
  if (!out.initialized() || out.dtype() != first.dtype || out.shape() != shape) out.Reset(first.dtype, shape);
  param.views.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Tensor& view = param.views[i].As<Tensor>();
    if (pieces.size() == 1) {
      view = out;
    } else {
      view.ViewRows(out, pieces[i].begin, pieces[i].end);
    }
    PENSTOCK_RETURN_IF_ERROR(rpc.PullAhead(param.pieces[i], param.views[i]));
  }
  return OkStatus();
}

}  // namespace penstock::communicator
