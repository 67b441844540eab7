#include "executor/pserver/memory/gradient_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "framework/runtime/compute_pool.h"

namespace penstock::pserver {
namespace {

constexpr std::size_t kBlockBytes = 8192;  // fits the L1 cache
using Block = std::array<std::byte, kBlockBytes>;

// Reads the concatenated bytes of payloads, or zeros if there is no payload.
class PartsReader {
 public:
  // Begins `skipped` bytes after the first one.
  PartsReader(const std::vector<Payload>& parts, std::size_t skipped) : at_(skipped) {
    for (const Payload& part : parts) {
      for (const Bytes& piece : part.pieces()) pieces_.push_back(&piece);
    }
    while (piece_ < pieces_.size() && at_ >= pieces_[piece_]->size) at_ -= pieces_[piece_++]->size;
  }

  // The next bytes, at most a block: in place, or copied to `block` if they span several pieces.
  const std::byte* Next(std::size_t bytes, Block& block) {
    if (pieces_.empty()) {  // zeros
      std::memset(block.data(), 0, bytes);
      return block.data();
    }
    SkipEnded();
    if (pieces_[piece_]->size - at_ >= bytes) {
      at_ += bytes;
      return pieces_[piece_]->data + at_ - bytes;
    }
    for (std::size_t done = 0; done < bytes;) {
      SkipEnded();
      const std::size_t here = std::min(bytes - done, pieces_[piece_]->size - at_);
      std::memcpy(block.data() + done, pieces_[piece_]->data + at_, here);
      at_ += here;
      done += here;
    }
    return block.data();
  }

 private:
  void SkipEnded() {
    if (at_ < pieces_[piece_]->size) return;
    ++piece_;
    at_ = 0;
  }

  std::vector<const Bytes*> pieces_;  // none is empty
  std::size_t piece_ = 0, at_ = 0;
};

template <typename T>
T Load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

// to[i] = (base[i] + from[i]) * *factor + 0; without a factor, only the sum. `to` may be the base. Received
// bytes may be unaligned.
template <typename T>
void AddBlock(const std::byte* base, const std::byte* from, std::size_t n, const T* factor, T* to) {
  const T bias{0};  // as in `scale`; turns -0 into 0
  if (factor == nullptr) {
    for (std::size_t i = 0; i < n; ++i) to[i] = Load<T>(base, i) + Load<T>(from, i);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const T added = Load<T>(base, i) + Load<T>(from, i);
    to[i] = static_cast<T>(*factor * added + bias);
  }
}

template <typename T>
void TakeBlock(const std::byte* from, std::size_t n, const T* factor, T* to) {
  const T bias{0};
  if (factor == nullptr) {
    std::memcpy(to, from, n * sizeof(T));
    return;
  }
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<T>(*factor * Load<T>(from, i) + bias);
}

// Elements [begin, end).
template <typename T>
void AddRange(const std::vector<Payload>& parts, const Addition& addition, T* sum, std::size_t begin,
              std::size_t end) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(T);
  const std::vector<Payload> none;
  PartsReader reader(parts, begin * sizeof(T));
  PartsReader base_reader(addition.to == nullptr ? none : *addition.to, begin * sizeof(T));
  Block block, base_block;
  const auto scale = static_cast<T>(addition.factor.value_or(1.0f));
  const T* const factor = addition.factor ? &scale : nullptr;
  T* to = sum + begin;
  for (std::size_t left = end - begin; left > 0;) {
    const std::size_t n = std::min(kBlock, left);
    const std::byte* const from = reader.Next(n * sizeof(T), block);
    if (addition.first) {
      TakeBlock(from, n, factor, to);
    } else {
      const std::byte* const base = addition.to == nullptr ? reinterpret_cast<const std::byte*>(to)
                                                           : base_reader.Next(n * sizeof(T), base_block);
      AddBlock(base, from, n, factor, to);
    }
    to += n;
    left -= n;
  }
}

template <typename T>
void Add(const std::vector<Payload>& parts, const Addition& addition, Tensor& sum) {
  constexpr double kByteNs = 0.2;
  T* const to = sum.Data<T>();
  ParallelFor(sum.count(), kByteNs * sizeof(T), kBlockBytes / sizeof(T),
              [&](std::int64_t begin, std::int64_t end) {
                AddRange(parts, addition, to, static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
              });
}

void CheckSize(const std::vector<Payload>& parts, const Tensor& sum) {
  std::size_t bytes = 0;
  for (const Payload& part : parts) bytes += part.size();
  PENSTOCK_CHECK(bytes == (parts.empty() ? 0 : sum.bytes()), "a gradient has as many bytes as its chunk");
}

}  // namespace

bool CanAdd(DType type) { return type == DType::kFp32 || type == DType::kFp64; }

void AddGradient(const std::vector<Payload>& parts, const Addition& addition, Tensor& sum) {
  CheckSize(parts, sum);
  if (addition.to != nullptr) CheckSize(*addition.to, sum);
  if (sum.dtype() == DType::kFp64) {
    Add<double>(parts, addition, sum);
  } else {
    Add<float>(parts, addition, sum);
  }
}

}  // namespace penstock::pserver
