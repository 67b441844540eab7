#include "executor/communicator/deltas.h"

namespace penstock::communicator {
namespace {

// Two loops, so that product and sum are not fused: `old` must grow by exactly the rounded `delta`.
template <typename T>
void Take(const T* now, T share, std::size_t count, T* old, T* delta) {
  for (std::size_t i = 0; i < count; ++i) delta[i] = (now[i] - old[i]) * share;
  for (std::size_t i = 0; i < count; ++i) old[i] += delta[i];
}

// An element that no trainer has changed keeps its bytes, including the sign of a zero.
template <typename T>
void Land(const T* value, std::size_t count, T* old, T* now) {
  for (std::size_t i = 0; i < count; ++i) {
    const T moved = value[i] - old[i];
    now[i] = moved == T{0} ? now[i] : now[i] + moved;
    old[i] = value[i];
  }
}

template <typename Work>
void WithType(DType type, const Work& work) {
  type == DType::kFp32 ? work(float{}) : work(double{});
}

std::size_t WidthOf(const Tensor& table) { return static_cast<std::size_t>(table.shape().RowWidth()); }

}  // namespace

bool CanExchange(DType type) { return type == DType::kFp32 || type == DType::kFp64; }

void TakeDelta(const Tensor& now, double share, Tensor& old, Tensor& delta) {
  // The client may still hold the buffer of the delta before, for a message that it has resent.
  if (delta.initialized() && delta.buffer().use_count() > 1) delta = Tensor();
  delta.Refit(now.dtype(), now.shape());
  WithType(now.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Take(now.Data<T>(), static_cast<T>(share), now.Span<T>().size(), old.Data<T>(), delta.Data<T>());
  });
}

void LandValue(const Tensor& value, Tensor& old, Tensor& now) {
  WithType(now.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Land(value.Data<T>(), value.Span<T>().size(), old.Data<T>(), now.Data<T>());
  });
}

void TakeDelta(const Tensor& now, std::span<const std::int64_t> rows, double share, Tensor& old,
               SelectedRows& delta) {
  const std::size_t width = WidthOf(now);
  delta.rows.assign(rows.begin(), rows.end());
  delta.height = now.shape()[0];
  delta.ResetValue(now.dtype(), now.shape().WithRows(static_cast<Dim>(rows.size())));
  WithType(now.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(rows[i]) * width;
      Take(now.Data<T>() + at, static_cast<T>(share), width, old.Data<T>() + at,
           delta.value.Data<T>() + i * width);
    }
  });
}

void LandValue(const SelectedRows& value, Dim begin, Tensor& old, Tensor& now) {
  const std::size_t width = WidthOf(now);
  WithType(now.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < value.rows.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(begin + value.rows[i]) * width;
      Land(value.value.Data<T>() + i * width, width, old.Data<T>() + at, now.Data<T>() + at);
    }
  });
}

}  // namespace penstock::communicator
