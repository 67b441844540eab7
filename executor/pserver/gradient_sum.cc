#include "executor/pserver/gradient_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace penstock::pserver {
namespace {

constexpr std::size_t kBlockBytes = 8192;  // stays in the first cache
using Block = std::array<std::byte, kBlockBytes>;

// The bytes of some payloads, end to end.
class PartsReader {
 public:
  explicit PartsReader(const std::vector<Payload>& parts) {
    for (const Payload& part : parts) {
      for (const Bytes& piece : part.pieces()) pieces_.push_back(&piece);
    }
  }

  // The next bytes, at most a block: where they lie, or in `block` where they lie in several pieces.
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

// What comes from the network may lie at any address.
template <typename T>
T Load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Add(const std::vector<Payload>& parts, const Addition& addition, Tensor& sum) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(T);
  PartsReader reader(parts);
  Block block;
  const auto factor = static_cast<T>(addition.factor.value_or(1.0f));
  const T bias{0};  // of `scale`: turns -0 into 0
  T* to = sum.Data<T>();
  for (auto left = static_cast<std::size_t>(sum.count()); left > 0;) {
    const std::size_t n = std::min(kBlock, left);
    const std::byte* const from = reader.Next(n * sizeof(T), block);
    if (addition.first && !addition.factor) {
      std::memcpy(to, from, n * sizeof(T));
    } else if (addition.first) {
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<T>(factor * Load<T>(from, i) + bias);
    } else if (!addition.factor) {
      for (std::size_t i = 0; i < n; ++i) to[i] += Load<T>(from, i);
    } else {
      for (std::size_t i = 0; i < n; ++i) {
        const T added = to[i] + Load<T>(from, i);
        to[i] = static_cast<T>(factor * added + bias);
      }
    }
    to += n;
    left -= n;
  }
}

}  // namespace

bool CanAdd(DType type) { return type == DType::kFp32 || type == DType::kFp64; }

void AddGradient(const std::vector<Payload>& parts, const Addition& addition, Tensor& sum) {
  std::size_t bytes = 0;
  for (const Payload& part : parts) bytes += part.size();
  PENSTOCK_CHECK(bytes == (parts.empty() ? 0 : sum.bytes()), "a gradient has as many bytes as its chunk");
  if (sum.dtype() == DType::kFp64) {
    Add<double>(parts, addition, sum);
  } else {
    Add<float>(parts, addition, sum);
  }
}

}  // namespace penstock::pserver
